"""What happens in one run: drawn from a seed, and small enough to be read, shrunk and kept as a regression test."""

import random
from dataclasses import dataclass, field, replace

from ha.settings import FRESHNESSES_PER_AUDIT
from leader.timing import Timing

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
    """One thing that is done to the system.

    Attributes:
        at: seconds after the start.
        kind: what is done; a method of :class:`tests.simulation.hands.Hands`.
        target: to which host or server; empty if to all.
        seconds: for how long.
        how: what else must be known.
    """

    at: float
    kind: str
    target: str = ""
    seconds: float = 0.0
    how: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """One run.

    Attributes:
        seed: of all dice that are thrown while it runs.
        calm: whether ZooKeeper alone is disturbed: then no leader may change and no lookup may fail.
        seconds: after which everything heals.
        timing: all durations.
        rates: how fast each contender's clock goes.
        readers: how many.
        agent: whether they are processes of one host, and the first of them is its agent.
        servers: of ZooKeeper; 0 leaves all to the file system.
        tick: ZooKeeper's, in seconds.
        audit: of the readers, in seconds.
        jitter: most seconds that a request to the file system is late by chance.
        stubborn: whether drivers go on when they are told to stop, until they are refused.
        end: what is done once all is well again: ``nothing``, ``crash`` of the leader, ``outage`` of ZooKeeper and a
            crash in it.
        suspicion: whether contenders watch each other's processes.
        hosts_die: whether a process that crashes takes its host along.
        misled: contenders whose address, as they tell it, leads to another host.
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
    end: str = "nothing"
    suspicion: bool = False
    hosts_die: bool = False
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
        """The same, less some of its steps."""
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
    steps = [step for _ in range(dice.randint(2, 8)) for step in _draw_steps(dice, plan)]
    if not calm:
        steps += _draw_journal(random.Random(f"journal {seed}"), plan)  # noqa: S311
    if plan.agent and not calm:
        steps += _draw_agent(random.Random(f"agent's {seed}"), plan)  # noqa: S311
    plan, more = _draw_suspicion(random.Random(f"suspicion {seed}"), plan)  # noqa: S311
    steps += more
    in_time = [step for step in steps if step.at < plan.seconds]
    return replace(plan, steps=tuple(sorted(in_time, key=lambda step: step.at)))


CALM = ("outage", "wipe", "stall", "server-stop", "server-cut", "lag", "drop", "expire", "hang")
"""Of these none may move a leader or fail a lookup."""

STORMY = ("pause", "crash", "isolate", "cut", "cut", "slow", "unseat", "fate", "fate")
FILES = ("safe-mode", "failover")
OTHERS = ("request", "resign", "tamper", "tamper")

FATES = ("late", "late", "lost", "lost", "dropped", "refused")
AIMS = ("seizure", "claim", "renewal", "switch to hdfs", "switch to zookeeper", "release", "endpoint", "change", "any")
DAMAGE = ("garbage", "delete", "older", "older", "forged")
THEN = ("nothing", "crash", "pause", "isolate", "isolate", "expire", "drop")
UNSEAT = ("crash", "pause", "isolate", "resign")
JOURNAL = ("nothing", "nothing", "nothing", "nothing", "any time", "a takeover", "a takeover", "a renewal", "a change")
SILENCED = 0.5
"""Share of the aimed ones in which the leader falls silent while ZooKeeper has trouble."""

SUSPICIOUS, HOSTS_DIE, MISLED = 0.8, 0.3, 0.15
"""Shares of the plans with ZooKeeper in which contenders watch each other, of those where hosts die, of contenders."""

PEERS = ("reset", "sever", "silence", "freeze")
"""None of these may be taken for the end of a process; only the last one may move a leader."""

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
    """The leader falls silent just when its server, or all of ZooKeeper, has trouble."""
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
    """Something goes wrong with one command, and right after it with whoever sent it."""
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
    """The agent misses a change of the leader: what it was told before must not be believed for long."""
    at, span = dice.uniform(2, plan.seconds), max(plan.timing.short_ttl, plan.timing.session_timeout)
    seconds = span * dice.uniform(0.2, 2)
    missing = Step(round(at, 3), dice.choice(("pause", "crash", "isolate")), AGENT, round(seconds, 3))
    meanwhile = round(at + seconds * dice.uniform(-0.1, 0.8), 3)
    return [missing, Step(meanwhile, "unseat", "", round(span * dice.uniform(1, 2), 3), (dice.choice(UNSEAT),))]


def _draw_journal(dice: random.Random, plan: Plan) -> list[Step]:
    """The journal is lost, most often at the moment when a command is executed that much depends on."""
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
            # What is believed too much is what the lease before would still have promised: no more than that, no less.
            aim, then, lasts = "renewal", "nothing", round(timing.short_ttl * dice.uniform(0.4, 1.1), 3)
            cause = [Step(at - 1, "outage", "", 3 * timing.short_ttl)] if plan.servers else []
        case "a change":
            aim = dice.choice(("switch to hdfs", "switch to zookeeper", "release", "change"))
            cause = [Step(at, "drop", "leader", round(dice.uniform(0.1, 2.0), 3))]
        case _:
            return []
    return [Step(at, "fate", "", lasts, (aim, "unwritten", f"{lasts}", then)), *cause]


def _draw_suspicion(dice: random.Random, plan: Plan) -> tuple[Plan, list[Step]]:
    """What happens among contenders, whose connections are no store's."""
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
        case "resign":
            target = dice.choice(plan.contenders)
    return Step(at, kind, target, seconds, how)
