"""Fixture of one drill: a job with its contenders, readers and input, and the verbs that drills are written in."""

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from ha.drill.clients import STOP
from ha.drill.environment import DrillError, Environment, Member, Strike
from ha.drill.ha_provider import WORD_COUNT, Contend, DrillJob, HaProvider, Program
from ha.drill.observer import HISTORY, Observer
from ha.drill.outcome import Check, Span
from store.clock import now

Say = Callable[[str], None]

DURATIONS = {"session_timeout": 6.0, "short_ttl": 6.0, "long_ttl": 60.0, "hand_over": 2.0, "stop_grace": 3.0}
"""Settings in seconds; shorter than the defaults where a drill would only have to wait."""

START_LIMIT_S = 120.0
"""Until there is a leader, and then until its first batch: Spark starts cold, perhaps on a small machine."""

RECOVERY_LIMIT_S = 180.0
END_LIMIT_S = 180.0
POLL_S = 0.05

# Seconds between two input files, between two lookups, and for each lookup.
FILES_EVERY = 0.5
LOOKUP_EVERY = 0.1
LOOKUP_TIMEOUT = 2.0

CONTENDERS = ("a", "b")
NONE: Mapping[str, str] = MappingProxyType({})
READERS = ("reader-1", "reader-2")
AGENT = "agent"

FAULTS = "faults"  # folder in which a breakable program finds what is to go wrong


@dataclass(frozen=True)
class Setup:
    """Setup of a drill's job."""

    settings: Mapping[str, float] = field(default_factory=dict)  # durations that differ from DURATIONS, in seconds
    interval: float = 0.5  # seconds between the beginnings of two batches; 0: as soon as there is input
    dwell: float = 0.0  # seconds that a batch takes at least
    agent: bool = False  # whether all readers are on one host with an agent, which starts before the contenders
    program: Program = WORD_COUNT
    others: Mapping[str, str] = field(default_factory=dict)  # settings that are no durations
    before: "Callable[[Fixture], object]" = lambda _: None  # is called before the contenders start
    contend: Contend | None = None  # makes the command of a contender; default: the HA provider does
    clusters: int = 1  # 2 for another one, there from the beginning; the job's input is on neither


class Fixture:
    """One job, set up and running. Everything that a drill does goes through here.

    Its contenders and readers are known by their names; ``lost`` are those that the drill has ended.
    """

    def __init__(
        self, name: str, setup: Setup, environment: Environment, provider: HaProvider, folder: Path, say: Say
    ) -> None:
        """Prepare the job, which is called like the drill; nothing runs before :meth:`begin`."""
        self.environment = environment
        self.cluster = environment.cluster
        self.folder = folder
        self.say = say
        self._name = f"{name}-{secrets.token_hex(3)}"
        self.faults: list[Span] = []
        self.checks: list[Check] = []  # besides those after every drill
        self.measures: dict[str, float] = {}  # besides those of every drill
        self.contenders: dict[str, Member] = {}
        self.readers: dict[str, Member] = {}
        self.lost: set[str] = set()
        self.observer = Observer(folder)
        (folder / HISTORY).mkdir(parents=True, exist_ok=True)
        (folder / FAULTS).mkdir()
        for each in (folder, folder / HISTORY, folder / FAULTS):
            each.chmod(0o777)  # members may be other users
        self.over = float("inf")  # when the drill itself was over; what follows is the job's end
        self.outcomes: list[str] = []  # URIs of directories that count every word in the end, if not the job's own
        self.second: Environment | None = None
        self._setup = setup
        self._provider = provider
        self._others: dict[str, Member] = {}

    @cached_property
    def job(self) -> DrillJob:
        """The job, as its contenders know it."""
        place, setup = self.environment, self._setup
        return DrillJob(
            self._name,
            place.driver(setup.program.file),
            f"{place.scratch}/{self._name}",
            setup.interval,
            setup.dwell,
            setup.program,
            place.member_path(self.folder / FAULTS),
            f"{self.folder.absolute().as_uri()}/shared/input" if setup.clusters > 1 else "",
        )

    # --- beginning and end

    @property
    def durations(self) -> dict[str, float]:
        """The durations in force, in seconds."""
        return {**DURATIONS, **self._setup.settings}

    def begin(self) -> None:
        """Start everything, and wait until the first batches are done and a standby contends."""
        if self._setup.clusters > 1:
            self.second = self.environment.second(self.folder)
            self.second.up(self.say)
        self._feed()
        for name in READERS:
            beside = READERS[0] if self._setup.agent and self.readers else ""
            reader = self._provider.read(self.job.name, LOOKUP_EVERY, LOOKUP_TIMEOUT)
            self.readers[name] = self._member(name, reader, beside)
        if self._setup.agent:
            agent = self.readers[AGENT] = self._member(AGENT, ["python", "-m", "ha.cli", "host", "agent"], READERS[0])
            self.wait_for("the agent", lambda: "answers lookups of this host" in agent.log(), START_LIMIT_S)
        self._setup.before(self)
        for name in CONTENDERS:
            self.contend(name)
        self.wait_for("a leader", lambda: bool(self.observer.grants), START_LIMIT_S)
        self.say(f"{self.leader.name} leads at epoch {self.epoch}; its driver starts.")
        self.await_batches(2, START_LIMIT_S)
        self.wait_for("all to contend", lambda: all("contending" in each.log() for each in self.contenders.values()))
        self.say("All is well: the drill begins.")

    def contend(self, name: str, contend: Contend | None = None) -> Member:
        """Start a contender in place of one of that name; the setup or provider makes its command by default."""
        command = contend or self._setup.contend or self._provider.contend
        if name in self.contenders:
            self._end(self.contenders[name])
        self.contenders[name] = self._member(name, command(self.job, name))
        self.lost.discard(name)
        return self.contenders[name]

    def contend_all(self, contend: Contend | None = None) -> None:
        """Start all contenders, in place of those that run."""
        for name in CONTENDERS:
            self.contend(name, contend)

    def stop(self) -> None:
        """End all contenders, with what is below them."""
        for name, each in self.contenders.items():
            if name not in self.lost:
                self.lose(each, each.end)

    def recover(self, epoch: int) -> None:
        """Unless the job has finished, wait for a higher epoch, start what was lost again, and wait for two batches."""
        if self.over < float("inf"):
            return
        self.wait_for("another leader", lambda: self.epoch > epoch)
        for name in self.lost & self.contenders.keys():
            self.contend(name)
        self.await_batches()

    def succeed(self, name: str) -> Member:
        """Start a contender beside what the killed one of that name has left, which runs on."""
        self._others[f"{name}, killed {len(self._others)}"] = self.contenders.pop(name)
        return self.contend(name)

    def kill_driver(self, name: str) -> None:
        """Kill the driver of a contender, also one that it has taken up from a killed one."""
        killed = [member for known, member in self._others.items() if known.startswith(f"{name}, killed")]
        if not any(member.strike("kill", "driver") for member in (self.contenders[name], *killed)):
            raise DrillError(f"{name} has no driver to kill.")

    def finish(self) -> None:
        """Stop the input, and wait until the job has counted everything and all contenders have ended; once."""
        self.over = min(self.over, now())
        (self.folder / STOP).touch()
        self.wait_for("the feeder's end", lambda: not self._others["feeder"].running, END_LIMIT_S)
        left = [each for name, each in self.contenders.items() if name not in self.lost]
        self.wait_for("the job's end", lambda: not any(each.running for each in left), END_LIMIT_S)
        self.observer.look()

    def end(self) -> None:
        """Leave nothing running; the logs stay."""
        for member in [*self.contenders.values(), *self.readers.values(), *self._others.values()]:
            self._end(member)
        if self.second is not None:
            self.second.down()
        self.observer.look()

    # --- the leader

    @property
    def epoch(self) -> int:
        self.observer.look()
        return max((each.epoch for each in self.observer.grants), default=0)

    @property
    def leader(self) -> Member:
        """The contender that was granted the newest epoch."""
        epoch = self.epoch
        return self.contenders[next(each.contender for each in self.observer.grants if each.epoch == epoch)]

    @property
    def standby(self) -> Member:
        """The first contender that is not the leader."""
        leader = self.leader
        return next(each for name, each in self.contenders.items() if each is not leader and name not in self.lost)

    def beside(self, name: str, command: Sequence[str], variables: Mapping[str, str] = NONE) -> Member:
        """Start a program beside the job; its name is also that of its log."""
        self._others[name] = self._member(name, list(command), variables=variables)
        return self._others[name]

    def let(self, name: str, command: Sequence[str], seconds: float, variables: Mapping[str, str] = NONE) -> str:
        """Run a program beside the job to its end, and return its output; its name is also that of its log."""
        return self.await_end(self.beside(name, command, variables), seconds)

    def await_end(self, program: Member, seconds: float) -> str:
        """Wait until a program has ended, and return its output; raise if it has failed."""
        self.wait_for(f"the end of {program.name}", lambda: not program.running, seconds)
        if program.exit_code:
            raise DrillError(f"{program.name} failed: {program.log().strip()[-300:]}")
        return program.log()

    @property
    def agent(self) -> Member:
        return self.readers[AGENT]

    # --- what drills do

    def check(self, name: str, passed: bool, detail: str) -> None:
        self.checks.append(Check(name, passed, detail))

    def strike(self, member: Member, verb: Strike, kind: str) -> None:
        """Do something to the processes of a kind below a member; raise if there is none."""
        if not member.strike(verb, kind):
            raise DrillError(f"{member.name} has no {kind} to {verb}.")

    @contextmanager
    def fault(self, what: str) -> Iterator[None]:
        """Note a fault: the block breaks something and mends it."""
        self.say(what)
        begins = self.observer.note(what)
        try:
            yield
        finally:
            self.faults.append(Span(what, begins, self.observer.note(f"over: {what}")))

    def fault_at_once(self, what: str, do: Callable[[], object]) -> None:
        """Note a fault that happens at once and is not mended."""
        self.say(what)
        begins = self.observer.note(what)
        do()
        self.faults.append(Span(what, begins, now()))

    def lose(self, member: Member, how: Callable[[], None]) -> None:
        """End a member without giving it a chance to write that down; this writes it down instead."""
        self.lost.add(member.name)
        how()
        self.observer.ended(member.name, member.ended_at())

    def without(self, servers: Sequence[str], seconds: float, end: Callable[[str], None]) -> None:
        """Have ``end`` end some servers, and start them again after some seconds."""
        for server in servers:
            end(server)
        self.run_for(seconds)
        self.start_servers(servers)

    def start_servers(self, servers: Sequence[str]) -> None:
        """Start servers that are down, all at once, and wait until they serve."""
        for server in servers:
            self.cluster.start(server)
        for server in servers:
            self.cluster.wait_ready(server)

    def run_for(self, seconds: float) -> None:
        """Let the job work on."""
        end = now() + seconds
        pause = threading.Event()
        while now() < end:
            pause.wait(POLL_S)
            self.observer.look()

    def wait_for(self, what: str, reached: Callable[[], bool], limit: float = RECOVERY_LIMIT_S) -> None:
        """Wait until ``reached`` returns true; raise if it does not within ``limit`` seconds."""
        end, pause = now() + limit, threading.Event()
        while True:
            self.observer.look()
            if reached():
                return
            if now() >= end:
                raise DrillError(f"There was no sign of {what} within {limit:.0f} s: see the logs in {self.folder}.")
            pause.wait(POLL_S)

    def await_leader(self, after: int) -> None:
        self.wait_for("another leader", lambda: self.epoch > after)
        self.say(f"{self.leader.name} leads at epoch {self.epoch}.")

    def await_batches(self, count: int = 2, limit: float = RECOVERY_LIMIT_S, query: str = "") -> None:
        """Wait until the job has completed so many more batches; with ``query``, until that one has."""
        since = now()

        def found() -> int:
            return sum(query in ("", each.query) for each in self.observer.completed(since))

        self.wait_for(f"{count} more batches {query and f'of {query}'}".strip(), lambda: found() >= count, limit)

    # ---

    def _feed(self) -> None:
        folder = self.environment.member_path(self.folder)
        feed = ["python", "-m", "ha.drill.clients", "feed", self.job.input, folder, str(FILES_EVERY)]
        feeder = self.beside("feeder", feed)
        self.wait_for("the first file", lambda: bool(self.observer.fed()) or not feeder.running, START_LIMIT_S)
        if not self.observer.fed():
            raise DrillError(f"The feeder has ended before its first file: {feeder.log().strip()[-300:]}")

    def _end(self, member: Member) -> None:
        with (self.folder / f"{member.name}.log").open("a", encoding="utf-8") as log:
            log.write(member.log())
        member.end()
        self.observer.ended(member.name, now())

    def _member(self, name: str, command: list[str], beside: str = "", variables: Mapping[str, str] = NONE) -> Member:
        given = {
            "HA_HISTORY": self.environment.member_path(self.folder / HISTORY),
            "PYTHONUNBUFFERED": "1",
            **{f"HA_{name.upper()}": f"{value:g}" for name, value in self.durations.items()},
            **{f"HA_{name.upper()}": value for name, value in self._setup.others.items()},
            **variables,
        }
        return self.environment.start_member(name, command, given, self.folder, beside)
