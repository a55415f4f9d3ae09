"""Drawing: the plan of a seed. Its faults are drawn by chance, and half of them are aimed at a command."""

import random
from dataclasses import replace

from ha.config.leadership_settings import FRESHNESSES_PER_AUDIT
from leader.layout.lease import LOOK
from leader.timing import Timing
from tests.system.simulation.corners import draw_corner
from tests.system.simulation.plan import AGENT, TIMINGS, UNSEAT, Plan, Step

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
JOURNAL = ("nothing", "nothing", "nothing", "nothing", "any time", "a takeover", "a takeover", "a renewal", "a change")
SLOW = ("nothing", "nothing", "nothing", "anybody", "a look", "a look")
SILENCED = 0.5
"""Share of the aimed ones in which the leader falls silent while ZooKeeper has trouble."""

SUSPICIOUS, HOSTS_DIE, MISLED = 0.8, 0.3, 0.15
"""Shares of the plans with ZooKeeper in which contenders watch each other, of those where hosts die, of contenders."""

PAUSED = 0.2
"""Share of the plans with trouble in which an operator pauses the job for a while."""

SHARED = 0.35
"""Share of the plans with ZooKeeper in which contenders borrow the sessions of their hosts."""

HOLDERS = ("pause", "pause", "crash", "drop", "expire", "hang", "isolate", "cut", "slow")
"""What befalls the holder of a host's session; none of it may move a leader."""

PARTED = 0.4
"""Share of the disturbances of a shared session in which only the socket breaks."""

WORDS = 0.5
"""Share of the plans with suspicion in which a stranger says that the leader has released its lease."""

STRANGERS, CUT_AND_DELETED = 0.6, 0.3
"""Share of the plans with suspicion in which ZooKeeper is open, and strangers use it; share of the calm ones among
these in which they delete the leader's node while it cannot reach the file system."""

REPUBLISHES, TWO_JOBS = 0.5, 0.15
"""Shares of the plans in which leaders change their endpoints, and in which contenders contend for a second job."""

PEERS = ("reset", "sever", "silence", "freeze")
"""None of these may be taken for the end of a process; only the last one may move a leader."""

AIMED = 0.5
"""Share of the steps that are aimed at a command of the protocol, and come with what makes it be sent."""


def draw(seed: int) -> Plan:
    """Draw a plan; the same seed gives the same one."""
    return draw_corner(seed) or draw_by_chance(seed)


def draw_by_chance(seed: int) -> Plan:
    """Draw a plan in which faults come by chance."""
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
    plan, more = _draw_shared(random.Random(f"shared {seed}"), plan)  # noqa: S311
    steps += more
    steps += _draw_words(random.Random(f"words {seed}"), plan)  # noqa: S311
    in_time = [step for step in steps if step.at < plan.seconds]
    return replace(plan, steps=tuple(sorted(in_time, key=lambda step: step.at)))


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


def _draw_shared(dice: random.Random, plan: Plan) -> tuple[Plan, list[Step]]:
    """Draw contenders that borrow their hosts' sessions, and what befalls the holders."""
    if not plan.servers or dice.random() >= SHARED:
        return plan, []
    lenders = tuple(dice.choice(("h0", "h0", "h1", "")) for _ in plan.contenders)
    rates = dict(zip(lenders, plan.rates, strict=True))  # one host, one clock
    same = tuple(rates[lender] if lender else rate for lender, rate in zip(lenders, plan.rates, strict=True))
    plan = replace(plan, lenders=lenders, rates=same)
    return plan, [_draw_lender(dice, plan) for _ in range(dice.randint(0, 5) if plan.holders else 0)]


def _draw_lender(dice: random.Random, plan: Plan) -> Step:
    timeout = plan.timing.session_timeout
    at, seconds = round(dice.uniform(2, plan.seconds), 3), round(timeout * dice.uniform(0.05, 2), 3)
    if dice.random() < PARTED:
        return Step(at, "part", dice.choice(("leader", *plan.contenders)))
    kind = dice.choice(HOLDERS)
    how = ("zookeeper", dice.choice(("there", "back", "both"))) if kind in ("cut", "slow") else ()
    return Step(at, kind, dice.choice(plan.holders), seconds, how)


def _draw_words(dice: random.Random, plan: Plan) -> list[Step]:
    """Draw forged words of releases on the connections among contenders."""
    if not plan.suspicion or dice.random() > WORDS:
        return []
    times = (round(dice.uniform(2, plan.seconds), 3) for _ in range(dice.randint(1, 5)))
    return [Step(at, "stranger", "leader", 0.0, ("word",)) for at in times]


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
