"""Benchmark of takeovers: time without a leader, here, with kazoo's ``Election``, and with Curator's ``LeaderLatch``.

    systems     the three systems and their command lines
    pair        a leader and its standby              network   hosts that can be disconnected
    faults      faults of the leader                  load      load of the machine
    readers     when readers find the next leader     trial     rounds, with pairs of all systems side by side

A takeover is over when the next leader has the leadership *and* a watching reader was told of it. The takeovers of this
project count twice: for a reader of its own, and for one on the host of an agent. All times are read from one clock,
the host's boot clock.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from statistics import median

from benchmarks.context import Context, servers
from benchmarks.drawing import dots
from benchmarks.result import Picture, Result, Target
from benchmarks.takeover.faults import FAULTS, KILL, LOSS, OUTAGE, RESIGN, YOUNG, Fault
from benchmarks.takeover.network import Network, NoNetwork, network
from benchmarks.takeover.pair import Pair
from benchmarks.takeover.readers import AgentReader, ElectionReader, HereReader, Reader
from benchmarks.takeover.systems import CURATOR, HERE, KAZOO, SYSTEMS, WITH_AGENT
from benchmarks.takeover.trial import Conditions, Takeover, Trial
from ha.sandbox import Sandbox

NAME = "takeover"
TITLE = "How long a job is without a leader"
COLUMNS = (
    "fault",
    "session timeout, s",
    "system",
    "rounds",
    "median, s",
    "fastest, s",
    "slowest, s",
    "granted, median s",
    "found, median s",
    "never",
    "times as long as here",
)
ROUNDS = 15
PAIRS = 3
"""Pairs of each system at the same time. More would finish sooner, but would measure the machine as well."""

TIMEOUTS = (4.0, 10.0)
FASTER = 10.0
SOON = 1.0
"""Seconds within which the next leader should be found where ZooKeeper cannot tell, or the leader is young."""

WITHIN = 1.15
"""Share of the session timeout within which a takeover should end after the loss of a host."""

_numbers = count(1)


def run(context: Context) -> Result:
    """Run the benchmark; the usual rounds take half an hour.

    Raises:
        SandboxError: the servers did not start.
        NoLeader: a contender did not start.
    """
    found: list[Takeover] = []
    conditions: list[Conditions] = []
    skipped: list[str] = []
    with servers(context) as sandbox:
        for timeout in TIMEOUTS[:1] if context.quick else TIMEOUTS:
            for fault in FAULTS:
                try:
                    takeovers, loads = _measured(context, sandbox, fault, timeout)
                except NoNetwork as error:
                    skipped.append(f"NOT MEASURED: {fault.name}, session timeout {timeout:g} s: {error}.")
                    context.say(skipped[-1])
                else:
                    found += takeovers
                    conditions += loads
    return report(found, conditions, skipped)


def _measured(
    context: Context, sandbox: Sandbox, fault: Fault, timeout: float
) -> tuple[list[Takeover], list[Conditions]]:
    rounds = math.ceil(context.repeats(ROUNDS) / PAIRS)
    with ExitStack() as stack:
        hosts = stack.enter_context(network()) if fault.hosts else None
        readers = stack.enter_context(_readers(context, sandbox, timeout))
        pairs = stack.enter_context(_pairs(context, sandbox, timeout, hosts))
        trial = Trial(sandbox, fault, timeout, readers)
        for pair in pairs:
            for reader in trial.readers_of(pair):
                readers[reader].follow(pair.job)
        done = [trial.round(pairs, context.say) for _ in range(rounds)]
    return [takeover for takeovers, _ in done for takeover in takeovers], [load for _, load in done]


@contextmanager
def _readers(context: Context, sandbox: Sandbox, timeout: float) -> Iterator[dict[str, Reader]]:
    environment = sandbox.environment()
    folder = context.folder / f"agent-{next(_numbers)}"
    folder.mkdir()
    made: dict[str, Reader] = {HERE.name: HereReader(environment, timeout)}
    try:
        made[WITH_AGENT] = AgentReader(environment, _variables(environment, timeout), timeout, folder)
        for system in (KAZOO, CURATOR):
            made[system.name] = ElectionReader(system.baseline, environment, timeout)
        yield made
    finally:
        for reader in made.values():
            reader.close()


@contextmanager
def _pairs(context: Context, sandbox: Sandbox, timeout: float, hosts: Network | None) -> Iterator[list[Pair]]:
    given = sandbox.environment()
    variables = _variables(hosts.environment(given) if hosts is not None else given, timeout)
    made = []
    try:
        for _ in range(PAIRS):
            for system in SYSTEMS:
                job = f"takeover-{next(_numbers)}"
                folder = Path(context.folder, job).absolute()
                folder.mkdir()
                two = [hosts.host() if hosts is not None else None for _ in range(2)]
                made.append(Pair(system, job, variables, folder, two))
        yield made
    finally:
        for pair in made:
            pair.end()


def _variables(servers_: Mapping[str, str], timeout: float) -> dict[str, str]:
    """Return all environment variables of a process that uses these servers."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("HA_")}
    return {**own, **servers_, "HA_SESSION_TIMEOUT": f"{timeout:g}"}


# --- summary


def report(found: Sequence[Takeover], conditions: Sequence[Conditions], skipped: Sequence[str]) -> Result:
    """Summarise what was measured.

    Args:
        found: every takeover.
        conditions: of every round.
        skipped: a sentence for each case that was not measured.
    """
    cases = _cases(found)
    return Result(
        name=NAME,
        title=TITLE,
        columns=COLUMNS,
        rows=tuple(_row(case, takeovers, cases) for case, takeovers in cases.items()),
        targets=(
            *(_faster(cases, baseline.name) for baseline in (KAZOO, CURATOR)),
            _within(cases),
            *(_soon(cases, fault) for fault in (OUTAGE, YOUNG)),
            _like_kazoo(cases),
        ),
        notes=(*skipped, *_notes(conditions)),
        pictures=tuple(_picture(fault, cases) for fault in FAULTS if any(case[0] == fault.name for case in cases)),
        raw={"takeovers": [asdict(each) for each in found], "conditions": [asdict(each) for each in conditions]},
    )


Case = tuple[str, float, str]
"""Fault, session timeout, system."""

Cases = Mapping[Case, list[Takeover]]


def _cases(found: Sequence[Takeover]) -> Cases:
    cases: dict[Case, list[Takeover]] = {}
    for each in found:
        cases.setdefault((each.fault, each.session_timeout, each.system), []).append(each)
    return cases


def _median(cases: Cases, case: Case) -> float:
    return median(each.seconds for each in cases[case]) if case in cases else math.nan


def _row(case: Case, takeovers: Sequence[Takeover], cases: Cases) -> tuple[str | float | int, ...]:
    fault, timeout, system = case
    seconds = [each.seconds for each in takeovers]
    here = _median(cases, (fault, timeout, HERE.name))
    return (
        fault,
        timeout,
        system,
        len(takeovers),
        median(seconds),
        min(seconds),
        max(seconds),
        median(each.granted for each in takeovers),
        median(each.found for each in takeovers),
        sum(math.isinf(each) for each in seconds),
        median(seconds) / here,
    )


def _faster(cases: Cases, baseline: str) -> Target:
    longest = max(TIMEOUTS)
    ours, theirs = (_median(cases, (KILL.name, longest, name)) for name in (HERE.name, baseline))
    sentence = f"takeover after SIGKILL, session timeout {longest:g} s: {baseline} takes so many times as long"
    return Target(sentence, FASTER, theirs / ours, "x", at_most=False)


def _within(cases: Cases) -> Target:
    """Return the target for the slowest takeover of all rounds."""
    shares = [
        each.seconds / timeout
        for (fault, timeout, system), takeovers in cases.items()
        if (fault, system) == (LOSS.name, HERE.name)
        for each in takeovers
    ]
    sentence = "takeover after the loss of a host, the slowest one"
    return Target(sentence, WITHIN, max(shares, default=math.nan), "x session timeout", at_most=True)


def _soon(cases: Cases, fault: Fault) -> Target:
    """Return the target for the slower of the two readers, under any session timeout."""
    medians = [_median(cases, case) for case in cases if case[0] == fault.name and case[2] in (HERE.name, WITH_AGENT)]
    sentence = f"{fault.name}: the next leader leads and is found, median"
    return Target(sentence, SOON, max(medians, default=math.nan), "s", at_most=True)


def _like_kazoo(cases: Cases) -> Target:
    longest = max(TIMEOUTS)
    ours, theirs = (cases.get((RESIGN.name, longest, name), ()) for name in (HERE.name, KAZOO.name))
    times = math.nan
    if ours and theirs:
        times = median(each.found for each in ours) / median(each.found for each in theirs)
    return Target("orderly end: the next leader is found, of kazoo's time", 1.0, times, "x", at_most=True)


def _notes(conditions: Sequence[Conditions]) -> tuple[str, ...]:
    pairs = PAIRS * len(SYSTEMS)
    notes = [
        f"{PAIRS} pairs of each system at the same time, {pairs} in all, with staggered faults: all under one load.",
        "A kill ends the process and all its children. A lost host's cable is pulled; its processes go on.",
        "One ZooKeeper server with a tick of 0.5 s: with the usual tick of 2 s sessions end up to 1.5 s later.",
        "Readers watch, with an agent on their host and without. Each contender has an agent on a host of its own.",
        "Contenders run a command that ends at once on SIGTERM.",
    ]
    if conditions:
        busy, waited = (median(getattr(each, name) for each in conditions) for name in ("busy", "waited"))
        worst = max(each.busy for each in conditions)
        notes.append(
            f"The {os.cpu_count()} processors were busy for {busy:.0%} of the measured time (median of "
            f"rounds; {worst:.0%} in the busiest), and some process waited for one for {waited:.0%} of it."
        )
    return tuple(notes)


def _picture(fault: Fault, cases: Cases) -> Picture:
    series = {
        f"{system}, {timeout:g} s": [each.seconds for each in takeovers]
        for (name, timeout, system), takeovers in cases.items()
        if name == fault.name
    }
    title = f"Time until the next leader leads and is found: {fault.name}"
    return Picture(fault.key, title, dots(title, "s", series, log=True))
