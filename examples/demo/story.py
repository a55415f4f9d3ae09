"""Story: the faults of the demo in their order, and the measurements during them."""

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from examples.demo.lookups import Reader
from examples.demo.participant import Participant, alive
from examples.demo.terminal import Terminal
from ha.sandbox.sandbox import Sandbox
from store.clock import now

ORPHANS_LIMIT = 5.0
"""Seconds until everything below a killed sidecar has to be gone."""

TAKEOVER_LIMIT = 60.0
BATCH_LIMIT = 120.0
STATUS_EVERY = 5.0
OUTAGE = 12.0


_REFUSAL = re.compile(
    r"(File does not exist: \S+|[Rr]ename source \S+ is not found|Parent directory doesn't exist: \S+)"
)
"""Error of the NameNode for a driver whose leader directory another leader has taken."""


class DemoError(Exception):
    """The demo cannot continue."""


@dataclass
class Takeover:
    """One change of leader."""

    cause: str
    epoch: int
    seconds: float
    first_batch_seconds: float | None = None


@dataclass
class Findings:
    """The measurements."""

    takeovers: list[Takeover] = field(default_factory=list)
    changes_from_outage: int = -1
    outage_sources: dict[str, int] = field(default_factory=dict)
    zombie_epoch: int = -1
    zombie_processes: int = 0
    zombie_refusals: list[str] = field(default_factory=list)
    zombie_died: bool = False
    """Whether its driver ended by itself: by a refusal, or by a call that was in progress when it was frozen."""
    orphans: int = -1


class Story:
    """Kills, stops and freezes, in this order; the job continues."""

    def __init__(
        self,
        terminal: Terminal,
        sandbox: Sandbox,
        reader: Reader,
        start: Callable[[str], Participant],
        batches: Callable[[], int],
        fed: Callable[[], int],
    ) -> None:
        self.findings = Findings()
        self.participants: dict[str, Participant] = {}
        self._terminal = terminal
        self._sandbox = sandbox
        self._reader = reader
        self._start = start
        self._batches = batches
        self._fed = fed
        self._shown_at = 0.0
        self._woken_at = 0

    def begin(self) -> None:
        """Start two sidecars; the first that is granted the job runs it."""
        self._terminal.chapter("Two sidecars start, each with the same PySpark program.")
        for name in ("a", "b"):
            self.participants[name] = self._start(name)
        self._wait("a leader", lambda: self._epoch() >= 1, TAKEOVER_LIMIT)
        self._say_who_leads()
        self._wait("the first batch", lambda: self._batches() >= 1, BATCH_LIMIT)
        self._terminal.event("The first batch is counted.")

    def kill_the_leader(self) -> None:
        """Send SIGKILL to the leading sidecar; its driver must die with it."""
        leader = self._leader()
        self._terminal.chapter(f"kill -9 of the leading sidecar, {leader.name}.")
        family = leader.family()[1:]
        killed = now()
        leader.kill_sidecar()
        self._take_over("kill -9 of the sidecar", killed)
        self.findings.orphans = self._left_of(family)
        self.participants[leader.name] = self._start(leader.name)
        self._terminal.event(f"{leader.name} is started again, as a standby.")
        self._await_batch(killed)

    def _left_of(self, family: Sequence[int]) -> int:
        """How many of these processes do not end in time; a Python worker ends once it reads that its JVM is gone."""
        end = now() + ORPHANS_LIMIT
        while (left := alive(family)) and now() < end:
            threading.Event().wait(0.05)
        return len(left)

    def stop_zookeeper(self) -> None:
        """Stop all of ZooKeeper for a while."""
        before, sources = self._epoch(), dict(self._reader.lookups.by_source)
        self._terminal.chapter(f"ZooKeeper is stopped for {OUTAGE:.0f} s.")
        self._sandbox.stop("zookeeper-1")
        batches = self._batches()
        self._idle(OUTAGE)
        self._terminal.event(f"{self._batches() - batches} batches were counted meanwhile. ZooKeeper is started again.")
        self._sandbox.start("zookeeper-1")
        self._wait("lookups from ZooKeeper", lambda: self._source() == "zookeeper", TAKEOVER_LIMIT)
        after = self._reader.lookups.by_source
        self.findings.outage_sources = {source: after[source] - sources.get(source, 0) for source in after}
        self.findings.changes_from_outage = self._epoch() - before
        self._terminal.event(f"Lookups come from ZooKeeper again; epoch {before} still leads.")

    def freeze_the_leader(self) -> None:
        """Freeze the leading sidecar and its driver until another leads; then wake them, the driver first."""
        leader, epoch = self._leader(), self._epoch()
        self._terminal.chapter(f"The leading sidecar, {leader.name}, and its driver are frozen.")
        frozen = now()
        leader.freeze()
        self.findings.zombie_epoch = epoch
        self.findings.zombie_processes = len(leader.family())
        self._take_over("freeze of sidecar and driver", frozen)
        self._await_batch(frozen)
        family = leader.family()[2:]
        self._terminal.chapter(f"The zombie's driver is woken: it still believes in epoch {epoch}.")
        self._woken_at = leader.log.stat().st_size
        leader.wake_driver()
        self._wait("the zombie's driver to fail", lambda: bool(self._refusals(leader)) or not alive(family), 30.0)
        self.findings.zombie_refusals, self.findings.zombie_died = self._refusals(leader), not alive(family)
        for sentence in self.findings.zombie_refusals[:1]:
            self._terminal.event(f"HDFS refused what it wrote: {sentence[:160]}")
        leader.wake()
        self._wait("the zombie's driver to be gone", lambda: not alive(family), 30.0)
        self._terminal.event("The zombie's sidecar is awake: it has stopped its driver and is a standby.")

    def end(self) -> list[int | None]:
        """Let the job finish; returns the exit codes of the sidecars."""
        return [participant.wait(BATCH_LIMIT) for participant in self.participants.values()]

    # --- watching

    def idle_until(self, reached: Callable[[], bool], what: str, limit: float) -> None:
        """Let the job work until a condition is true."""
        self._wait(what, reached, limit)

    def _idle(self, seconds: float) -> None:
        end = now() + seconds
        while now() < end:
            threading.Event().wait(0.1)
            self._show()

    def _wait(self, what: str, reached: Callable[[], bool], limit: float) -> None:
        end = now() + limit
        while not reached():
            if now() >= end:
                raise DemoError(f"There was no sign of {what} in {limit:.0f} s: see build/demo/*.log.")
            threading.Event().wait(0.05)
            self._show()

    def _show(self) -> None:
        if now() - self._shown_at < STATUS_EVERY:
            return
        self._shown_at = now()
        lookups = self._reader.lookups
        newest = lookups.newest
        who = f"epoch {newest.epoch} at {newest.endpoints.get('jobmaster')}" if newest else "no leader yet"
        sources = ", ".join(f"{count} {source}" for source, count in sorted(lookups.by_source.items())) or "none"
        done = f"files fed {self._fed()} · batches {self._batches()}"
        self._terminal.status(f"{who} · {done} · lookups: {sources}, {len(lookups.failed)} failed")

    def _take_over(self, cause: str, since: float) -> None:
        epoch = self._epoch()
        seen = self._reader.lookups.first_seen
        self._wait("another leader", lambda: any(each > epoch for each in list(seen)), TAKEOVER_LIMIT)
        after = min(each for each in list(seen) if each > epoch)
        takeover = Takeover(cause, after, round(seen[after] - since, 3))
        self.findings.takeovers.append(takeover)
        self._terminal.event(f"Readers see epoch {after} after {takeover.seconds:.1f} s.")
        self._say_who_leads()

    def _await_batch(self, since: float) -> None:
        before = self._batches()
        self._wait("a batch of the new leader", lambda: self._batches() > before, BATCH_LIMIT)
        takeover = self.findings.takeovers[-1]
        takeover.first_batch_seconds = round(now() - since, 3)
        self._terminal.event(f"The new driver goes on counting, {takeover.first_batch_seconds:.1f} s after the fault.")

    def _say_who_leads(self) -> None:
        newest = self._reader.lookups.newest
        if newest is not None:
            endpoint = newest.endpoints.get("jobmaster", "?")
            self._terminal.event(
                f"{endpoint.partition('.')[0]} leads at epoch {newest.epoch}, session {newest.session_id}."
            )

    def _leader(self) -> Participant:
        newest = self._reader.lookups.newest
        if newest is None:
            raise DemoError("Nobody leads.")
        return self.participants[newest.endpoints["jobmaster"].partition(".")[0]]

    def _epoch(self) -> int:
        newest = self._reader.lookups.newest
        return newest.epoch if newest else 0

    def _source(self) -> str:
        newest = self._reader.lookups.newest
        return newest.source.value if newest else ""

    def _refusals(self, zombie: Participant) -> list[str]:
        """Return the errors of its driver since it was woken, one sentence each."""
        with zombie.log.open("rb") as log:
            log.seek(self._woken_at)
            lines = log.read().decode(errors="replace").splitlines()
        return [match[0] for line in lines if (match := _REFUSAL.search(line))]
