"""Benchmark of takeovers: time without a leader, here, with kazoo's ``Election`` and Curator's ``LeaderLatch``."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import count
from pathlib import Path
from statistics import median

from benchmarks.context import Context, servers
from benchmarks.drawing import dotted
from benchmarks.result import Picture, Result, Target, at_least, at_most, table
from benchmarks.takeover.network import Network, NoNetwork, network
from benchmarks.takeover.pair import CURATOR, HERE, KAZOO, SYSTEMS, WITH_AGENT, Pair
from benchmarks.takeover.readers import AgentReader, ElectionReader, HereReader, Reader
from benchmarks.takeover.trial import FAULTS, KILL, LOSS, OUTAGE, RESIGN, YOUNG, Fault, Takeover, Trial
from ha.sandbox import Sandbox

TITLE = "How long a job is without a leader"
ROUNDS = 15
PAIRS = 3  # Pairs of each system at the same time. More would finish sooner, but would measure the machine as well.
TIMEOUTS = (4.0, 10.0)
FASTER = 10.0
SOON = 1.0  # Seconds within which the next leader should be found where ZooKeeper cannot tell, or the leader is young
WITHIN = 1.15  # Share of the session timeout within which a takeover should end after the loss of a host

_numbers = count(1)


def run(context: Context) -> Result:
    """Run the benchmark; the usual rounds take half an hour."""
    found: list[Takeover] = []
    skipped: list[str] = []
    with servers(context) as sandbox:
        for timeout in TIMEOUTS[:1] if context.quick else TIMEOUTS:
            for fault in FAULTS:
                try:
                    found += _measured(context, sandbox, fault, timeout)
                except NoNetwork as error:
                    skipped.append(f"NOT MEASURED: {fault.name}, session timeout {timeout:g} s: {error}.")
                    context.say(skipped[-1])
    return report(found, skipped)


def _measured(context: Context, sandbox: Sandbox, fault: Fault, timeout: float) -> list[Takeover]:
    rounds = math.ceil(context.repeats(ROUNDS) / PAIRS)
    with ExitStack() as stack:
        hosts = stack.enter_context(network()) if fault.hosts else None
        readers = stack.enter_context(_readers(context, sandbox, timeout))
        pairs = stack.enter_context(_pairs(context, sandbox, timeout, hosts))
        trial = Trial(sandbox, fault, timeout, readers)
        for pair in pairs:
            for reader in trial.readers_of(pair):
                readers[reader].follow(pair.job)
        return [takeover for _ in range(rounds) for takeover in trial.round(pairs, context.say)]


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


def report(found: Sequence[Takeover], skipped: Sequence[str]) -> Result:
    cases = _cases(found)
    return Result(
        *table(
            {
                "fault": lambda case: case[0],
                "system": lambda case: case[2],
                "median, s": lambda case: _median(cases, case),
                "slowest, s": lambda case: max(each.seconds for each in cases[case]),
                "granted, median s": lambda case: median(each.granted for each in cases[case]),
                "found, median s": lambda case: median(each.found for each in cases[case]),
                "times as long as here": lambda case: _median(cases, case) / _median(cases, (*case[:2], HERE.name)),
            },
            [case for case in cases if case[1] == max(TIMEOUTS) and case[2] != WITH_AGENT],
        ),
        targets=(
            *(_faster(cases, baseline.name) for baseline in (KAZOO, CURATOR)),
            _within(cases),
            *(_soon(cases, fault) for fault in (OUTAGE, YOUNG)),
            _like_kazoo(cases),
        ),
        notes=(*skipped, *_notes()),
        pictures=tuple(_picture(fault, cases) for fault in FAULTS if any(case[0] == fault.name for case in cases)),
        raw={"takeovers": [asdict(each) for each in found]},
    )


Case = tuple[str, float, str]  # Fault, session timeout, system

Cases = Mapping[Case, list[Takeover]]


def _cases(found: Sequence[Takeover]) -> Cases:
    cases: dict[Case, list[Takeover]] = {}
    for each in found:
        cases.setdefault((each.fault, each.session_timeout, each.system), []).append(each)
    return cases


def _median(cases: Cases, case: Case) -> float:
    return median(each.seconds for each in cases[case]) if case in cases else math.nan


def _faster(cases: Cases, baseline: str) -> Target:
    longest = max(TIMEOUTS)
    ours, theirs = (_median(cases, (KILL.name, longest, name)) for name in (HERE.name, baseline))
    sentence = f"takeover after SIGKILL, session timeout {longest:g} s: {baseline} takes so many times as long"
    return at_least(sentence, FASTER, theirs / ours, "x")


def _within(cases: Cases) -> Target:
    """Return the target for the slowest takeover of all rounds."""
    shares = [
        each.seconds / timeout
        for (fault, timeout, system), takeovers in cases.items()
        if (fault, system) == (LOSS.name, HERE.name)
        for each in takeovers
    ]
    sentence = "takeover after the loss of a host, the slowest one"
    return at_most(sentence, WITHIN, max(shares, default=math.nan), "x session timeout")


def _soon(cases: Cases, fault: Fault) -> Target:
    """Return the target for the slower of the two readers, under any session timeout."""
    medians = [_median(cases, case) for case in cases if case[0] == fault.name and case[2] in (HERE.name, WITH_AGENT)]
    sentence = f"{fault.name}: the next leader leads and is found, median"
    return at_most(sentence, SOON, max(medians, default=math.nan), "s")


def _like_kazoo(cases: Cases) -> Target:
    longest = max(TIMEOUTS)
    ours, theirs = (cases.get((RESIGN.name, longest, name), ()) for name in (HERE.name, KAZOO.name))
    times = math.nan
    if ours and theirs:
        times = median(each.found for each in ours) / median(each.found for each in theirs)
    return at_most("orderly end: the next leader is found, of kazoo's time", 1.0, times, "x")


def _notes() -> tuple[str, ...]:
    pairs = PAIRS * len(SYSTEMS)
    return (
        f"{PAIRS} pairs of each system at the same time, {pairs} in all, with staggered faults: all under one load.",
        "A kill ends the process and all its children. A lost host's cable is pulled; its processes go on.",
        "One ZooKeeper server with a tick of 0.5 s: with the usual tick of 2 s sessions end up to 1.5 s later.",
        "Readers watch, with an agent on their host and without. Each contender has an agent on a host of its own.",
        f"The table is of readers without one, and of the longest session timeout, {max(TIMEOUTS):g} s.",
        "Contenders run a command that ends at once on SIGTERM.",
    )


def _picture(fault: Fault, cases: Cases) -> Picture:
    series = {
        f"{system}, {timeout:g} s": [each.seconds for each in takeovers]
        for (name, timeout, system), takeovers in cases.items()
        if name == fault.name
    }
    return dotted(fault.key, f"Time until the next leader leads and is found: {fault.name}", "s", series, log=True)
