"""Reader and a ZooKeeper in which anybody writes: HDFS confirms every record before it is used."""

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from leader.errors import NoLeader, Unreachable
from leader.layout.information import LeaderInformation, encode
from leader.layout.names import LeaderDirectory
from leader.layout.znodes import leader_path
from leader.lookup.answers import Source
from leader.lookup.job_lookup import VERIFICATION_SHARE
from leader.lookup.rate_limit import JOB_BURST, JOB_PAUSE_S, LEAST_ASKED
from leader.lookup.reader import Reader
from store.clock import now
from store.errors import DeadlineExceeded, NotFound
from store.files import Entry
from store.zookeeper import Connection, ZooKeeper
from tests.unit.leader.faulty import Place, in_threads
from tests.unit.leader.grants import FIRST, QUICK, SECOND, Grants
from tests.unit.leader.lookup.ticking import Ticking
from tests.unit.leader.samples import C

AUDIT_S = 30.0
HIGHER = LeaderDirectory(4_000_000_000, C)


class Copy:
    """A ZooKeeper whose record the test writes."""

    state = Connection.CONNECTED

    def __init__(self) -> None:
        self.record: bytes | None = None
        self.watchers: list[Any] = []

    def write(self, directory: LeaderDirectory, address: str, version: int = 1) -> None:
        self.record = encode(
            LeaderInformation("orders", directory.epoch, directory.session_id, {"rest": address}, version)
        )

    def start(self) -> None:
        pass

    def wait(self, timeout: float) -> None:
        pass

    def add_listener(self, _: object) -> None:
        pass

    remove_listener = add_listener

    def call(self, operation: Any, timeout: float) -> Any:
        del timeout
        if operation.path != leader_path("orders"):
            return b"cafe0123", SimpleNamespace(ephemeral_owner=0x1001, version=0)  # the leader's session lives
        self.watchers.append(operation.watch)
        if self.record is None:
            raise NotFound("orders")
        return self.record, None


class Stores:
    """Both stores, a leader in them, a clock, and a reader; counts the lists of HDFS."""

    def __init__(self, place: Place, grants: Grants) -> None:
        self.place, self.grants = place, grants
        self.copy, self.clock, self.lists = Copy(), Ticking(), list[str]()
        self.reader = self.fresh_reader()
        listing = place.faulty.list

        def count(path: str) -> list[Entry]:
            self.lists.append(path)
            return listing(path)

        place.faulty.list = count  # type: ignore[method-assign]
        self.lead(FIRST, "a:1")

    def fresh_reader(self) -> Reader:
        reader = Reader(self.place.files, cast(ZooKeeper, self.copy), QUICK, audit=AUDIT_S, clock=self.clock)
        reader.rate_limit._unlimited = reader.verifications._unlimited = False  # as if it were a NameNode
        return reader

    def lead(self, directory: LeaderDirectory, address: str, version: int = 1) -> None:
        """A leader publishes, first in HDFS and then in ZooKeeper."""
        if directory != self.grants.directory:
            self.grants.claim(directory)
        self.grants.publish(address, version)
        self.copy.write(directory, address, version)

    def answer(self, timeout: float = 2.0) -> tuple[int, str, Source, bool]:
        found = self.reader.leader("orders", timeout)
        return found.epoch, found.endpoints["rest"], found.source, found.verified


@pytest.fixture
def stores(place: Place, grants: Grants) -> Stores:
    return Stores(place, grants)


def test_a_record_is_verified_once_by_one_list_and_then_believed(stores: Stores) -> None:
    assert stores.answer() == (1, "a:1", Source.ZOOKEEPER, True)
    assert len(stores.lists) == 1
    for _ in range(10):
        assert stores.answer() == (1, "a:1", Source.ZOOKEEPER, True)
    assert len(stores.lists) == 1
    assert stores.reader.fallbacks == {"unverified": 1}


def test_a_new_leader_and_its_next_publication_are_verified_by_one_list_each(stores: Stores) -> None:
    stores.answer()
    stores.lead(SECOND, "b:1")
    assert stores.answer() == (2, "b:1", Source.ZOOKEEPER, True)
    stores.lead(SECOND, "b:2", version=2)
    assert stores.answer() == (2, "b:2", Source.ZOOKEEPER, True)
    assert len(stores.lists) == 3


FORGERIES = {
    "a higher epoch": HIGHER,
    "the same epoch, another session": LeaderDirectory(FIRST.epoch, C),
    "the same session, another address": FIRST,
}


@pytest.mark.parametrize("directory", FORGERIES.values(), ids=FORGERIES)
@pytest.mark.parametrize("fresh", [True, False], ids=["fresh", "not fresh"])
def test_a_forged_record_is_never_an_answer_while_hdfs_answers(
    stores: Stores, directory: LeaderDirectory, fresh: bool
) -> None:
    if not fresh:
        stores.answer()
    for version in range(2, 40):
        stores.copy.write(directory, "evil:1", version)
        assert stores.answer()[1] == "a:1"
        stores.clock.sleep(1.0)
    stores.copy.write(FIRST, "a:1")
    stores.clock.sleep(AUDIT_S / LEAST_ASKED)
    assert stores.answer()[1:] == ("a:1", Source.ZOOKEEPER, True)


def test_a_record_that_is_rewritten_all_the_time_costs_hdfs_little(stores: Stores) -> None:
    stores.answer()
    stores.clock.sleep(600.0)
    stores.lists.clear()
    for version in range(1, 60_001):
        if version % 2:
            stores.copy.write(LeaderDirectory(100 + version, C), "evil:1")
        else:
            stores.copy.write(FIRST, f"evil:{version}", version + 1)
        if version % 20 == 0 or version < 100:
            assert stores.answer()[1] == "a:1"
        stores.clock.sleep(0.001)
    assert len(stores.lists) <= 60, "as many as while ZooKeeper is away, twice, for forgery and correction"


def test_the_next_leader_is_found_within_the_limits_pause_after_a_flood(stores: Stores) -> None:
    stores.answer()
    for version in range(2, 100):
        stores.copy.write(FIRST, "evil:1", version)
        stores.answer()
        stores.clock.sleep(1.0)
    stores.lead(SECOND, "b:1")
    stores.clock.sleep(AUDIT_S / LEAST_ASKED)
    assert stores.answer() == (2, "b:1", Source.ZOOKEEPER, True)


def test_many_publications_in_a_row_are_followed(stores: Stores) -> None:
    stores.answer()
    stores.lead(SECOND, "b:0")
    for version in range(2, 1 + JOB_BURST):
        stores.lead(SECOND, f"b:{version}", version)
        assert stores.answer()[1] == f"b:{version}"
    stores.lead(SECOND, "b:last", 99)
    assert stores.answer()[1] == f"b:{JOB_BURST}", "HDFS said so a moment ago"
    stores.clock.sleep(1.01 * JOB_PAUSE_S)
    assert stores.answer()[1] == "b:last"


def test_the_next_leader_is_verified_after_those_who_waited_for_it_have_asked_hdfs_often(stores: Stores) -> None:
    stores.answer()
    stores.copy.record = None
    stores.grants.claim(SECOND)
    while stores.reader.rate_limit.wait(stores.reader._lookup("orders")._hdfs._limit._job) == 0:
        with pytest.raises(NoLeader):  # it has published nothing yet
            stores.answer(0.1)
    stores.lead(SECOND, "b:1")
    began = stores.clock.at
    assert stores.answer() == (2, "b:1", Source.ZOOKEEPER, True)
    assert stores.clock.at == began


# --- HDFS is silent


def test_without_hdfs_zookeepers_record_is_the_answer_and_says_that_it_is_not_verified(stores: Stores) -> None:
    stores.place.faulty.unreachable = True
    assert stores.answer() == (1, "a:1", Source.ZOOKEEPER, False)
    asked = len(stores.lists)
    for _ in range(10):
        assert stores.answer() == (1, "a:1", Source.ZOOKEEPER, False)
    assert len(stores.lists) == asked


def until(stores: Stores, expected: tuple[int, str, Source, bool]) -> float:
    """Look again and again; return the seconds on the reader's clock until that is the answer."""
    began, end = stores.clock.at, now() + 30
    while stores.answer() != expected:
        assert now() < end, stores.answer()
        stores.clock.sleep(0.1)
        for _ in range(20):
            stores.place.files.call("wait for audits", lambda _: None, 30)  # a worker is free again
    return stores.clock.at - began


@pytest.mark.parametrize("outage", [0.0, 10.0])
def test_hdfs_corrects_a_forgery_soon_after_it_is_back(stores: Stores, outage: float) -> None:
    stores.copy.write(HIGHER, "evil:1")
    stores.place.faulty.unreachable = True
    end = stores.clock.at + outage
    assert stores.answer()[1:] == ("evil:1", Source.ZOOKEEPER, False)
    while stores.clock.at < end:
        assert stores.answer()[1] == "evil:1"
        stores.clock.sleep(0.1)
    stores.place.faulty.unreachable = False
    assert until(stores, (1, "a:1", Source.HDFS, True)) <= 2 * JOB_PAUSE_S


def test_a_record_that_was_believed_without_hdfs_is_verified_soon_after_it_is_back(stores: Stores) -> None:
    stores.place.faulty.unreachable = True
    stores.answer()
    stores.place.faulty.unreachable = False
    assert until(stores, (1, "a:1", Source.ZOOKEEPER, True)) <= 2 * JOB_PAUSE_S


def test_a_refuted_record_is_not_believed_when_hdfs_falls_silent(stores: Stores) -> None:
    stores.copy.write(HIGHER, "evil:1")
    assert stores.answer()[1] == "a:1"
    stores.place.faulty.unreachable = True
    stores.clock.sleep(60.0)
    with pytest.raises(Unreachable):
        stores.answer()


def test_a_silent_hdfs_leaves_time_for_the_answer(stores: Stores) -> None:
    given: list[float] = []

    def outcome(name: str, operation: object, timeout: float) -> Any:
        del name, operation
        given.append(timeout)
        return failed

    failed = stores.place.files.outcome("lookup", _raise, 1.0)
    stores.place.files.outcome = outcome  # type: ignore[method-assign]
    assert stores.answer(2.0) == (1, "a:1", Source.ZOOKEEPER, False)
    assert given == [pytest.approx(2.0 * VERIFICATION_SHARE)]


def _raise(_: object) -> None:
    raise DeadlineExceeded("It hangs.")


def test_hdfs_that_must_not_be_asked_is_not_silent(stores: Stores) -> None:
    """Otherwise a flood of forgeries of one job would make those of others believed."""
    stores.reader.verifications._process._tokens = -1000.0
    stores.reader.verifications._process._filled_at = stores.clock.at
    with pytest.raises(Unreachable, match="often"):
        stores.answer()
    stores.clock.sleep(20.0)
    assert stores.answer()[1] == "a:1"


# --- who verifies


def test_many_threads_and_watches_verify_a_record_once(stores: Stores) -> None:
    stores.reader = Reader(stores.place.files, cast(ZooKeeper, stores.copy), QUICK)
    stop = threading.Event()

    def ask(number: int) -> Any:
        if number % 2:
            return stores.reader.leader("orders", 30).epoch
        look = next(stores.reader.looks("orders", stop, 30))
        return look.answer.epoch if look.answer is not None else None

    listing, all_ask = stores.place.faulty.list, threading.Event()

    def wait(path: str) -> list[Entry]:
        all_ask.wait(30)
        return listing(path)

    stores.place.faulty.list = wait  # type: ignore[method-assign]

    def release() -> None:
        end = now() + 30
        while len(stores.copy.watchers) < 11 and now() < end:  # 10 watches and one of the lookups
            stop.wait(0.001)
        all_ask.set()

    threading.Thread(target=release, daemon=True).start()
    assert in_threads(20, ask) == [1] * 20
    assert len(stores.lists) <= 2, "a thread may read ZooKeeper's record just after it was verified"


def test_a_watch_looks_again_when_a_new_record_may_be_verified(stores: Stores) -> None:
    """ZooKeeper reports no further change, and an audit is half a minute away."""
    stores.answer()
    for version in range(2, 2 + JOB_BURST):
        stores.lead(FIRST, f"a:{version}", version)
        stores.answer()
    looks = stores.reader.looks("orders", threading.Event(), 2.0)
    stores.lead(SECOND, "b:1")
    first = next(looks).answer
    assert first is not None
    assert first.epoch == 1, "HDFS said so a moment ago"
    began = stores.clock.at
    while (look := next(looks)).answer is None or look.answer.epoch == 1:
        pass
    assert stores.clock.at - began <= 2 * JOB_PAUSE_S


def test_the_age_of_a_look_counts_from_before_the_question(stores: Stores) -> None:
    """An agent that is frozen while it asks would otherwise pass an old answer on as a fresh one."""
    looks = stores.reader.looks("orders", threading.Event(), 2.0)
    call = stores.copy.call

    def freeze(operation: Any, timeout: float) -> Any:
        answer = call(operation, timeout)
        stores.clock.sleep(20.0)
        return answer

    stores.copy.call = freeze  # type: ignore[method-assign]
    for _ in range(2):  # the first look verifies, and the second one believes
        asked = stores.clock.at
        look = next(looks)
        assert look.answer is not None
        assert look.started == asked
        stores.copy.watchers[-1](None)
        stores.clock.sleep(1.0)


def test_the_age_of_a_look_that_a_watch_answers_counts_from_before_it_too(stores: Stores) -> None:
    looks = stores.reader.looks("orders", threading.Event(), 2.0, every=1.0)
    next(looks)
    before, asked = stores.clock.at, len(stores.copy.watchers)
    look = next(looks)
    assert len(stores.copy.watchers) == asked
    assert before < look.started <= before + 1.2


def test_the_age_of_an_answer_counts_from_before_the_question(stores: Stores) -> None:
    """Found by the simulator: a reader that was frozen in its question took the answer for new, and ZooKeeper for away.

    So it trusted that answer for two more seconds, and an agent passed it on.
    """
    stores.answer()
    call = stores.copy.call

    def freeze(operation: Any, timeout: float) -> Any:
        answer = call(operation, timeout)
        stores.clock.sleep(20.0)
        return answer

    stores.copy.call = freeze  # type: ignore[method-assign]
    assert stores.reader.leader("orders", 60.0).age == pytest.approx(20.0)
