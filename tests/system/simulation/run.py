"""Run: breaks the system, heals it, then checks that every promise was kept and that a leader is back in time."""

from collections import Counter
from dataclasses import dataclass, field

from ha.history.checker import check
from ha.history.events import Event, Granted, LookedUp, Violation
from leader.layout.lease import LOOK, Mode
from leader.layout.znodes import leader_path
from tests.system.simulation.conditions import check_conditions, judged
from tests.system.simulation.disturbances import place
from tests.system.simulation.escalated import ANY, pause_after
from tests.system.simulation.hands import Hands
from tests.system.simulation.plan import Plan, Step
from tests.system.simulation.requests import patience
from tests.system.simulation.sidecar import JOB, JOBS, Sidecar
from tests.system.simulation.strangers import squat
from tests.system.simulation.system import System

LOOK_EVERY = 0.05
PROCESS_LOST = 1.0
"""Seconds without a leader, at most, after its process has ended on a host that lives."""

ASKED_EVERY = 0.4
"""An operator who asks a dead leader again and again does so this often, in looks of a standby."""

STAYS = 3.0
"""Seconds for which a leader must stay, once all is well, to be called one."""


@dataclass
class Run:
    """The outcome of a run."""

    plan: Plan
    violations: list[Violation] = field(default_factory=list)
    history: list[Event] = field(default_factory=list)
    injected: Counter[str] = field(default_factory=Counter)
    grants: int = 0
    lookups: int = 0
    seconds: float = 0.0
    """Simulated."""
    leaderless: list[tuple[str, float, float]] = field(default_factory=list)
    """Waits: what was waited for, how long it took, and its bound, in seconds."""


def simulate(plan: Plan) -> Run:
    """Carry out a plan."""
    system = System(plan)
    hands = Hands(system)
    for step in plan.steps:
        system.world.at(step.at, lambda step=step: hands.take(step))  # type: ignore[misc]
    run = Run(plan)
    try:
        system.world.run(plan.seconds)
        for host in system.hosts.values():
            host.faults.clear()  # before anything goes on: a fault that waits for a command would strike too late
        hands.heal()
        while system.ensemble is not None and system.ensemble.stalled:
            system.world.run(LOOK_EVERY)
        system.healed_at = system.world.now
        system.failures.dice_say_it_fails = False
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
    run.violations += system.found
    run.violations += check(judged(system))
    run.violations += check_conditions(system)
    excused = "S1" if plan.unruly else "L1" if plan.store else ""  # nobody is to lead at a store that lies
    run.violations = [each for each in run.violations if each.guarantee != excused]
    run.violations.sort(key=lambda violation: violation.at)
    return run


class _Liveness:
    """L1 and L2, once everything has healed."""

    def __init__(self, system: System, hands: Hands, run: Run) -> None:
        self._system, self._hands, self._run = system, hands, run
        self._found: list[Violation] = []
        timing = system.plan.timing
        # A standby waits a little longer than a lease lasts, by a clock that may be slow.
        waited = (1 + timing.drift) / (1 - timing.drift)
        self._expired = timing.short_ttl * waited + 1
        self._both_died = timing.long_ttl * waited + 1
        self._asks_on = False
        """Whether an operator asks the leader to look, again and again, while nobody leads."""

    def check(self) -> list[Violation]:
        """Wait for a leader, take it away in the plan's way, wait for the next one; or for one that runs a command."""
        bound = self._both_died + self._system.plan.timing.courtesy
        if self._system.plan.attempts:
            self._tried_within(bound)
            return self._found
        return self._check_leaders(bound)

    def _check_leaders(self, bound: float) -> list[Violation]:
        system, timing, plan = self._system, self._system.plan.timing, self._system.plan
        if not all(self._led_within(bound, "after everything at once", job) for job in JOBS[: plan.jobs]):
            return self._found
        system.end_hung()
        system.world.run(timing.session_timeout + STAYS)  # ZooKeeper attests, standbys watch
        latest = system.world.now + 2 * timing.long_ttl + (2 * patience(timing) if plan.operated else 0.0)
        while (system.files.late or self._asked()) and system.world.now < latest:
            system.world.run(LOOK_EVERY)
        assert not system.files.late, "what was held up arrives in the end"
        if self._asked():
            self._miss("An operator's request was never heeded, although all was well.")
            return self._found
        # Messages from before the healing may arrive as late as now; so may an operator's request.
        if not self._led_within(self._expired, "after late commands and hand-overs"):
            return self._found
        if plan.servers and not self._attested_within(timing.session_timeout + timing.short_ttl):
            return self._found
        if plan.end == "outage":
            grants = self._grants()
            system.note("ZooKeeper is down")
            system.disturbances.begin("zookeeper")
            system.zookeeper.stop()
            system.world.run(timing.session_timeout * 3 + timing.short_ttl)
            if self._grants() != grants:
                self._miss("An outage of ZooKeeper moved the leader.", "L2")
            self._crash("while ZooKeeper was down", PROCESS_LOST if self._end_is_seen() else self._expired)
        elif plan.end in ("crash", "crash and asked"):
            self._asks_on = plan.end != "crash"
            self._crash_while_all_is_well()
        elif plan.end == "hand over":
            self._hand_over()
        return self._found

    def _tried_within(self, bound: float) -> None:
        """Wait until a command runs; or, if the job was given up, until it is run again, which counts from nothing."""
        system = self._system
        end = system.world.now + bound + pause_after(ANY) * (1 + 2 * system.plan.timing.drift)
        while not system.command_runs and not system.given_up and system.world.now < end:
            system.world.run(LOOK_EVERY)
        if system.given_up:
            system.world.run(2 * bound)  # others learn of it, and end
            end = system.world.now + 2 * bound
            system.run_again(system.plan.contenders[0])
            while not system.command_runs and system.world.now < end:
                system.world.run(LOOK_EVERY)
        if not system.command_runs:
            self._miss("All was well, and nobody has tried the job again in time.")

    def _crash_while_all_is_well(self) -> None:
        system, timing, plan = self._system, self._system.plan.timing, self._system.plan
        lost = timing.session_timeout + plan.tick + 1 if plan.servers else self._expired
        if system.wires is None or plan.hosts_die:
            if system.lease is not None and system.lease.attestation:
                squat(system, system.lease.attestation, lost)
            self._crash("while all was well", lost)
            return
        # Standbys see the leader's contact, and connect. Half-broken connections are renewed.
        system.world.run(2 * timing.poll + timing.courtesy + 3 * timing.session_timeout)
        if self._end_is_seen():
            self._crash("of a process on a live host", PROCESS_LOST)
        else:
            self._crash("of somebody who cannot be found", lost)

    def _end_is_seen(self) -> bool:
        """Whether standbys are connected to the leader's process, and its host outlives it."""
        system, leader = self._system, self._system.leader
        seen = system.wires is not None and leader is not None and place(leader.name) not in system.wires.misled
        return seen and not system.plan.hosts_die

    def _hand_over(self) -> None:
        """An operator asks for a standby. It is the next leader, or it sleeps, and another comes after its turn."""
        system, timing = self._system, self._system.plan.timing
        leader = system.leader
        standby = next((each for each in system.sidecars if each.alive and each is not leader), None)
        if leader is None or standby is None or not self._standbys_are_told(leader):
            return
        if not self._look(leader):
            return
        sleeps = system.plan.seed % 2 == 0
        if sleeps:
            standby.pause()
        self._hands.take(Step(system.world.now, "request", "", 0.0, (standby.name,)))
        latest = system.world.now + timing.long_ttl
        while system.leader is leader and system.world.now < latest:
            system.world.run(LOOK_EVERY)
        if system.leader is leader:
            self._miss("An operator's request was not heeded, although all was well.")
            return
        self._led_within(self._expired + timing.courtesy, "after a hand-over")
        if not sleeps and (successor := system.leader) is not None and successor is not standby:
            self._miss(f"An operator asked for {standby.name}, and {successor.name} leads.", "HAND")

    def _look(self, leader: Sidecar) -> bool:
        """Whether an operator's request of another kind is heard by the leader, which stays."""
        system = self._system
        heard, grants = _heard(leader), self._grants()
        self._hands.take(Step(system.world.now, "request", "", 0.0, (LOOK,)))
        latest = system.world.now + system.plan.timing.long_ttl
        while _heard(leader) == heard and system.world.now < latest:
            system.world.run(LOOK_EVERY)
        system.world.run(system.plan.timing.long_ttl)
        if _heard(leader) == heard:
            self._miss("A request that an operator left was not found, although all was well.", "HEARD")
        elif self._grants() != grants or not leader.leads(JOB):
            self._miss("A request that is none to hand over moved the leader.", "HEARD")
        else:
            return True
        return False

    def _standbys_are_told(self, leader: Sidecar) -> bool:
        """Whether a leader that ends deletes the copy, which standbys watch: a stranger's node would outlive it."""
        if leader.client is None or leader.client.session is None:
            return True
        copy = self._system.zookeeper.nodes.get(leader_path(JOB))
        return copy is not None and copy.owner == leader.client.session.id

    def _attested_within(self, bound: float) -> bool:
        """Wait until ZooKeeper attests the lease: just after a grant, HDFS alone carries it."""
        system = self._system
        latest = system.world.now + bound
        while (lease := system.lease) is None or lease.mode is not Mode.ZOOKEEPER:
            if system.world.now >= latest:
                self._miss(f"ZooKeeper did not attest the lease within {bound:.1f} s, although all was well.")
                return False
            system.world.run(LOOK_EVERY)
        return True

    def _asked(self) -> bool:
        """Whether an operator's request is still open; a leader finds it when it renews, at the latest."""
        lease = self._system.lease
        if self._system.ledger.open:
            return True
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

    def _led_within(self, bound: float, what: str, job: str = JOB) -> bool:
        world = self._system.world
        began, end, asks_at = world.now, world.now + bound, world.now
        while self._system.leader_of(job) is None and world.now < end:
            world.run(LOOK_EVERY)
            if self._asks_on and world.now >= asks_at:
                asks_at = world.now + self._system.plan.timing.poll * ASKED_EVERY
                self._hands.take(Step(world.now, "request", "", 0.0, (LOOK,)))
            if self._system.files.late:
                # The late seizure of a dead contender costs one more wait.
                end = max(end, world.now + self._expired)
        took = world.now - began
        self._run.leaderless.append((what, took, end - began))
        led = self._system.leader_of(job) is not None
        if not led:
            self._miss(f"Nobody led {took:.1f} s {what}.")
        return led

    def _grants(self) -> int:
        return sum(isinstance(event, Granted) and event.job == JOB for event in self._system.history)

    def _miss(self, sentence: str, guarantee: str = "L1") -> None:
        self._found.append(Violation(guarantee, self._system.world.now, sentence))


def _heard(leader: Sidecar) -> int:
    """How often a leader was told to look for requests."""
    return sum(what == "requested" for _, what, _ in leader.history)
