"""Scale: the file system calls of many readers, counted, beside a ZooKeeper that holds only the test's data."""

import random

import pytest

from leader.layout import tree as job
from leader.layout.information import LeaderInformation, encode, endpoint_entries
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from leader.layout.znodes import leader_path
from leader.lookup.answers import Source
from leader.lookup.reader import Reader
from leader.timing import Timing
from store.zookeeper import Connection
from tests.system.flink_scenarios.copies import Copies
from tests.unit.ha.waiting import wait_until
from tests.unit.leader.faulty import Place
from tests.unit.leader.samples import A, B

READERS = 300
FIRST, SECOND = LeaderDirectory(1, A), LeaderDirectory(2, B)
LEASE = Lease(2, Mode.ZOOKEEPER, 60_000, A, "cafe0123-1001", "a")


class AtOnce(random.Random):
    def uniform(self, a: float, b: float) -> float:
        return min(a, b)


class Job:
    """A job whose leaders are written by hand, and whose directory counts how often it is listed."""

    def __init__(self, place: Place) -> None:
        self.place, self.copies, self.lists = place, Copies(), 0
        place.faulty.before_list = self._counted
        job.create(place.direct, "orders")
        home = f"orders/{LeaderDirectory(0, NOBODY).name}"
        (name,) = [name for name in place.names(f"{home}/record") if Lease.parse(name)]
        place.direct.rename(f"{home}/record/{name}", f"{home}/record/{LEASE.name}")
        place.direct.rename(home, f"orders/{FIRST.name}")
        self.publish(FIRST)

    def _counted(self, _: str) -> None:
        self.lists += 1

    def publish(self, directory: LeaderDirectory) -> None:
        information = LeaderInformation("orders", directory.epoch, directory.session_id, {"rest": directory.name})
        for entry in endpoint_entries(information):
            self.place.direct.make_directory(f"orders/{directory.name}/record/{entry.name}")
        self.copies.nodes[leader_path("orders")] = encode(information)

    def succeed(self) -> None:
        record = f"orders/{FIRST.name}/record"
        seized = Lease(3, Mode.HDFS, 6000, B, "", "b")
        self.place.direct.rename(f"{record}/{LEASE.name}", f"{record}/{seized.name}")
        self.place.direct.rename(f"orders/{FIRST.name}", f"orders/{SECOND.name}")
        self.publish(SECOND)

    def readers(self) -> list[Reader]:
        made = []
        for number in range(1, READERS + 1):
            reader = Reader(self.place.files, self.copies.client, Timing(), audit=3600.0, rng=AtOnce())
            for _ in range(2):
                assert reader.leader("orders", 30).epoch == 1
            wait_until(lambda number=number: self.lists >= number)  # type: ignore[misc]
            made.append(reader)
        return made


@pytest.fixture
def led(place: Place) -> Job:
    return Job(place)


def test_a_failover_costs_the_file_system_one_list_for_each_reader_that_follows(led: Job) -> None:
    readers = led.readers()
    before = led.lists
    led.succeed()
    for reader in readers:
        for _ in range(5):
            answer = reader.leader("orders", 30)
            assert (answer.epoch, answer.source, answer.endpoints["rest"]) == (2, Source.ZOOKEEPER, SECOND.name)
    assert led.lists == before + READERS
    assert all(reader.fallbacks == {"unverified": 2} for reader in readers), "the first leader, and the second"


def test_without_zookeeper_a_lookup_is_one_list(led: Job) -> None:
    """The first lookup, too: ZooKeeper's record has named the leader directory."""
    readers = led.readers()
    led.copies.state = Connection.SUSPENDED
    for _ in range(2):
        before = led.lists
        for reader in readers:
            assert reader.leader("orders", 30).source is Source.HDFS
        assert led.lists == before + READERS
