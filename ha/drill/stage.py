"""The stage of one drill: a job with its sidecars, its readers and its input; and the verbs that drills are made of."""

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ha.drill.drill import DURATIONS, Drill
from ha.drill.ground import DrillError, Ground, Member
from ha.drill.guards import Guard
from ha.drill.observer import HISTORY, Observer
from ha.drill.outcome import Span
from ha.drill.programs.feed import STOP
from store.clock import now

Say = Callable[[str], None]

START_LIMIT = 120.0
"""Seconds until a leader, and then until its first batch: Spark starts cold, on a machine that may be small."""

RECOVERY_LIMIT = 180.0
END_LIMIT = 180.0
FILES_EVERY = 0.5
LOOKUP_EVERY = 0.1
LOOKUP_TIMEOUT = 2.0
CONTENDERS = ("a", "b")
READERS = ("reader-1", "reader-2")
AGENT = "agent"
POLL = 0.05


class Stage:
    """One job, set up and running; everything a drill does goes through here."""

    def __init__(self, drill: Drill, ground: Ground, guard: Guard, folder: Path, say: Say) -> None:
        """Prepare; nothing runs before :meth:`begin`.

        Args:
            drill: what will be done.
            ground: where.
            guard: who guards the job.
            folder: for logs and histories; made here.
            say: is told each step in one sentence.
        """
        self.drill = drill
        self.ground = ground
        self.guard = guard
        self.folder = folder
        self.say = say
        self.job = f"{drill.name}-{secrets.token_hex(3)}"
        self.faults: list[Span] = []
        self.contenders: dict[str, Member] = {}
        self.readers: dict[str, Member] = {}
        self.lost: set[str] = set()
        self.observer = Observer(folder)
        (folder / HISTORY).mkdir(parents=True, exist_ok=True)
        for each in (folder, folder / HISTORY):
            each.chmod(0o777)  # members may be other users
        self.over = float("inf")
        """When the drill itself was over: what comes then is the job's end."""
        self._feeder: Member | None = None

    # --- beginning and end

    @property
    def durations(self) -> dict[str, float]:
        """The durations in force, in seconds."""
        return {**DURATIONS, **self.drill.settings}

    @property
    def input(self) -> str:
        """URI of the directory that the job reads."""
        return f"{self.ground.scratch}/{self.job}/input"

    @property
    def output(self) -> str:
        """URI of the directory that the job writes."""
        return f"{self.ground.scratch}/{self.job}/output"

    def begin(self) -> None:
        """Start everything, and wait until the first batch is done and somebody stands by."""
        self._feed("--every", str(FILES_EVERY))
        for name in READERS:
            host = READERS[0] if self.drill.agent and self.readers else ""
            self.readers[name] = self._member(name, self.guard.read(self.job, LOOKUP_EVERY, LOOKUP_TIMEOUT), host)
        if self.drill.agent:
            agent = self.readers[AGENT] = self._member(AGENT, ["python", "-m", "ha.cli", "agent"], READERS[0])
            self.wait("the agent", lambda: "answers lookups of this host" in agent.log(), START_LIMIT)
        for name in CONTENDERS:
            self.contend(name)
        self.wait("a leader", lambda: bool(self.observer.grants), START_LIMIT)
        self.say(f"{self.leader.name} leads at epoch {self.epoch}; its driver starts.")
        self.batches(2, START_LIMIT)
        self.wait("all to contend", lambda: all("contending" in each.log() for each in self.contenders.values()))
        self.say("All is well: the drill begins.")

    def count(self, files: int) -> None:
        """Let one contender count that many files and end, undisturbed."""
        self._feed("--files", str(files), "--every", "0")
        self.wait("the feeder's end", lambda: not self._feeder_runs(), END_LIMIT)
        self.contend(CONTENDERS[0])
        self.finish()

    def contend(self, name: str, run: "Callable[[Stage, str], list[str]] | None" = None) -> Member:
        """Start a sidecar; if there is one of that name, end it first.

        Args:
            name: of the contender.
            run: makes its command; by default, the guard does.
        """
        if name in self.contenders:
            self._end(self.contenders[name])
        self.contenders[name] = self._member(name, (run or self.guard.run)(self, name))
        self.lost.discard(name)
        return self.contenders[name]

    def finish(self) -> None:
        """Feed nothing more, and wait until the job has counted everything and all of its sidecars have ended."""
        self.over = now()
        (self.folder / STOP).touch()
        self.wait("the feeder's end", lambda: not self._feeder_runs(), END_LIMIT)
        left = [each for name, each in self.contenders.items() if name not in self.lost]
        self.wait("the job's end", lambda: not any(each.running for each in left), END_LIMIT)
        self.observer.look()

    def end(self) -> None:
        """Leave nothing running; the logs stay."""
        for member in [*self.contenders.values(), *self.readers.values(), *filter(None, [self._feeder])]:
            self._end(member)
        self.observer.look()

    # --- who leads

    @property
    def epoch(self) -> int:
        """The newest epoch that was granted."""
        self.observer.look()
        return max((each.epoch for each in self.observer.grants), default=0)

    @property
    def leader(self) -> Member:
        """Who was granted it."""
        epoch = self.epoch
        name = next(each.contender for each in self.observer.grants if each.epoch == epoch)
        return self.contenders[name]

    @property
    def standby(self) -> Member:
        """Who else contends, the first of them."""
        leader = self.leader
        return next(each for name, each in self.contenders.items() if each is not leader and name not in self.lost)

    @property
    def agent(self) -> Member:
        """The agent of the readers' host, in a drill that has one."""
        return self.readers[AGENT]

    # --- what drills do

    @contextmanager
    def fault(self, what: str) -> Iterator[None]:
        """Something is broken in here, and mended at the end."""
        self.say(what)
        begins = self.observer.note(what)
        try:
            yield
        finally:
            self.faults.append(Span(what, begins, self.observer.note(f"over: {what}")))

    def strike(self, what: str, do: Callable[[], object]) -> None:
        """Something is broken at once, and not mended."""
        self.say(what)
        begins = self.observer.note(what)
        do()
        self.faults.append(Span(what, begins, now()))

    def gone(self, member: Member, how: Callable[[], None]) -> None:
        """A member ends without a chance to say so; it is written down for it."""
        how()
        self.observer.ended(member.name)

    def without(self, servers: Sequence[str], seconds: float, end: Callable[[str], None]) -> None:
        """Do without some servers for a while.

        Args:
            servers: which.
            seconds: until they are started again.
            end: how each of them is ended.
        """
        for server in servers:
            end(server)
        self.rest(seconds)
        self.start(servers)

    def start(self, servers: Sequence[str]) -> None:
        """Start servers that are down, all at once, and wait until they serve."""
        for server in servers:
            self.ground.start(server)
        for server in servers:
            self.ground.wait_ready(server)

    def rest(self, seconds: float) -> None:
        """Let the job work on."""
        end = now() + seconds
        pause = threading.Event()
        while now() < end:
            pause.wait(POLL)
            self.observer.look()

    def wait(self, what: str, reached: Callable[[], bool], limit: float = RECOVERY_LIMIT) -> None:
        """Wait for something.

        Raises:
            DrillError: it was not to be seen within ``limit`` seconds.
        """
        end, pause = now() + limit, threading.Event()
        while True:
            self.observer.look()
            if reached():
                return
            if now() >= end:
                raise DrillError(f"There was no sign of {what} within {limit:.0f} s: see the logs in {self.folder}.")
            pause.wait(POLL)

    def await_leader(self, after: int) -> None:
        """Wait for a grant of a higher epoch."""
        self.wait("another leader", lambda: self.epoch > after)
        self.say(f"{self.leader.name} leads at epoch {self.epoch}.")

    def batches(self, count: int = 2, limit: float = RECOVERY_LIMIT) -> None:
        """Wait until the present leader has done so many batches from now on."""
        since = now()
        self.wait(f"{count} more batches", lambda: len(self.observer.completed(since)) >= count, limit)

    # ---

    def _feed(self, *how: str) -> None:
        folder = self.ground.inside(self.folder)
        feed = ["python", "-m", "ha.drill.programs.feed", "--input", self.input, "--folder", folder]
        self._feeder = self._member("feeder", [*feed, *how])
        feeder = self._feeder
        self.wait("the first file", lambda: bool(self.observer.fed()) or not feeder.running, START_LIMIT)
        if not self.observer.fed():
            raise DrillError(f"The feeder has ended before its first file: {feeder.log().strip()[-300:]}")

    def _end(self, member: Member) -> None:
        with (self.folder / f"{member.name}.log").open("a", encoding="utf-8") as log:
            log.write(member.log())
        member.end()
        self.observer.ended(member.name)

    def _feeder_runs(self) -> bool:
        return self._feeder is not None and self._feeder.running

    def _member(self, name: str, command: list[str], beside: str = "") -> Member:
        environment = {
            "HA_HISTORY": self.ground.inside(self.folder / HISTORY),
            "PYTHONUNBUFFERED": "1",
            **{f"HA_{name.upper()}": f"{value:g}" for name, value in self.durations.items()},
        }
        return self.ground.start_member(name, command, environment, self.folder, beside)
