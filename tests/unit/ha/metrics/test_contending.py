"""Metrics of leaderships: real contenders of this process, over real files."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ha.config.sources import load
from ha.daemon.process import ContendingProcess
from ha.leadership.notices import GrantNotice, NoticeQueue, RevocationNotice
from ha.metrics.contending import ContendingMetrics
from ha.metrics.process_metrics import LeaderChanges, Metrics
from leader.election.events import FilesCommand, FilesDone, Grant, ListJob, Rename, Revoke
from leader.errors import NoLeader
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from leader.observer import fan_out
from store.errors import NotFound, NotWritable, StoreError
from store.outcome import Outcome
from tests.unit.ha.led import Led, session
from tests.unit.ha.metrics.exposition import Exposition
from tests.unit.ha.waiting import wait_until

JOB = {"job_name": "orders"}


class Contending:
    def __init__(self, name: str) -> None:
        self.process = ContendingProcess(load({"contender": name}))
        self.notices = NoticeQueue()
        self.process.join("orders", self.notices)

    def contend(self) -> None:
        self.process.contend("orders", {})

    def release(self) -> None:
        self.process.release("orders")

    def wait(self, kind: type[GrantNotice | RevocationNotice]) -> Any:
        return wait_until(lambda: found if isinstance(found := self.notices.get(0.1), kind) else None)

    def value(self, name: str, /, **labels: str) -> float:
        return Exposition(self.process.metrics.registry).value(name, **labels)


@pytest.fixture
def contending(quick: Path) -> Iterator[Callable[[str], Contending]]:
    del quick
    made: list[Contending] = []

    def make(name: str) -> Contending:
        made.append(Contending(name))
        return made[-1]

    yield make
    for each in made:
        each.process.close()


def test_a_leadership_from_its_grant_to_its_end(contending: Callable[[str], Contending]) -> None:
    first, second = contending("a"), contending("b")
    assert (first.value("ha_is_leader", **JOB), first.value("ha_belief_remaining_seconds", **JOB)) == (0, 0)
    first.contend()
    first.wait(GrantNotice)
    assert first.value("ha_is_leader", **JOB) == 1
    assert 0 < first.value("ha_belief_remaining_seconds", **JOB) <= 10, "not more than its short_ttl"
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
    first.wait(RevocationNotice)
    second.wait(GrantNotice)
    assert first.value("ha_is_leader", **JOB) == 0
    assert first.value("ha_revocations_total", **JOB) == 1
    assert first.value("ha_fenced_operations_total", **JOB) == 0, "it gave it back"
    assert second.value("ha_is_leader", **JOB) == 1
    assert second.value("ha_grants_total", **JOB, reason="released") == 1
    assert second.value("ha_takeover_seconds_count", reason="released") == 1
    assert second.value("ha_leader_changes_total", **JOB) == 1
    assert second.value("ha_epoch", **JOB) == 2
    with pytest.raises(NoLeader):
        first.process.reader.leader("nothing")
    assert first.value("ha_lookups_total", source="none", outcome="no_leader") == 1, "what its API answers"
    assert first.value("ha_lookup_fallbacks_total", reason="none") >= 1


def test_a_leader_without_directory_counts_refused_writes(contending: Callable[[str], Contending], quick: Path) -> None:
    leader = contending("a")
    leader.contend()
    leader.wait(GrantNotice)
    Led(quick).claim("orders", "b:1")
    leader.wait(RevocationNotice)
    assert leader.value("ha_fenced_operations_total", **JOB) == 1
    assert leader.value("ha_revocations_total", **JOB) == 1
    assert leader.value("ha_leader_changes_total", **JOB) == 2


def test_a_request_to_hand_over_is_no_fence(contending: Callable[[str], Contending], quick: Path) -> None:
    leader = contending("a")
    leader.contend()
    leader.wait(GrantNotice)
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
    leader.wait(RevocationNotice)
    refused = "ha_store_call_seconds_count"
    wait_until(lambda: leader.value(refused, store="files", operation="rename", outcome="refused"))
    wait_until(lambda: not leader.process.holds("orders"))
    assert leader.value("ha_fenced_operations_total", **JOB) == 0


class Takeover:
    def __init__(self) -> None:
        self.at = 0.0
        self.metrics = Metrics()
        self.contending = ContendingMetrics(self.metrics.registry, self.metrics.changes, "a", lambda: self.at)

    def run(self, command: FilesCommand, error: StoreError | None = None, names: list[str] | None = None) -> None:
        self.contending.observe("orders", command)
        self.contending.observe("orders", FilesDone(command, Outcome(names, error, 0.0, 0.0)))

    def grant(self, epoch: int, reason: str) -> float:
        before = self._sum(reason)
        self.contending.observe("orders", Grant(epoch, session(epoch), reason))
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
    takeover.at = 10.0
    takeover.run(seizure(THEIRS, 2), NotWritable("safe mode"))
    takeover.at = 11.0
    takeover.run(seizure(THEIRS, 3))
    own = Lease(6, Mode.HDFS, 6000, session(3), "", "a")
    takeover.at = 13.0
    takeover.run(seizure(own, 4))  # its answer was lost, or too late
    takeover.at = 13.5
    assert takeover.grant(2, "expired") == 3.5


def test_after_a_lost_race_the_next_takeover_begins_anew() -> None:
    takeover = Takeover()
    takeover.run(seizure(THEIRS, 2), NotFound("somebody else was faster"))
    takeover.at = 86_400.0
    takeover.run(seizure(Lease(900, Mode.RELEASED, 0, session(1), "", "c"), 3))
    takeover.at += 0.25
    assert takeover.grant(2, "released") == 0.25


def test_renewals_are_no_takeover() -> None:
    takeover = Takeover()
    own = Lease(6, Mode.HDFS, 6000, session(2), "", "a")
    takeover.run(seizure(own, 2))
    assert takeover.grant(2, "released") == 0.0
    assert takeover.count() == 0


def test_every_reason_is_there_before_its_first_takeover() -> None:
    """To Prometheus, a counter that appears at 1 has always been 1, so the takeover would go unseen."""
    runbook = (Path(__file__).resolve().parents[4] / "docs" / "operations" / "who-leads.md").read_text()
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
    contending = ContendingMetrics(metrics.registry, metrics.changes, "a")
    for until in (None, 5.0):
        contending.observe("orders", Revoke(session(1), "It was asked to.", until))
    contending.observe("orders", Revoke(session(2), "It was asked to.", None))
    assert Exposition(metrics.registry).value("ha_revocations_total", **JOB) == 2


def test_an_unchanged_listing_is_no_fence() -> None:
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


def test_a_late_claim_is_no_fence() -> None:
    takeover = Takeover()
    takeover.grant(1, "released")
    before, theirs, mine = (LeaderDirectory(epoch, session(epoch)) for epoch in (4, 5, 6))
    takeover.run(Rename(before.name, mine.name), NotFound("gone"))
    takeover.run(ListJob(), names=[theirs.name])
    assert Exposition(takeover.metrics.registry).value("ha_fenced_operations_total", **JOB) == 0


def test_an_error_in_a_metric_reaches_nobody_else(
    contending: Callable[[str], Contending], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: LeaderChanges, __: str, ___: int) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(LeaderChanges, "saw", fail)
    seen: list[object] = []
    takeover = Takeover()
    observe = fan_out(takeover.contending.observe, lambda _, happened: seen.append(happened))
    assert observe is not None
    listed = FilesDone(ListJob(), Outcome([LeaderDirectory(1, session(1)).name], None, 0.0, 0.0))
    observe("orders", listed)
    assert seen == [listed], "the next observer hears of it"
    assert "broken on purpose" in caplog.text, "and so does the log"
    leader = contending("a")
    leader.contend()
    leader.wait(GrantNotice)
