"""Plan: the faults of one run, drawn from a seed. A plan can be read, shrunk and kept as a regression test."""

import random
from dataclasses import dataclass, field, replace

from ha.config.leadership_settings import FRESHNESSES_PER_AUDIT
from leader.layout.lease import LOOK
from leader.timing import NEVER, Timing

AGENT = "r0"
"""The reader that is its host's agent, if there is one."""

TIMINGS = (
    {"short_ttl": 10.0, "long_ttl": 20.0, "session_timeout": 6.0, "hand_over": 1.0, "drift": 0.01},
    {"short_ttl": 4.0, "long_ttl": 14.0, "session_timeout": 10.0, "hand_over": 0.5, "drift": 0.01},
    {"short_ttl": 3.0, "long_ttl": 30.0, "session_timeout": 4.0, "hand_over": 2.0, "drift": 0.02, "call_timeout": 0.4},
    {"short_ttl": 12.0, "long_ttl": 16.0, "session_timeout": 5.0, "hand_over": 1.0, "drift": 0.05, "call_timeout": 0.5},
)


@dataclass(frozen=True)
class Step:
    """One disturbance of the system.

    Attributes:
        at: seconds after the start.
        kind: the kind of disturbance; a method of :class:`tests.system.simulation.hands.Hands`.
        target: the host or server; empty for all.
        seconds: the duration.
        how: further details.
    """

    at: float
    kind: str
    target: str = ""
    seconds: float = 0.0
    how: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The plan of one run.

    Attributes:
        seed: of all random draws during the run.
        calm: whether ZooKeeper alone is disturbed: then no leader may change and no lookup may fail.
        seconds: time until everything heals.
        timing: all durations.
        rates: speed of each contender's clock.
        readers: number of readers.
        agent: whether they are processes of one host, and the first of them is its agent.
        servers: number of ZooKeeper servers; 0 for a system without ZooKeeper.
        tick: ZooKeeper's, in seconds.
        audit: of the readers, in seconds.
        jitter: greatest random delay of a request to the file system, in seconds.
        stubborn: whether drivers go on when they are told to stop, until they are refused.
        jobs: number of jobs that every contender contends for.
        republishes: whether leaders change their endpoints now and then.
        end: last action after the healing: ``nothing``, ``crash`` of the leader, ``outage`` of ZooKeeper and a crash
            in it, or a request to ``hand over`` to a standby, which sleeps in every other plan.
        suspicion: whether contenders watch each other's processes.
        hosts_die: whether a process that crashes takes its host along.
        adopt_within: seconds for which a command outlives its sidecar.
        misled: contenders whose published address leads to another host.
        steps: in order.
    """

    seed: int
    calm: bool = False
    seconds: float = 60.0
    timing: Timing = field(default_factory=lambda: Timing(**TIMINGS[0]))
    rates: tuple[float, ...] = (1.0, 1.0)
    readers: int = 1
    agent: bool = False
    servers: int = 1
    tick: float = 0.0
    audit: float = 10.0
    jitter: float = 0.0
    stubborn: bool = False
    jobs: int = 1
    republishes: bool = False
    end: str = "nothing"
    suspicion: bool = False
    hosts_die: bool = False
    adopt_within: float = 0.0
    misled: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    @property
    def fresh(self) -> float:
        """Seconds for which a snapshot may be used."""
        return self.audit / FRESHNESSES_PER_AUDIT

    @property
    def contenders(self) -> list[str]:
        """The names of the contenders."""
        return [chr(ord("a") + number) for number in range(len(self.rates))]

    def without(self, steps: set[int]) -> "Plan":
        """Return the same plan without some of its steps."""
        return replace(self, steps=tuple(step for number, step in enumerate(self.steps) if number not in steps))


def draw(seed: int) -> Plan:
    """Draw a plan; the same seed gives the same one."""
    dice = random.Random(f"plan {seed}")  # noqa: S311  # replayed, not secret
    calm = dice.random() < 0.12
    timing = Timing(**dice.choice(TIMINGS))
    drift = timing.drift
    contenders = dice.choice((2, 2, 3))
    zookeeper = calm or dice.random() < 0.85
    servers = dice.choice((1, 3, 3)) if zookeeper else 0
    plan = Plan(
        seed=seed,
        calm=calm,
        seconds=dice.uniform(20, 40),
        timing=timing,
        rates=tuple(dice.choice((1 - drift, 1.0, 1 + drift)) for _ in range(contenders)),
        readers=dice.choice((1, 2)),
        servers=servers,
        tick=timing.session_timeout * dice.choice((0.5, 0.5, 0.2)) if servers > 1 else 0.0,
        audit=dice.choice((4.0, 10.0)),
        jitter=0.0 if calm else dice.choice((0.0, 0.02, timing.call_timeout / 3)),
        stubborn=dice.random() < 0.3,
        end=dice.choice(("nothing", "crash", "outage" if zookeeper else "crash")),
    )
    plan = replace(plan, agent=plan.readers > 1 and random.Random(f"agent {seed}").random() < 0.6)  # noqa: S311
    work = random.Random(f"work {seed}")  # noqa: S311
    plan = replace(plan, republishes=work.random() < REPUBLISHES, jobs=2 if work.random() < TWO_JOBS else 1)
    steps = [step for _ in range(dice.randint(2, 8)) for step in _draw_steps(dice, plan)]
    if not calm:
        steps += _draw_journal(random.Random(f"journal {seed}"), plan)  # noqa: S311
    if plan.agent and not calm:
        steps += _draw_agent(random.Random(f"agent's {seed}"), plan)  # noqa: S311
    if not calm:
        plan, more = _draw_slowness(random.Random(f"slow {seed}"), plan)  # noqa: S311
        steps += more
    if not calm and random.Random(f"hand over {seed}").random() < HAND_OVERS:  # noqa: S311
        plan = replace(plan, end="hand over")
    if plan.servers and not calm:
        plan, more = _draw_stale(random.Random(f"stale {seed}"), plan)  # noqa: S311
        steps = more or steps  # anything else would mend the cut too soon
    if plan.servers and not calm:
        forger = random.Random(f"forger {seed}")  # noqa: S311
        quiet = forger.random() < QUIET
        if quiet or forger.random() < FORGED:
            steps = _draw_forger(forger, plan) + ([] if quiet else steps)
    plan, more = _draw_suspicion(random.Random(f"suspicion {seed}"), plan)  # noqa: S311
    steps += more
    plan, steps = _draw_strangers(random.Random(f"strangers {seed}"), plan, steps)  # noqa: S311
    steps += _draw_paused(random.Random(f"paused {seed}"), plan)  # noqa: S311
    steps += _draw_words(random.Random(f"words {seed}"), plan)  # noqa: S311
    in_time = [step for step in steps if step.at < plan.seconds]
    return replace(plan, steps=tuple(sorted(in_time, key=lambda step: step.at)))


def draw_new_reader_without_hdfs(seed: int) -> Plan:
    """Draw a reader that begins while HDFS is away, for less time than a leader can bear, and ZooKeeper is not."""
    dice = random.Random(f"new reader {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[2])
    plan = Plan(seed, timing=timing, servers=dice.choice((1, 3)))
    at = dice.uniform(15, 25)
    steps = Step(at, "failover", "", timing.long_ttl / 3), Step(at, "crash", "r0", dice.uniform(0.05, 1.0))
    return replace(plan, steps=steps)


def draw_frozen_question(seed: int) -> Plan:
    """Draw an agent that is frozen, often while it asks ZooKeeper, and wakes up under another leader.

    A reader begins at that moment: the others know of that leader.
    """
    dice = random.Random(f"frozen question {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[2])
    plan = Plan(seed, timing=timing, readers=2, agent=True, audit=4.0)
    at, seconds = dice.uniform(12, 20), plan.audit + 5 * timing.session_timeout
    steps = (
        Step(at - 5, "slow", AGENT, seconds + 10, ("zookeeper", "both")),
        Step(at, "pause", AGENT, seconds),
        Step(at, "crash", "leader", 60.0),
        Step(at + seconds - 1, "crash", "r1", 1.0 + dice.uniform(0.0, plan.fresh / 2)),
    )
    return replace(plan, steps=steps)


def draw_agent_without_news(seed: int) -> Plan:
    """Draw an agent that is frozen over a change of the leader, and then waits in vain for ZooKeeper to report it.

    Meanwhile its snapshot runs out, and the other reader asks the stores. Then the agent writes the former leader anew.
    """
    dice = random.Random(f"agent without news {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[1])
    plan = Plan(seed, timing=timing, readers=2, agent=True, audit=10.0)
    at = dice.uniform(12, 25)
    steps = (
        Step(at - 1.5, "crash", AGENT, 0.2),  # the next one asks all stores, and relies on its watch from then on
        Step(at, "cut", AGENT, timing.session_timeout / 2, ("zookeeper", "both")),  # its client notices later
        Step(at + 0.1, "pause", AGENT, plan.fresh + 2.0),
        Step(at + 0.1, "unseat", "", 60.0, ("resign",)),
    )
    return replace(plan, steps=steps)


def draw_forgotten_batches(seed: int) -> Plan:
    """Draw a leader whose batches are listed and then forgotten, because the NameNode loses its journal repeatedly.

    Each loss lasts until the driver's call has been given up, and it has looked whether its batch is there.
    """
    dice = random.Random(f"forgotten batches {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[2])
    plan = Plan(seed, timing=timing, servers=dice.choice((1, 3)))
    times = [at + dice.uniform(0.0, 2.0) for at in range(8, 50, 4)]
    lasts = [timing.call_timeout * dice.uniform(1.0, 3.0) for _ in times]
    steps = [Step(round(at, 3), "journal", "", round(last, 3), ("0",)) for at, last in zip(times, lasts, strict=True)]
    return replace(plan, steps=tuple(steps))


def draw_lost_switch(seed: int) -> Plan:
    """Draw a leader whose switch to a short lease is executed, and which is then cut off before it is told.

    The session that attested its long lease may live for longer than the short one, which is what others go by.
    """
    dice = random.Random(f"lost switch {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[1])
    plan = Plan(seed, timing=timing, servers=1)
    at = dice.uniform(15, 30)
    steps = (
        Step(at, "fate", "", 2 * timing.session_timeout, ("switch to hdfs", "lost", "0", "isolate")),
        Step(at + 0.5, "drop", "leader", dice.uniform(1.0, 2.0)),
    )
    return replace(plan, steps=steps)


def draw_forged_names(seed: int) -> Plan:
    """Draw a stranger that may write in the job's directory, and makes names that no leader ever reaches there.

    Then the leader is lost, and another one has to come.
    """
    dice = random.Random(f"forged names {seed}")  # noqa: S311
    plan = Plan(seed, timing=Timing(**TIMINGS[2]), servers=dice.choice((0, 1)), end="crash")
    at = dice.uniform(12, 20)
    steps = (
        Step(at, "stranger", "", 0.0, (dice.choice(("lease", "directory")),)),
        Step(at + dice.uniform(0.0, 5.0), "unseat", "", 20.0, (dice.choice(UNSEAT),)),
    )
    return replace(plan, steps=steps)


def draw_sidecar_back(seed: int) -> Plan:
    """Draw sidecars that are killed while their commands run on, at each step, and others that take these up."""
    dice = random.Random(f"sidecar back {seed}")  # noqa: S311
    drawn = draw(seed)
    within = drawn.timing.short_ttl * dice.uniform(0.3, 1.5)
    endless = not drawn.suspicion and dice.random() < ENDLESS
    plan = replace(drawn, calm=False, jobs=1, hosts_die=False, stubborn=drawn.stubborn or endless)
    plan = replace(plan, adopt_within=NEVER if endless else within)
    steps = [step for _ in range(dice.randint(1, 4)) for step in _draw_back(dice, plan, within)]
    # A dead sidecar cannot be asked, and so its session's node must not be deleted: one of the assumptions of S1.
    others = [step for step in drawn.steps if step.kind != "stranger" or step.how[0] not in ("delete", "replace")]
    kept = [step for step in others if dice.random() < KEPT_BESIDE_BACK]
    return replace(plan, steps=tuple(sorted((*kept, *steps), key=lambda step: step.at)))


def draw_back_to_a_forgotten_name(seed: int) -> Plan:
    """Draw a leader that dies after a renewal that is shown and then forgotten; a new process takes the lease up.

    Standbys have seen the name of that renewal, and count from then. The new process is cut off after its first rename.
    """
    dice = random.Random(f"forgotten name {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[dice.choice((0, 1, 3))])
    plan = Plan(seed, timing=timing, servers=0, seconds=40.0, adopt_within=timing.short_ttl)
    at, shown = dice.uniform(12, 20), timing.short_ttl * dice.uniform(0.08, 0.14)
    back = round(shown + timing.short_ttl * dice.uniform(0.02, 0.08), 3)
    then = f"back answered 0 isolate {2 * timing.short_ttl:.3f}"
    step = Step(round(at, 3), "fate", "", back, ("renewal", "unwritten", f"{shown:.3f}", then))
    return replace(plan, steps=(step,))


def draw_back_after_a_release(seed: int) -> Plan:
    """Draw a leader that dies after it has given its lease back; a new process thinks that it is still held.

    Standbys have nothing that tells them of the release.
    """
    dice = random.Random(f"back after a release {seed}")  # noqa: S311
    timing = Timing(**TIMINGS[dice.choice((0, 1, 3))])
    plan = Plan(seed, timing=timing, servers=0, seconds=40.0, stubborn=True, adopt_within=NEVER)
    at, seconds = round(dice.uniform(12, 20), 3), round(timing.retry * dice.uniform(0.05, 1.0), 3)
    fate = Step(at, "fate", "", seconds, ("release", "fine", "0", "back"))
    return replace(plan, steps=(fate, Step(at + 0.1, "unseat", "", 0.0, ("resign",))))


CALM = ("outage", "wipe", "stall", "server-stop", "server-cut", "lag", "drop", "expire", "hang")
"""Of these none may move a leader or fail a lookup."""

STORMY = ("pause", "crash", "isolate", "cut", "cut", "slow", "unseat", "fate", "fate")
FILES = ("safe-mode", "failover")
OTHERS = ("request", "resign", "tamper", "tamper")

FATES = ("late", "late", "lost", "lost", "dropped", "refused")
AIMS = ("seizure", "claim", "renewal", "switch to hdfs", "switch to zookeeper", "release", "endpoint", "change", "any")
FORGERIES = ("forged epoch", "forged session", "forged endpoints")
QUIET, FORGED = 0.1, 0.4
"""Shares of the plans in which nothing else happens, or else much, while a stranger writes records of its own."""
DAMAGE = ("garbage", "delete", "older", "older", "forged")
LOOKS = 3
"""Each such request of an operator is none to hand over."""

HAND_OVERS = 0.15
"""Share of the plans that end with a request to hand over, after all was well."""

STALE = 0.08
"""Share of the plans with ZooKeeper in which a former copy stays for long."""

THEN = ("nothing", "crash", "pause", "isolate", "isolate", "expire", "drop")
UNSEAT = ("crash", "pause", "isolate", "resign")
JOURNAL = ("nothing", "nothing", "nothing", "nothing", "any time", "a takeover", "a takeover", "a renewal", "a change")
SLOW = ("nothing", "nothing", "nothing", "anybody", "a look", "a look")
SILENCED = 0.5
"""Share of the aimed ones in which the leader falls silent while ZooKeeper has trouble."""

SUSPICIOUS, HOSTS_DIE, MISLED = 0.8, 0.3, 0.15
"""Shares of the plans with ZooKeeper in which contenders watch each other, of those where hosts die, of contenders."""

PAUSED = 0.2
"""Share of the plans with trouble in which an operator pauses the job for a while."""

WORDS = 0.5
"""Share of the plans with suspicion in which a stranger says that the leader has released its lease."""

STRANGERS, CUT_AND_DELETED = 0.6, 0.3
"""Share of the plans with suspicion in which ZooKeeper is open, and strangers use it; share of the calm ones among
these in which they delete the leader's node while it cannot reach the file system."""

REPUBLISHES, TWO_JOBS = 0.5, 0.15
"""Shares of the plans in which leaders change their endpoints, and in which contenders contend for a second job."""

PEERS = ("reset", "sever", "silence", "freeze")
"""None of these may be taken for the end of a process; only the last one may move a leader."""

BACK_AIMS = ("renewal", "renewal", "switch to hdfs", "switch to zookeeper", "endpoint", "change", "release")
BACK_FATES = ("late", "late", "late", "lost", "dropped", "fine", "unwritten")
DOOMED = 0.5
"""Share of the sidecars that come back whose first change of the lease has such a fate."""

ENDLESS = 0.5
"""Share of the plans without suspicion in which guards wait for ever."""

KEPT_BESIDE_BACK = 0.3
"""Share of a plan's other steps that stay where sidecars come back: few others move the leader meanwhile."""

AIMED = 0.5
"""Share of the steps that are aimed at a command of the protocol, and come with what makes it be sent."""


def _deck(plan: Plan) -> tuple[str, ...]:
    if plan.calm:
        return CALM
    return STORMY + FILES + OTHERS + (CALM if plan.servers else ())


def _draw_steps(dice: random.Random, plan: Plan) -> list[Step]:
    if plan.calm or dice.random() > AIMED:
        return [_draw_step(dice, plan, dice.choice(_deck(plan)))]
    if plan.servers and dice.random() < SILENCED:
        return _draw_silence(dice, plan)
    return _draw_aimed(dice, plan)


def _draw_silence(dice: random.Random, plan: Plan) -> list[Step]:
    """Draw a leader that falls silent just when its server, or all of ZooKeeper, is disturbed."""
    timeout = plan.timing.session_timeout
    at = dice.uniform(2, plan.seconds)
    kind = dice.choice(("server-stop", "server-stop", "server-cut", "server-cut", "wipe", "outage", "stall"))
    seconds = dice.uniform(0.05, 0.3) if kind == "wipe" else timeout * dice.uniform(0.2, 2)
    noticed = f"{timeout * dice.uniform(0.2, 2):.3f}"
    before = timeout * dice.choice((0.02, 0.1, 0.3)) * dice.uniform(-0.3, 1)
    silent = Step(
        round(at - before, 3),
        dice.choice(("pause", "pause", "isolate", "isolate", "cut")),
        "leader",
        round(timeout * dice.uniform(0.7, 2), 3),
        ("files", "both"),
    )
    return [silent, Step(round(at, 3), kind, "leader", round(seconds, 3), (noticed,))]


def _draw_aimed(dice: random.Random, plan: Plan) -> list[Step]:
    """Draw a fault of one command, followed at once by a fault of its sender."""
    timing = plan.timing
    at = round(dice.uniform(2, plan.seconds), 3)
    soon = round(at + dice.uniform(0.05, 1.0), 3)
    aims = ("seizure", "claim", "switch") if plan.servers else ("seizure", "claim", "renewal")
    aim = dice.choice(aims)
    span = max(timing.short_ttl, timing.session_timeout)
    seconds = round(span * dice.uniform(0.3, 1.6), 3)
    late = f"{timing.short_ttl * dice.uniform(0.1, 2.5):.3f}"
    fate = dice.choice(("late", "late", "lost", "lost", "dropped", "fine"))
    then = dice.choice(("pause", "pause", "isolate", "isolate", "crash", "nothing"))
    if aim == "switch":
        aim = dice.choice(("switch to hdfs", "switch to zookeeper"))
        cause = Step(soon, "drop", "leader", round(dice.uniform(0.1, 2.0), 3))
        if plan.servers > 1 and dice.random() < 0.5:
            server, noticed = "leader", f"{timing.session_timeout * dice.uniform(0.1, 2):.3f}"
            cause = Step(soon, dice.choice(("server-stop", "server-cut", "lag")), server, seconds, (noticed,))
    else:
        cause = Step(soon, "unseat", "", round(span * dice.uniform(1, 2), 3), (dice.choice(UNSEAT),))
    return [Step(at, "fate", "", seconds, (aim, fate, late, then)), cause]


def _draw_agent(dice: random.Random, plan: Plan) -> list[Step]:
    """Draw an agent that misses a change of the leader: readers must not believe its old answer for long."""
    at, span = dice.uniform(2, plan.seconds), max(plan.timing.short_ttl, plan.timing.session_timeout)
    seconds = span * dice.uniform(0.2, 2)
    missing = Step(round(at, 3), dice.choice(("pause", "crash", "isolate")), AGENT, round(seconds, 3))
    meanwhile = round(at + seconds * dice.uniform(-0.1, 0.8), 3)
    return [missing, Step(meanwhile, "unseat", "", round(span * dice.uniform(1, 2), 3), (dice.choice(UNSEAT),))]


def _draw_forger(dice: random.Random, plan: Plan) -> list[Step]:
    """Draw a stranger that writes records of its own, most often when HDFS is away or a reader has just begun."""
    at, steps = round(dice.uniform(2, plan.seconds), 3), []
    reader = f"r{dice.randrange(plan.readers)}"
    match dice.choice(("any time", "a beginning", "no HDFS")):
        case "a beginning":
            steps.append(Step(at, "crash", reader, round(dice.uniform(0.05, 1.0), 3)))
        case "no HDFS":
            at, seconds = round(dice.uniform(4.0, plan.seconds - 10.0), 3), round(dice.uniform(1.0, 12.0), 3)
            new = Step(at, "failover", "", seconds), Step(at, "crash", reader, round(dice.uniform(0.05, 1.0), 3))
            steps += dice.choice((new, (Step(at, "cut", reader, seconds, ("files", "both")),)))
    how = dice.choice(FORGERIES)
    times = dice.choice((0, 0, 0, 1, 5, 20))
    return steps + [Step(round(at + 0.3 * number, 3), "forge", "", 0.0, (how,)) for number in range(times)]


def _draw_journal(dice: random.Random, plan: Plan) -> list[Step]:
    """Draw a loss of the journal, most often while an important command is executed."""
    timing = plan.timing
    at, share = round(dice.uniform(2, plan.seconds), 3), dice.choice(("0", "0", "0.5", "all"))
    scale = dice.choice((timing.call_timeout, timing.short_ttl, timing.session_timeout))
    lasts = round(scale * dice.uniform(0.3, 2), 3)
    then = dice.choice(THEN[:4])
    match dice.choice(JOURNAL):
        case "any time":
            return [Step(at, "journal", "", lasts, (share,))]
        case "a takeover":
            aim, soon = dice.choice(("seizure", "claim", "endpoint")), round(at + dice.uniform(0.05, 1.0), 3)
            span = round(max(timing.short_ttl, timing.session_timeout) * dice.uniform(1, 2), 3)
            cause = [Step(soon, "unseat", "", span, (dice.choice(UNSEAT),))]
        case "a renewal":
            # The excess of belief is exactly the remaining promise of the lease before.
            aim, then, lasts = "renewal", "nothing", round(timing.short_ttl * dice.uniform(0.4, 1.1), 3)
            cause = [Step(at - 1, "outage", "", 3 * timing.short_ttl)] if plan.servers else []
        case "a change":
            aim = dice.choice(("switch to hdfs", "switch to zookeeper", "release", "change"))
            cause = [Step(at, "drop", "leader", round(dice.uniform(0.1, 2.0), 3))]
        case _:
            return []
    return [Step(at, "fate", "", lasts, (aim, "unwritten", f"{lasts}", then)), *cause]


def _draw_slowness(dice: random.Random, plan: Plan) -> tuple[Plan, list[Step]]:
    """Draw answers that are slow, and come in time, most often while a standby looks at a lease that is renewed."""
    timing, at = plan.timing, dice.uniform(2, plan.seconds)
    match dice.choice(SLOW):
        case "anybody":
            target = dice.choice(("leader", *plan.contenders))
            store = dice.choice(("files", "zookeeper")) if plan.servers else "files"
            lasts = round(timing.long_ttl * dice.uniform(0.2, 1), 3)
            return plan, [Step(round(at, 3), "sluggish", target, lasts, (store,))]
        case "a look":
            # The last thing that a standby sees is a renewal that was sent after the standby's question.
            at = max(2.0, min(at, plan.seconds - 3 * timing.short_ttl))
            cause = [Step(round(at - 1, 3), "outage", "", 5 * timing.short_ttl)] if plan.servers else []
            strikes = round(at + timing.renewal, 3)
            lasts = round(2 * timing.renewal + timing.call_timeout * dice.uniform(1, 2), 3)
            gone = round(timing.short_ttl * dice.uniform(1.5, 2.5), 3)
            then = dice.choice(("isolate", "pause"))
            return replace(plan, jitter=0.0), [
                *cause,
                Step(round(at, 3), "sluggish", "", lasts, ("files",)),
                Step(strikes, "fate", "", gone, ("renewal during a look", "answered", "0", then)),
            ]
        case _:
            return plan, []


def _draw_stale(dice: random.Random, plan: Plan) -> tuple[Plan, list[Step]]:
    """Draw a former copy that nobody repairs, because all contenders have lost ZooKeeper: readers have to audit."""
    if dice.random() > STALE:
        return plan, []
    timing, at = plan.timing, dice.uniform(2, 6)
    stale = at + timing.session_timeout * 1.1 + plan.tick
    kind = dice.choice(("newest", "newest", "newest", "older"))
    lasts = plan.audit * (1 + 1 / FRESHNESSES_PER_AUDIT) + 14 + (timing.short_ttl * 1.3 if kind == "newest" else 0)
    seconds = round(stale + lasts - at, 3)
    cuts = [Step(round(at, 3), "cut", name, seconds, ("zookeeper", "both")) for name in plan.contenders]
    # Of a change of the leader the readers hear nothing. Readers that look for the first time know no leader yet.
    unseated = [Step(round(stale + 0.5, 3), "unseat", "", 60.0, (dice.choice(("crash", "pause")),))]
    anew = [Step(round(stale + 0.1, 3), "crash", f"r{number}", 0.2) for number in range(plan.readers)]
    strike = Step(round(stale, 3), "tamper", "", 0.0, ("leader", kind))
    then = unseated if kind == "newest" else anew
    return replace(plan, seconds=max(plan.seconds, stale + lasts)), [*cuts, strike, *then]


def _draw_suspicion(dice: random.Random, plan: Plan) -> tuple[Plan, list[Step]]:
    """Draw faults of the connections among contenders, which need no store."""
    suspicion = plan.servers > 0 and dice.random() < SUSPICIOUS
    misled = tuple(name for name in plan.contenders if dice.random() < MISLED)
    plan = replace(plan, suspicion=suspicion, hosts_die=dice.random() < HOSTS_DIE, misled=misled)
    if not suspicion:
        return plan, []
    steps = []
    for _ in range(dice.randint(0, 3)):
        at, seconds = dice.uniform(2, plan.seconds), plan.timing.session_timeout * dice.uniform(0.01, 1.5)
        kind, target = (
            dice.choice(PEERS[:3] if plan.calm else PEERS),
            dice.choice(("leader", "leader", *plan.contenders)),
        )
        steps.append(Step(round(at, 3), kind, target, round(seconds, 3)))
    return plan, steps


def _draw_strangers(dice: random.Random, plan: Plan, steps: list[Step]) -> tuple[Plan, list[Step]]:
    """Draw strangers at work in an open ZooKeeper. Where they delete nodes, the leader can be asked all the time."""
    if not plan.suspicion or dice.random() > STRANGERS:
        return plan, steps
    timeout = plan.timing.session_timeout

    def stranger(what: str) -> Step:
        at, seconds = dice.uniform(2, plan.seconds), timeout * dice.uniform(0.5, 2)
        return Step(round(at, 3), "stranger", "leader", round(seconds, 3), (what,))

    if not plan.calm:
        return plan, [*steps, *(stranger("contact") for _ in range(2))]
    if dice.random() < CUT_AND_DELETED:
        deletion = stranger("delete")
        cut = Step(round(deletion.at - 0.1, 3), "cut", "leader", round(timeout * 2.5, 3), ("files", "both"))
        return replace(plan, calm=False, misled=()), [cut, deletion]
    what = dice.choice(("delete", "replace"))
    deletions = [stranger(what) for _ in range(dice.randint(1, 6))]
    return replace(plan, misled=()), [step for step in steps if step.kind not in PEERS] + deletions


def _draw_paused(dice: random.Random, plan: Plan) -> list[Step]:
    """Draw a pause of the job, mostly around another disturbance; the next leader is due when it is over."""
    if plan.calm or dice.random() >= PAUSED:
        return []
    return [Step(dice.uniform(5.0, plan.seconds), "pause-job", "", dice.uniform(1.0, 20.0))]


def _draw_words(dice: random.Random, plan: Plan) -> list[Step]:
    """Draw forged words of releases on the connections among contenders."""
    if not plan.suspicion or dice.random() > WORDS:
        return []
    times = (round(dice.uniform(2, plan.seconds), 3) for _ in range(dice.randint(1, 5)))
    return [Step(at, "stranger", "leader", 0.0, ("word",)) for at in times]


def _draw_back(dice: random.Random, plan: Plan, within: float) -> list[Step]:
    """Draw a sidecar that dies, often while a command of it is under way, and one that comes back in time or late."""
    timing, at = plan.timing, round(dice.uniform(3, plan.seconds), 3)
    seconds = round(within * dice.uniform(0.02, 1.2), 3)
    late = f"{timing.short_ttl * dice.uniform(0.02, 1.5):.3f}"
    then = ""
    if dice.random() < DOOMED:
        what = dice.choice(("nothing", "back", "back", "pause", "isolate", "isolate"))
        then = f" {dice.choice(BACK_FATES)} {late} {what} {within * dice.uniform(0.1, 3):.3f}"
    match dice.choice(("any time", "any time", "a command", "a command", "a command", "a second one")):
        case "any time":
            return [Step(at, "back", "leader", seconds, tuple(then.split()))]
        case "a second one":
            first = Step(at, dice.choice(("freeze", "pause", "rush", "back")), "leader", seconds)
            return [first, Step(at + seconds / 2, "rush", "leader")]
        case _:
            aim = dice.choice(BACK_AIMS)
            cause = Step(round(at + 0.1, 3), "drop", "leader", round(dice.uniform(0.1, 2.0), 3))
            if aim == "release":
                cause = Step(round(at + 0.1, 3), "unseat", "", 0.0, ("resign",))
                seconds = round(timing.retry * dice.uniform(0.02, 0.5), 3)
            causes = [cause] if plan.servers or aim == "release" else []
            return [Step(at, "fate", "", seconds, (aim, dice.choice(BACK_FATES), late, f"back{then}")), *causes]


def _draw_step(dice: random.Random, plan: Plan, kind: str) -> Step:
    at = round(dice.uniform(2, plan.seconds), 3)
    timing = plan.timing
    scale = dice.choice((timing.call_timeout, timing.short_ttl, timing.session_timeout, timing.long_ttl))
    seconds = round(scale * dice.uniform(0.2, 1.3), 3)
    hosts = plan.contenders + [f"r{number}" for number in range(plan.readers)]
    target = ""
    how: tuple[str, ...] = ()
    match kind:
        case "cut" | "slow":
            store = "zookeeper" if plan.servers and dice.random() < 0.5 else "files"
            target, how = dice.choice(hosts), (store, dice.choice(("there", "back", "both")))
        case "fate":
            late = dice.choice((timing.call_timeout, timing.short_ttl, timing.session_timeout)) * dice.uniform(0.1, 2.5)
            then = dice.choice(THEN if plan.servers else THEN[:5])
            how = (dice.choice(AIMS), dice.choice(FATES), f"{late:.3f}", then)
        case "unseat":
            how = (dice.choice(UNSEAT),)
        case "pause" | "crash" | "isolate" | "drop" | "expire" | "hang":
            target = dice.choice(hosts)
        case "server-stop" | "server-cut" | "lag":
            target, how = str(dice.randrange(plan.servers)), (f"{timing.session_timeout * dice.uniform(0.1, 2):.3f}",)
        case "tamper":
            how = (dice.choice(("leader", "leader", "checkpoints")), dice.choice(DAMAGE))
        case "request":
            how = (dice.choice(["_any", *plan.contenders]),)
            if round(at * 1000) % LOOKS == 0:
                how = (LOOK,)
        case "resign":
            target = dice.choice(plan.contenders)
    return Step(at, kind, target, seconds, how)
