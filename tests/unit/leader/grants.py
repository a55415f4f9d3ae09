"""Grants: leaders as readers find them, from names that a test writes into a directory."""

from collections.abc import Callable
from typing import Any, cast

from msgspec.structs import replace

from leader.layout import tree as job
from leader.layout.information import LeaderInformation, encode, endpoint_entries
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from leader.timing import Timing
from store.zookeeper import Connection, ZooKeeper
from tests.unit.leader.faulty import Place
from tests.unit.leader.samples import A, B

FIRST, SECOND = LeaderDirectory(1, A), LeaderDirectory(2, B)
LEASE = Lease(5, Mode.ZOOKEEPER, 60_000, A, "cafe0123-1001", "a")
QUICK = Timing(short_ttl=0.6, long_ttl=10, session_timeout=2)


def written(directory: LeaderDirectory, address: str, version: int = 1) -> bytes:
    return encode(LeaderInformation("orders", directory.epoch, directory.session_id, {"rest": address}, version))


class PlayedZooKeeper:
    """A client that is connected, and is told of nothing; what it answers is said by who inherits from it."""

    state = Connection.CONNECTED

    @property
    def client(self) -> ZooKeeper:
        return cast("ZooKeeper", self)

    def start(self) -> None:
        pass

    def wait(self, timeout: float, *_: Connection) -> Connection:
        del timeout
        return self.state

    def add_listener(self, listener: Callable[[Any], None]) -> None:
        pass

    def remove_listener(self, listener: Callable[[Any], None]) -> None:
        pass


class Grants:
    """Plays leaders: writes their names into the directory."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.directory = LeaderDirectory(0, NOBODY)
        job.create(place.direct, "orders")

    def claim(self, directory: LeaderDirectory, lease: Lease = LEASE) -> None:
        old = self.record
        (name,) = [name for name in self.place.names(old) if Lease.parse(name)]
        self.place.direct.rename(f"{old}/{name}", f"{old}/{replace(lease, owner=directory.session_id).name}")
        self.place.direct.rename(f"orders/{self.directory.name}", f"orders/{directory.name}")
        self.directory = directory

    def publish(self, address: str, version: int = 1) -> None:
        information = LeaderInformation(
            "orders", self.directory.epoch, self.directory.session_id, {"rest": address}, version
        )
        for entry in endpoint_entries(information):
            self.place.direct.make_directory(f"{self.record}/{entry.name}")

    def lead(self, directory: LeaderDirectory, address: str, lease: Lease = LEASE) -> None:
        self.claim(directory, lease)
        self.publish(address)

    def release(self) -> None:
        (lease,) = [name for name in self.place.names(self.record) if Lease.parse(name)]
        released = replace(LEASE, mode=Mode.RELEASED, ttl_ms=0, attestation="").name
        self.place.direct.rename(f"{self.record}/{lease}", f"{self.record}/{released}")

    @property
    def record(self) -> str:
        return f"orders/{self.directory.name}/record"
