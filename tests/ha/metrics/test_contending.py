"""Metrics of leaderships: real contenders of this process, over real files."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ha.inbox import Granted, Inbox, Revoked
from ha.metrics.changes import LeaderChanges
from ha.metrics.contending import ContendingMetrics
from ha.metrics.process import Metrics
from ha.node import Node
from ha.settings import load
from leader.environment import FilesAnswer, Line, NodeAnswer, Sign, Timer
from leader.errors import NoLeader
from leader.events import FilesCommand, Grant, ListJob, Rename, Revoke
from leader.lease import Lease, Mode
from leader.names import LeaderDirectory
from leader.nodes import NodeCommand
from leader.whereabouts import Whereabouts
from store.errors import NotFound, NotWritable, StoreError
from store.outcome import Outcome
from tests.ha.led import Led, session
from tests.ha.metrics.exposition import Exposition
from tests.ha.waiting import PATIENCE, wait_until

JOB = {"job_name": "orders"}


class Contending:
    """A process that contends for the job, as a daemon does it."""

    def __init__(self, name: str) -> None:
        self.node = Node(load({"contender": name}))
        self.inbox = Inbox()
        self.node.runtime.ask(lambda: self.node.contender.join("orders", self.node.leads(self.inbox)), PATIENCE)

    def contend(self) -> None:
        self.node.runtime.post(lambda: self.node.contender.contend("orders"))

    def release(self) -> None:
        self.node.runtime.post(lambda: self.node.contender.release("orders"))

    def wait(self, kind: type[Granted | Revoked]) -> Any:
        return wait_until(lambda: found if isinstance(found := self.inbox.get(0.1), kind) else None)

    def value(self, name: str, /, **labels: str) -> float:
        return Exposition(self.node.metrics.registry).value(name, **labels)


@pytest.fixture
def contending(quick: Path) -> Iterator[Callable[[str], Contending]]:
    del quick
    made: list[Contending] = []

    def make(name: str) -> Contending:
        made.append(Contending(name))
        return made[-1]

    yield make
    for each in made:
        each.node.close()


def test_a_leadership_from_its_grant_to_its_end(contending: Callable[[str], Contending]) -> None:
    first, second = contending("a"), contending("b")
    assert (first.value("ha_is_leader", **JOB), first.value("ha_belief_remaining_seconds", **JOB)) == (0, 0)
    first.contend()
    first.wait(Granted)
    assert first.value("ha_is_leader", **JOB) == 1
    assert 0 < first.value("ha_belief_remaining_seconds", **JOB) <= 2, "not more than its short_ttl"
    assert first.value("ha_epoch", **JOB) == 1
    assert first.value("ha_grants_total", **JOB, reason="released") == 1
    assert first.value("ha_takeover_seconds_count", reason="released") == 1
    assert first.value("ha_leader_changes_total", **JOB) == 1, "from nobody to a"
    assert first.value("ha_namenode_operations_total", operation="list") == 0, "file:// has none"
    assert first.value("ha_store_call_seconds_count", store="files", operation="rename", outcome="done") >= 2

    second.contend()
    wait_until(lambda: second.value("ha_epoch", **JOB) == 1, what="the standby has looked")
    assert second.value("ha_is_leader", **JOB) == 0
    first.release()
    first.wait(Revoked)
    second.wait(Granted)
    assert first.value("ha_is_leader", **JOB) == 0
    assert first.value("ha_revocations_total", **JOB) == 1
    assert first.value("ha_fenced_operations_total", **JOB) == 0, "it gave it back"
    assert second.value("ha_is_leader", **JOB) == 1
    assert second.value("ha_grants_total", **JOB, reason="released") == 1
    assert second.value("ha_takeover_seconds_count", reason="released") == 1
    assert second.value("ha_leader_changes_total", **JOB) == 1
    assert second.value("ha_epoch", **JOB) == 2
    with pytest.raises(NoLeader):
        first.node.reader.leader("nothing")
    assert first.value("ha_lookups_total", source="none", outcome="no_leader") == 1, "what its API answers"
    assert first.value("ha_lookup_fallbacks_total", reason="none") >= 1


def test_a_leader_whose_directory_is_gone_counts_what_was_refused(
    contending: Callable[[str], Contending], quick: Path
) -> None:
    leader = contending("a")
    leader.contend()
    leader.wait(Granted)
    Led(quick).claim("orders", "b:1")
    leader.wait(Revoked)
    assert leader.value("ha_fenced_operations_total", **JOB) == 1
    assert leader.value("ha_revocations_total", **JOB) == 1
    assert leader.value("ha_leader_changes_total", **JOB) == 2


def test_a_request_to_hand_over_refuses_a_renewal_and_is_no_fence(
    contending: Callable[[str], Contending], quick: Path
) -> None:
    leader = contending("a")
    leader.contend()
    leader.wait(Granted)
    led = Led(quick)

    def mark() -> bool:
        record = f"orders/{led._directory('orders').name}/record"
        (held,) = [lease for entry in led.files.list(record) if (lease := Lease.parse(entry.name))]
        try:
            led.files.rename(f"{record}/{held.name}", f"{record}/{held.asked_to('_any').name}")
        except NotFound:
            return False  # it has just been renewed
        return True

    wait_until(mark)
    leader.release()
    leader.wait(Revoked)
    refused = "ha_store_call_seconds_count"
    wait_until(lambda: leader.value(refused, store="files", operation="rename", outcome="refused"))
    wait_until(lambda: not leader.node.holds("orders"))
    assert leader.value("ha_fenced_operations_total", **JOB) == 0


# --- takeovers, to the moment


class Scripted:
    """An environment whose clock and answers are the test's."""

    def __init__(self) -> None:
        self.at = 0.0
        self.sent: list[tuple[FilesCommand, FilesAnswer]] = []

    def now(self) -> float:
        return self.at

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        raise NotImplementedError

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        raise NotImplementedError

    def call(self, where: Whereabouts, heard: Callable[[Sign], None]) -> Line:
        raise NotImplementedError

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        assert job == "orders"
        self.sent.append((command, answer))


class Takeover:
    """What one contender called "a" does, command by command."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.contending = ContendingMetrics(self.metrics.registry, self.metrics.changes)
        self.scripted = Scripted()
        self.environment = self.contending.environment(self.scripted, "a")
        self.heard: list[StoreError | None] = []

    def run(self, command: FilesCommand, error: StoreError | None = None, names: list[str] | None = None) -> None:
        self.environment.run_files("orders", command, lambda outcome: self.heard.append(outcome.error))
        sent, answer = self.scripted.sent[-1]
        assert sent is command
        answer(Outcome(names, error, 0.0, 0.0))
        assert self.heard[-1] is error, "the election hears what it would have heard"

    def grant(self, epoch: int, reason: str) -> float:
        """The seconds that were observed."""
        before = self._sum(reason)
        self.contending.granted("orders", Grant(epoch, session(epoch), reason), self.scripted.at)
        return self._sum(reason) - before

    def _sum(self, reason: str) -> float:
        return Exposition(self.metrics.registry).value("ha_takeover_seconds_sum", reason=reason)

    def count(self) -> float:
        return sum(
            sample.value
            for family in Exposition(self.metrics.registry).families
            for sample in family.samples
            if sample.name == "ha_takeover_seconds_count"
        )


def seizure(before: Lease, by: int, contender: str = "a") -> Rename:
    after = Lease(before.sequence + 1, Mode.HDFS, 6000, session(by), "", contender)
    home = f"{LeaderDirectory(1, session(1)).name}/record"
    return Rename(f"{home}/{before.name}", f"{home}/{after.name}")


THEIRS = Lease(5, Mode.HDFS, 6000, session(1), "", "b")


def test_a_takeover_lasts_from_the_first_try_to_the_grant() -> None:
    takeover = Takeover()
    takeover.scripted.at = 10.0
    takeover.run(seizure(THEIRS, 2), NotWritable("safe mode"))
    takeover.scripted.at = 11.0
    takeover.run(seizure(THEIRS, 3))
    own = Lease(6, Mode.HDFS, 6000, session(3), "", "a")
    takeover.scripted.at = 13.0
    takeover.run(seizure(own, 4))  # its answer was lost, or too late
    takeover.scripted.at = 13.5
    assert takeover.grant(2, "expired") == 3.5


def test_who_was_overtaken_begins_anew() -> None:
    takeover = Takeover()
    takeover.run(seizure(THEIRS, 2), NotFound("somebody else was faster"))
    takeover.scripted.at = 86_400.0
    takeover.run(seizure(Lease(900, Mode.RELEASED, 0, session(1), "", "c"), 3))
    takeover.scripted.at += 0.25
    assert takeover.grant(2, "released") == 0.25


def test_renewals_are_no_takeover() -> None:
    takeover = Takeover()
    own = Lease(6, Mode.HDFS, 6000, session(2), "", "a")
    takeover.run(seizure(own, 2))
    assert takeover.grant(2, "released") == 0.0
    assert takeover.count() == 0


def test_every_reason_is_there_before_its_first_takeover() -> None:
    """To Prometheus, a counter that comes up at 1 has always been 1: the takeover would be seen by nobody."""
    runbook = (Path(__file__).resolve().parents[3] / "docs" / "operations.md").read_text()
    reasons = re.findall(r"^\| `([a-z-]+)` \| ", runbook.partition("| reason |")[2].partition("\n\n")[0], re.MULTILINE)
    takeover = Takeover()
    takeover.run(ListJob(), names=[])
    shown = [sample for family in Exposition(takeover.metrics.registry).families for sample in family.samples]
    for name, labels in (("ha_grants_total", JOB), ("ha_takeover_seconds_count", {})):
        zeros = [each.labels for each in shown if each.name == name and each.value == 0]
        assert len(reasons) == 6
        assert sorted(zeros, key=str) == sorted(({**labels, "reason": reason} for reason in reasons), key=str)


def test_one_leadership_ends_once() -> None:
    metrics = Metrics()
    contending = ContendingMetrics(metrics.registry, metrics.changes)
    for until in (None, 5.0):
        contending.revoked("orders", Revoke(session(1), "It was asked to.", until))
    contending.revoked("orders", Revoke(session(2), "It was asked to.", None))
    assert Exposition(metrics.registry).value("ha_revocations_total", **JOB) == 2


def test_a_listing_that_says_the_same_is_no_fence() -> None:
    takeover = Takeover()
    own = LeaderDirectory(1, session(1))
    takeover.grant(1, "released")
    renewal = Rename(f"{own.name}/record/x", f"{own.name}/record/y")
    takeover.run(renewal, NotFound("gone"))
    takeover.run(ListJob(), names=[own.name])
    takeover.run(ListJob(), names=[own.name, LeaderDirectory(2, session(2)).name])
    assert Exposition(takeover.metrics.registry).value("ha_fenced_operations_total", **JOB) == 0
    takeover.run(renewal, NotFound("gone"))
    takeover.run(ListJob(), names=[LeaderDirectory(2, session(2)).name])
    assert Exposition(takeover.metrics.registry).value("ha_fenced_operations_total", **JOB) == 1


def test_who_is_too_late_for_a_claim_was_not_fenced() -> None:
    takeover = Takeover()
    takeover.grant(1, "released")
    before, theirs, mine = (LeaderDirectory(epoch, session(epoch)) for epoch in (4, 5, 6))
    takeover.run(Rename(before.name, mine.name), NotFound("gone"))
    takeover.run(ListJob(), names=[theirs.name])
    assert Exposition(takeover.metrics.registry).value("ha_fenced_operations_total", **JOB) == 0


def test_an_error_in_a_metric_reaches_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: LeaderChanges, __: str, ___: int) -> None:
        raise RuntimeError("broken on purpose")

    takeover = Takeover()
    monkeypatch.setattr(LeaderChanges, "saw", fail)
    with pytest.raises(RuntimeError):  # for the log of the contender's thread
        takeover.run(ListJob(), names=[LeaderDirectory(1, session(1)).name])
    assert takeover.heard == [None]
    inbox = Inbox()
    with pytest.raises(RuntimeError):
        takeover.contending.leads(inbox).granted("orders", Grant(1, session(1), "released"))
    assert isinstance(inbox.get(0), Granted)
