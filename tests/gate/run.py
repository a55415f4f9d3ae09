"""A run of lanes: begins them, watches them, and ends all as soon as one is dead, hangs, or is over its time."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ha.sandbox import Sandbox
from tests.gate import processes, smoke
from tests.gate.lane import BESIDE_S, Result, Running
from tests.gate.machine import Watch
from tests.gate.plan import LANES, Lane

AT_ONCE, WITH_JVMS, BESIDE_SMOKE = 7, 2, 4
"""How many lanes run at once, how many of them may start JVMs all the time, and how many there are before servers are.

Those that need servers take longest, and begin as soon as they can.
"""

LOOK_S = 0.5
ASK_SERVERS_S = 3.0
TOLD_EACH_S = 20.0
MOST_FAILED = 10
AGAIN = "again."
"""Begins the name of a second try, which is followed by the lane and a number."""


@dataclass(slots=True)
class Run:
    """What is known of a run, and how it goes on.

    Attributes:
        folder: of all that is written about it.
        temporary: of the tests' files.
        end_at: when it is over its time, by the monotonic clock.
        sandbox: that is lent to the lanes, if there is one.
        smoke: whether servers and Spark work here; lanes that need them wait for its end, and its error ends the run.
        check: a command beside the lanes, such as the linter, whose failure ends the run.
        seconds: of each lane that has ended, on the clock and of processors.
        why: why it was ended before its end; empty if it was not.
        beside_s: what setup and teardown of a test may take beyond the test's limit.
        limit_s: in place of the tests' own limits.
        ill_s: how long a server of the sandbox may not answer.
    """

    folder: Path
    temporary: Path
    end_at: float
    watch: Watch
    slowness: float = 1.0
    sandbox: Sandbox | None = None
    smoke: "Future[None] | None" = None
    check: subprocess.Popen[str] | None = None
    say: Callable[[str], None] = print
    results: dict[str, Result] = field(default_factory=dict)
    why: str = ""
    seconds: dict[str, tuple[float, float]] = field(default_factory=dict)
    beside_s: float = BESIDE_S
    limit_s: float | None = None
    ill_s: float = 60.0
    _since: dict[str, float] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)
    _begun: float = field(default_factory=time.monotonic)
    _well: float = field(default_factory=time.monotonic)
    _told: float = field(default_factory=time.monotonic)
    _asked: float = 0.0
    _looking: Future[str] | None = None
    _looks: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def lanes(self, plan: Mapping[str, Sequence[str]]) -> None:
        """Run all lanes of a plan to their ends; ``why`` says afterwards why the run was ended before that."""
        waiting = [
            Running(name, ids, self.folder, self.slowness, self.beside_s, self.limit_s) for name, ids in plan.items()
        ]
        running: list[Running] = []
        self._well = time.monotonic()
        try:
            while (waiting or running or self._checks()) and not self.why:
                for lane in [each for each in waiting if self._has_room(each, running)][:1]:
                    waiting.remove(lane)
                    running.append(lane)
                    self._begin(lane)
                time.sleep(LOOK_S)
                for lane in list(running):
                    self._look(lane)
                    if lane.code is not None and not self.why:
                        running.remove(lane)
                        lane.end()  # what it has left behind
                        self.seconds[lane.name] = time.monotonic() - self._since[lane.name], lane.core_seconds
                if not self.why:
                    self.why = self._trouble()
                self._tell(running, waiting)
            if not self.why:
                self.why = self._trouble()
            if self.why:
                self._explain(running)
        finally:
            for lane in running:
                lane.end()

    def _has_room(self, lane: Running, running: Sequence[Running]) -> bool:
        what, jvms = kind(lane.name), [each for each in running if kind(each.name).jvms]
        if self._smokes() and (what.jvms or what.lent or len(running) >= BESIDE_SMOKE):
            return False
        return len(running) < AT_ONCE and not (what.jvms and len(jvms) >= WITH_JVMS)

    def _smokes(self) -> bool:
        return self.smoke is not None and not self.smoke.done()

    def _begin(self, lane: Running) -> None:
        temporary = self.temporary / "t"
        temporary.mkdir(exist_ok=True)
        environment = {"TMPDIR": str(temporary), "TESTS_SLOWNESS": f"{self.slowness:.2f}"}
        if self.sandbox is not None and kind(lane.name).lent:
            environment["HA_TEST_SANDBOX"] = str(self.sandbox.directory)
        self._since[lane.name] = time.monotonic()
        lane.begin(environment, self.temporary)

    def _look(self, lane: Running) -> None:
        why = lane.look()
        self.results |= lane.results
        for name, result in lane.results.items():
            if result.outcome == "failed" and name not in self._failed:
                self._failed.add(name)
                self.say(f"FAILED {name} ({result.seconds:.0f} s): {first_line(result.error)}")
                self.say(f"       the machine: {self.watch.at(result.at, max(30.0, result.seconds))}")
        if why:
            if lane.test:
                self.results[lane.test] = Result(lane.test, "failed", time.monotonic(), 0.0, lane.name, why)
            self.why = f"Lane {lane.name} {why}"
        elif lane.code not in (None, 0, 1):
            self.why = f"Lane {lane.name} ended with {lane.code}:\n{lane.last_lines()}"
        elif lane.code == 1 and not any(each.outcome == "failed" for each in lane.results.values()):
            self.why = f"Lane {lane.name} ended with 1, and no test of it has failed:\n{lane.last_lines()}"

    def _checks(self) -> bool:
        return self.check is not None and self.check.poll() is None

    def _trouble(self) -> str:
        if self.check is not None and self.check.poll():
            return "The linter is not content."
        if self.smoke is not None and self.smoke.done() and (error := self.smoke.exception()) is not None:
            return f"{error}"
        if time.monotonic() > self.end_at:
            return f"OVER ITS TIME after {time.monotonic() - self._begun:.0f} s."
        if sum(each.outcome == "failed" for each in self.results.values()) > MOST_FAILED:
            return f"More than {MOST_FAILED} tests have failed: the others are not run."
        return self._ill()

    def _ill(self) -> str:
        if self.sandbox is None or self._smokes():
            self._well = time.monotonic()
            return ""
        if self._looking is None:
            if time.monotonic() - self._asked < ASK_SERVERS_S:
                return ""
            self._asked = time.monotonic()
            self._looking = self._looks.submit(smoke.ill, self.sandbox)
        elif self._looking.done():
            error = self._looking.exception()
            found = f"{type(error).__name__}: {error}" if error is not None else self._looking.result()
            self._looking = None
            if not found:
                self._well = time.monotonic()
            elif time.monotonic() - self._well > self.ill_s * self.slowness:
                return f"The sandbox that the lanes share does not serve: {found}"
        return ""

    def _tell(self, running: Sequence[Running], waiting: Sequence[Running]) -> None:
        if time.monotonic() - self._told < TOLD_EACH_S:
            return
        self._told = time.monotonic()
        at = ", ".join(f"{each.name} {len(each.results)}/{len(each.ids)}" for each in running)
        failed = sum(each.outcome == "failed" for each in self.results.values())
        rest = f"; {len(waiting)} lanes wait" if waiting else ""
        self.say(f"{len(self.results)} done, {failed} failed: {at}{rest}; {self.watch.at(self._told, TOLD_EACH_S)}")
        for each in running:
            if time.monotonic() - each.since > 60:
                self.say(f"    {each.name} for {time.monotonic() - each.since:.0f} s {each.doing} {each.test}")

    def _explain(self, running: Sequence[Running]) -> None:
        self.say(f"\n{self.why}\n")
        for lane in running:
            text = processes.tell(lane.processes, self.folder, f"stacks-{lane.name}", [lane.stacks])
            self.say(f"--- lane {lane.name}, {lane.doing} {lane.test}; its last words:\n{lane.last_lines(5)}")
            self.say("\n".join(text.splitlines()[:80]))
        self.say(f"All of it: {self.folder}")


def kind(name: str) -> Lane:
    """Return what is known of a lane, also of the second try of one of its tests."""
    return LANES.get(name.removeprefix(AGAIN).rpartition(".")[0] or name, Lane())


def first_line(text: str) -> str:
    return next(iter(text.splitlines()), "")[:300]
