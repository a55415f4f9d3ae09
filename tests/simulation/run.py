"""One run: break, heal, and see whether every promise was kept, and whether there is a leader again in time."""

from collections import Counter
from dataclasses import dataclass, field

from ha.history.checker import check
from ha.history.events import Event, Granted, LookedUp
from ha.history.violation import Violation
from leader.lease import Mode
from tests.simulation.conditions import check_conditions, judged
from tests.simulation.disturbances import place
from tests.simulation.hands import Hands
from tests.simulation.plan import Plan
from tests.simulation.sidecar import JOB
from tests.simulation.system import System

LOOK_EVERY = 0.05
PROCESS_LOST = 1.0
"""Seconds without a leader, at most, after its process has ended on a host that lives."""

STAYS = 3.0
"""Seconds for which a leader must stay, once all is well, to be called one."""


@dataclass
class Run:
    """How a run went."""

    plan: Plan
    violations: list[Violation] = field(default_factory=list)
    history: list[Event] = field(default_factory=list)
    injected: Counter[str] = field(default_factory=Counter)
    grants: int = 0
    lookups: int = 0
    seconds: float = 0.0
    """Simulated."""
    leaderless: list[tuple[str, float, float]] = field(default_factory=list)
    """What was waited for, how long it took, and its bound, in seconds."""


def simulate(plan: Plan) -> Run:
    """Carry a plan out."""
    system = System(plan)
    hands = Hands(system)
    for step in plan.steps:
        system.world.at(step.at, lambda step=step: hands.take(step))  # type: ignore[misc]
    run = Run(plan)
    try:
        system.world.run(plan.seconds)
        for host in system.hosts.values():
            host.faults.clear()  # before anything goes on: what waits for a command would strike after all is well
        hands.heal()
        while system.ensemble is not None and system.ensemble.stalled:
            system.world.run(LOOK_EVERY)
        system.healed_at = system.world.now
        system.note("all is well again")
        for host in system.hosts.values():
            host.jitter = 0.0
        run.violations += _Liveness(system, hands, run).check()
    finally:
        system.tasks.end()
    run.history = system.history
    run.injected = system.injected
    run.seconds = system.world.now
    run.grants = sum(isinstance(event, Granted) for event in system.history)
    run.lookups = sum(isinstance(event, LookedUp) for event in system.history)
    run.violations += check(judged(system))
    run.violations += check_conditions(system)
    run.violations.sort(key=lambda violation: violation.at)
    return run


class _Liveness:
    """L1 and L2, once everything has healed."""

    def __init__(self, system: System, hands: Hands, run: Run) -> None:
        self._system, self._hands, self._run = system, hands, run
        self._found: list[Violation] = []
        timing = system.plan.timing
        # A lease is waited for a little longer than it lasts, by a clock that may be slow.
        waited = (1 + timing.drift) / (1 - timing.drift)
        self._expired = timing.short_ttl * waited + 1
        self._both_died = timing.long_ttl * waited + 1

    def check(self) -> list[Violation]:
        """Wait for a leader, take it away in the plan's way, and wait for the next one."""
        system, timing, plan = self._system, self._system.plan.timing, self._system.plan
        if not self._led_within(self._both_died + timing.courtesy, "after everything at once"):
            return self._found
        system.world.run(timing.session_timeout + STAYS)  # ZooKeeper attests, standbys watch
        latest = system.world.now + 2 * timing.long_ttl
        while (system.files.late or self._asked()) and system.world.now < latest:
            system.world.run(LOOK_EVERY)
        assert not system.files.late, "what was held up arrives in the end"
        if self._asked():
            self._miss("An operator's request was never heeded, although all was well.")
            return self._found
        # What was sent before all healed may arrive as late as now; so may an operator's request.
        if not self._led_within(self._expired, "after late commands and hand-overs"):
            return self._found
        if plan.servers and not self._attested_within(timing.session_timeout + timing.short_ttl):
            return self._found
        if plan.end == "outage":
            grants = self._grants()
            system.note("ZooKeeper is down")
            system.disturbances.begin("zookeeper")
            system.zookeeper.stop()
            system.world.run(timing.session_timeout * 2)
            if self._grants() != grants:
                self._miss("An outage of ZooKeeper moved the leader.", "L2")
            self._crash("while ZooKeeper was down", self._expired)
        elif plan.end == "crash":
            self._crash_while_all_is_well()
        return self._found

    def _crash_while_all_is_well(self) -> None:
        system, timing, plan = self._system, self._system.plan.timing, self._system.plan
        lost = timing.session_timeout + plan.tick + 1 if plan.servers else self._expired
        if system.wires is None or plan.hosts_die:
            self._crash("while all was well", lost)
            return
        # Standbys see that the lease is attested, and connect; what is broken at one end only is renewed.
        system.world.run(2 * timing.poll + timing.courtesy + 3 * timing.session_timeout)
        leader = system.leader
        if leader is None or place(leader.name) in system.wires.misled:
            self._crash("of somebody who cannot be found", lost)
        else:
            self._crash("of a process on a live host", PROCESS_LOST)

    def _attested_within(self, bound: float) -> bool:
        """Wait until ZooKeeper attests the lease: HDFS alone carries that of a leader that was granted just now."""
        system = self._system
        latest = system.world.now + bound
        while (lease := system.lease) is None or lease.mode is not Mode.ZOOKEEPER:
            if system.world.now >= latest:
                self._miss(f"ZooKeeper did not attest the lease within {bound:.1f} s, although all was well.")
                return False
            system.world.run(LOOK_EVERY)
        return True

    def _asked(self) -> bool:
        """Whether an operator's request is yet to be heeded; a leader finds it when it renews, at the latest."""
        lease = self._system.lease
        return lease is not None and lease.mode is not Mode.RELEASED and lease.successor != ""

    def _crash(self, when: str, bound: float) -> None:
        leader = self._system.leader
        if leader is None:
            self._miss(f"Nobody led {when}.")
            return
        self._system.note(f"{leader.name} crashes {when}")
        (leader.lose if self._system.plan.hosts_die else leader.crash)()
        if len([each for each in self._system.sidecars if each.alive]) > 0:
            self._led_within(bound, f"after a crash {when}")

    def _led_within(self, bound: float, what: str) -> bool:
        world = self._system.world
        began, end = world.now, world.now + bound
        while self._system.leader is None and world.now < end:
            world.run(LOOK_EVERY)
            if self._system.files.late:
                # A seizure of somebody who is gone by now, executed late, is waited for once more.
                end = max(end, world.now + self._expired)
        took = world.now - began
        self._run.leaderless.append((what, took, end - began))
        if self._system.leader is None:
            self._miss(f"Nobody led {took:.1f} s {what}.")
        return self._system.leader is not None

    def _grants(self) -> int:
        return sum(isinstance(event, Granted) and event.job == JOB for event in self._system.history)

    def _miss(self, sentence: str, guarantee: str = "L1") -> None:
        self._found.append(Violation(guarantee, self._system.world.now, sentence))
