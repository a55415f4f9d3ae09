"""What many readers cost the file system: counted, with a ZooKeeper that only holds what the test puts there."""

import random

import pytest

from leader import job
from leader.information import LeaderInformation, encode, endpoint_entries
from leader.job import NOBODY
from leader.lease import Lease, Mode
from leader.names import LeaderDirectory
from leader.nodes import leader_path
from leader.reader import Reader
from leader.retrieval import Source
from leader.timing import Timing
from store.files import Entry
from store.zookeeper import Connection
from tests.ha.waiting import wait_until
from tests.leader.faulty import Place
from tests.leader.samples import A, B
from tests.peers.copies import Copies

READERS = 300
FIRST, SECOND = LeaderDirectory(1, A), LeaderDirectory(2, B)
LEASE = Lease(2, Mode.ZOOKEEPER, 60_000, A, "cafe0123-1001", "a")


class AtOnce(random.Random):
    """Dice by which nobody waits for a time of his own."""

    def uniform(self, a: float, b: float) -> float:
        return min(a, b)


class Job:
    """A job whose leaders are written by hand, and whose directory counts how often it is listed."""

    def __init__(self, place: Place) -> None:
        self.place, self.copies, self.lists = place, Copies(), 0
        self._list = place.faulty.list
        place.faulty.list = self._counted  # type: ignore[method-assign]  # it lists, and counts
        job.create(place.direct, "orders")
        home = f"orders/{LeaderDirectory(0, NOBODY).name}"
        (name,) = [name for name in place.names(f"{home}/record") if Lease.parse(name)]
        place.direct.rename(f"{home}/record/{name}", f"{home}/record/{LEASE.name}")
        place.direct.rename(home, f"orders/{FIRST.name}")
        self.publish(FIRST)

    def _counted(self, path: str) -> list[Entry]:
        self.lists += 1
        return self._list(path)

    def publish(self, directory: LeaderDirectory) -> None:
        information = LeaderInformation("orders", directory.epoch, directory.session_id, {"rest": directory.name})
        for entry in endpoint_entries(information):
            self.place.direct.make_directory(f"orders/{directory.name}/record/{entry.name}")
        self.copies.nodes[leader_path("orders")] = encode(information)

    def succeed(self) -> None:
        """The next leader takes over, and publishes in both stores."""
        record = f"orders/{FIRST.name}/record"
        seized = Lease(3, Mode.HDFS, 6000, B, "", "b")
        self.place.direct.rename(f"{record}/{LEASE.name}", f"{record}/{seized.name}")
        self.place.direct.rename(f"orders/{FIRST.name}", f"orders/{SECOND.name}")
        self.publish(SECOND)

    def readers(self) -> list[Reader]:
        """Readers that know the first leader, and whose first audit is over."""
        made = []
        for number in range(1, READERS + 1):
            reader = Reader(self.place.files, self.copies.client, Timing(), audit=3600.0, dice=AtOnce())
            for _ in range(2):  # the audit begins with the second
                assert reader.leader("orders", 30).epoch == 1
            wait_until(lambda number=number: self.lists >= number)  # type: ignore[misc]
            made.append(reader)
        return made


@pytest.fixture
def led(place: Place) -> Job:
    return Job(place)


def test_a_failover_that_many_readers_follow_costs_the_file_system_nothing(led: Job) -> None:
    readers = led.readers()
    before = led.lists
    led.succeed()
    for reader in readers:
        for _ in range(5):
            answer = reader.leader("orders", 30)
            assert (answer.epoch, answer.source, answer.endpoints["rest"]) == (2, Source.ZOOKEEPER, SECOND.name)
    assert led.lists == before
    assert all(reader.fallbacks == {} for reader in readers)


def test_without_zookeeper_a_lookup_is_one_list(led: Job) -> None:
    """The first one, too: ZooKeeper's record has named the leader directory."""
    readers = led.readers()
    led.copies.state = Connection.SUSPENDED
    for _ in range(2):
        before = led.lists
        for reader in readers:
            assert reader.leader("orders", 30).source is Source.HDFS
        assert led.lists == before + READERS
