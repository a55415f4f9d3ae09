"""Reader and a ZooKeeper in which anybody writes: HDFS confirms every record before it is used."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from leader.errors import NoLeader, Unreachable
from leader.layout.information import LeaderInformation
from leader.layout.names import LeaderDirectory
from leader.layout.znodes import leader_path
from leader.lookup.answers import Snapshot, Source
from leader.lookup.job_lookup import VERIFICATION_SHARE
from leader.lookup.rate_limit import JOB_BURST, JOB_PAUSE_S, LEAST_ASKED
from leader.lookup.reader import Reader
from store.clock import now
from store.errors import ConnectionLost, DeadlineExceeded, NotFound
from tests.patience import PATIENCE_S
from tests.unit.leader.faulty import Place, hanging, in_threads
from tests.unit.leader.grants import FIRST, QUICK, SECOND, Grants, PlayedZooKeeper, written
from tests.unit.leader.lookup.ticking import Ticking
from tests.unit.leader.samples import C

AUDIT_S = 30.0
HIGHER = LeaderDirectory(4_000_000_000, C)


class Copy(PlayedZooKeeper):
    def __init__(self) -> None:
        self.record: bytes | None = None
        self.watchers: list[Any] = []

    def write(self, directory: LeaderDirectory, address: str, version: int = 1) -> None:
        self.record = written(directory, address, version)

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
        place.faulty.before_list = self.lists.append
        self.lead(FIRST, "a:1")

    def fresh_reader(self) -> Reader:
        reader = Reader(self.place.files, self.copy.client, QUICK, audit=AUDIT_S, clock=self.clock)
        reader.rate_limit._unlimited = reader.verifications._unlimited = False  # as if it were a NameNode
        return reader

    def lead(self, directory: LeaderDirectory, address: str, version: int = 1) -> None:
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
def test_a_forged_record_is_no_answer_while_hdfs_is_up(stores: Stores, directory: LeaderDirectory, fresh: bool) -> None:
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


def test_without_hdfs_zookeepers_record_is_the_answer_and_says_that_it_is_not_verified(stores: Stores) -> None:
    stores.place.faulty.unreachable = True
    assert stores.answer() == (1, "a:1", Source.ZOOKEEPER, False)
    asked = len(stores.lists)
    for _ in range(10):
        assert stores.answer() == (1, "a:1", Source.ZOOKEEPER, False)
    assert len(stores.lists) == asked


def until(stores: Stores, expected: tuple[int, str, Source, bool]) -> float:
    """Look again and again; return the seconds on the reader's clock until that is the answer."""
    began, end = stores.clock.at, now() + PATIENCE_S
    while stores.answer() != expected:
        assert now() < end, stores.answer()
        stores.clock.sleep(0.1)
        for _ in range(20):
            stores.place.files.call("wait for audits", lambda _: None, PATIENCE_S)  # a worker is free again
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


def test_many_threads_and_watches_verify_a_record_once(stores: Stores) -> None:
    stores.reader = Reader(stores.place.files, stores.copy.client, QUICK)
    stop, all_ask = threading.Event(), threading.Event()

    def ask(number: int) -> Any:
        if number % 2:
            return stores.reader.leader("orders", 30).epoch
        look = next(stores.reader.looks("orders", stop, 30))
        return look.answer.epoch if look.answer is not None else None

    def until_all_ask(path: str) -> None:
        stores.lists.append(path)
        all_ask.wait(PATIENCE_S)

    def release() -> None:
        end = now() + PATIENCE_S
        while len(stores.copy.watchers) < 11 and now() < end:  # 10 watches and one of the lookups
            stop.wait(0.001)
        all_ask.set()

    stores.place.faulty.before_list = until_all_ask
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


def test_the_age_of_a_look_or_an_answer_counts_from_before_the_question(stores: Stores) -> None:
    """An agent that is frozen while it asks would otherwise pass an old answer on as a fresh one.

    Found by the simulator: a reader that was frozen in its question trusted the answer for two more seconds.
    """
    stores.answer()
    looks = stores.reader.looks("orders", threading.Event(), 2.0)
    call = stores.copy.call

    def freeze(operation: Any, timeout: float) -> Any:
        answer = call(operation, timeout)
        stores.clock.sleep(20.0)
        return answer

    stores.copy.call = freeze  # type: ignore[method-assign]
    assert stores.reader.leader("orders", 60.0).age == pytest.approx(20.0)
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


def test_a_watch_asks_again_after_a_sleep(stores: Stores) -> None:
    """Found by the simulator: an agent that woke up wrote its old answer as a new one, and as confirmed by HDFS."""
    stores.answer()
    looks = stores.reader.looks("orders", threading.Event(), 2.0, every=1.0)
    asked = [len(stores.copy.watchers) for _, _ in zip(range(3), looks, strict=False)]
    assert asked[0] == asked[2], "while it is awake, no news is good news"
    wait = stores.clock.wait

    def sleep(event: threading.Event, seconds: float) -> bool:
        stores.clock.wait = wait  # type: ignore[method-assign]
        stores.clock.sleep(20.0)
        return wait(event, seconds)

    stores.clock.wait = sleep  # type: ignore[method-assign]
    stores.lead(SECOND, "b:1")
    look = next(looks)
    assert look.answer is not None
    assert (look.answer.epoch, len(stores.copy.watchers)) == (2, asked[2] + 1)


def test_a_lookup_with_little_time_does_not_wait_for_one_with_much(stores: Stores) -> None:
    """HDFS is away: ZooKeeper could have been asked within the time that there was."""
    stores.answer()
    hangs, ends = threading.Event(), threading.Event()
    stores.place.faulty.before_list = hanging(hangs, ends)
    stores.lead(SECOND, "b:1")
    patient = threading.Thread(target=stores.answer, args=(60.0,), daemon=True)
    patient.start()
    assert hangs.wait(PATIENCE_S)
    stores.clock.sleep(30.0)  # HDFS has not answered lately
    assert stores.answer(1.0) == (2, "b:1", Source.ZOOKEEPER, False)
    ends.set()
    patient.join(PATIENCE_S)


class FromAnAgent:
    def __init__(self, directory: LeaderDirectory, address: str, clock: Ticking) -> None:
        self.snapshot: Snapshot | None = Snapshot(
            "orders",
            directory.epoch,
            directory.session_id,
            LeaderInformation("orders", directory.epoch, directory.session_id, {"rest": address}, 1),
            clock.at,
            clock.at + 3.0,
            verified=False,
        )

    def find(self, job: str) -> Snapshot | None:
        return self.snapshot if job == "orders" else None

    def ask(self, job: str, timeout: float) -> Snapshot | None:
        del job, timeout
        return None

    def subscribe(self, job: str, changed: threading.Event) -> None:
        """Nothing is reported."""

    unsubscribe = subscribe


def test_what_an_agent_said_counts_while_hdfs_must_not_be_asked(stores: Stores) -> None:
    """Both stores answer, so no lookup may be told that none does."""
    stores.answer()
    for version in range(2, 2 + JOB_BURST):  # no news: all tokens are used up
        stores.copy.write(HIGHER, "evil:1", version)
        stores.answer()
    stores.lead(SECOND, "b:1")
    stores.clock.sleep(0.2)  # HDFS has its own clock here
    lookup = stores.reader._jobs["orders"]
    agent = lookup._snapshots = FromAnAgent(SECOND, "b:1", stores.clock)
    assert stores.answer() == (2, "b:1", Source.SNAPSHOT, False)
    agent.snapshot, lists = None, len(stores.lists)
    assert stores.answer()[:2] == (2, "b:1")
    assert len(stores.lists) == lists


@pytest.fixture
def doubted(stores: Stores) -> Stores:
    """A reader that took a forgery while HDFS was away; its agent has heard of HDFS meanwhile."""
    stores.copy.write(HIGHER, "evil:1")
    stores.place.faulty.unreachable = True
    assert stores.answer()[1] == "evil:1"
    stores.place.faulty.unreachable = False
    stores.clock.sleep(20.0)
    agent = FromAnAgent(FIRST, "a:1", stores.clock)
    assert agent.snapshot is not None
    agent.snapshot = replace(agent.snapshot, information=None, verified=True)
    stores.reader._jobs["orders"]._snapshots = agent
    return stores


def test_a_forgery_of_an_outage_is_not_used_again_when_an_agent_has_heard_of_hdfs(doubted: Stores) -> None:
    assert doubted.answer()[1] == "a:1"


def test_nor_is_it_while_hdfs_must_not_be_asked(doubted: Stores) -> None:
    doubted.reader.verifications._process._tokens = -1000.0
    doubted.reader.verifications._process._filled_at = doubted.clock.at
    with pytest.raises(Unreachable, match="often"):
        doubted.answer()


def test_nor_is_it_for_a_moment_when_zookeeper_is_lost(doubted: Stores) -> None:
    def lost(operation: Any, timeout: float) -> Any:
        raise ConnectionLost(f"{operation.path} within {timeout} s")

    doubted.copy.call = lost  # type: ignore[method-assign]
    doubted.reader._jobs["orders"]._watch_relied_on_at = doubted.clock.at  # a moment ago
    assert doubted.answer()[1] == "a:1"
