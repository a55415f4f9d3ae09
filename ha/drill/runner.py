"""Runner: runs drills one after the other in one environment, for one or several HA providers."""

import importlib.metadata
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ha.drill.drill import Drill
from ha.drill.environment import DrillError, Environment
from ha.drill.fixture import DURATIONS, Fixture, Say
from ha.drill.ha_provider import HYBRID, HaProvider
from ha.drill.judge import Judge
from ha.drill.observer import HISTORY
from ha.drill.outcome import Outcome, Report
from ha.drill.sandbox_environment import SandboxEnvironment
from ha.history import edits
from ha.history.events import Event, load
from store.clock import now

RESULTS_TIMEOUT_S = 150.0

Found = tuple[Outcome, Sequence[Event]]
"""The outcome of a drill, and its history."""

Codes = dict[str, int | None]
"""The exit codes of contenders, by their names."""


def run_series(
    drills: Sequence[Drill],
    environment: Environment,
    providers: Sequence[HaProvider],
    folder: Path,
    say: Say,
    begins: Callable[[Drill, HaProvider], None] = lambda _drill, _provider: None,
) -> Iterator[Found]:
    """Yield each drill's outcome and history as soon as the drill is over.

    Args:
        drills: which ones.
        environment: brought up before each drill, and left up.
        providers: what keeps the job available; baselines take part only in the drills that allow them.
        folder: each drill gets a folder below it.
        say: is told each step in one sentence.
        begins: is called before each drill that is run.
    """
    for drill, provider in _pairs(drills, providers):
        if lacking := missing(drill, environment):
            yield skipped(drill, environment.name, provider, lacking), []
            continue
        begins(drill, provider)
        try:
            environment.up(say)
        except DrillError as error:
            reason = f"NOT RUN: the {environment.name} did not get well: {error}"
            yield skipped(drill, environment.name, provider, reason), []
            continue
        yield run_drill(drill, environment, provider, folder / f"{drill.name}-{provider.name}", say)


def skip_series(
    drills: Sequence[Drill], environment: str, providers: Sequence[HaProvider], reason: str
) -> Iterator[Found]:
    """Yield for each drill that it was not run in the environment of that name."""
    for drill, provider in _pairs(drills, providers):
        yield skipped(drill, environment, provider, f"NOT RUN: {reason}"), []


def _pairs(drills: Sequence[Drill], providers: Sequence[HaProvider]) -> Iterator[tuple[Drill, HaProvider]]:
    return ((drill, each) for drill in drills for each in providers if each is HYBRID or drill.baselines)


def missing(drill: Drill, environment: Environment) -> str:
    """Return why a drill cannot run in an environment, in a sentence; empty if it can."""
    lacking = sorted(need.value for need in drill.needs - environment.abilities)
    if not lacking:
        return ""
    return f"NOT RUN: the {environment.name} cannot {' nor '.join(lacking)}; {environment.elsewhere}."


def run_drill(drill: Drill, environment: Environment, provider: HaProvider, folder: Path, say: Say) -> Found:
    """Run one drill; return its outcome and its history.

    Args:
        drill: what to do.
        environment: all is well there before; the next call of ``up`` makes it well again.
        provider: what keeps the job available.
        folder: for logs and histories; what is there is deleted.
        say: is told each step in one sentence.
    """
    began, reason = now(), ""
    shutil.rmtree(folder, ignore_errors=True)
    fixture = Fixture(drill.name, drill.setup, environment, provider, folder, say)
    judge: Judge | None = None
    try:
        codes, outcomes = _carried_out(drill, fixture, provider)
        events = _history(fixture, provider)
        guarantees = provider.keeps_guarantees
        judge = Judge(drill, events, fixture.faults, fixture.over, fixture.durations, keeps_guarantees=guarantees)
        words = outcomes[0]
        judge.judge(fixture.observer.fed(), outcomes, codes)
        judge.checks += fixture.checks
        judge.measures |= fixture.measures
        if drill.compared:
            say("A second job counts the same input on a quiet cluster.")
            other = _counted_quietly(drill, provider, folder, say, len(fixture.observer.fed()))
            differ = sum(words.get(word) != other.get(word) for word in words.keys() | other.keys())
            detail = f"{differ} of {len(other)} words differ from the output of a job on a quiet cluster"
            judge.add("output as on a quiet cluster", not differ, detail)
    except DrillError as error:
        reason = str(error)
        events = load(folder / HISTORY)
    passed = not reason and judge is not None and all(check.passed for check in judge.checks)
    outcome = Outcome(
        drill=drill.name,
        title=drill.title,
        group=drill.group,
        environment=environment.name,
        provider=provider.name,
        status="passed" if passed else "failed",
        reason=reason,
        began=began,
        seconds=round(now() - began, 1),
        checks=judge.checks if judge else [],
        measures=judge.measures if judge else {},
        faults=fixture.faults,
    )
    return outcome, events


def _carried_out(drill: Drill, fixture: Fixture, provider: HaProvider) -> tuple[Codes, list[dict[str, int]]]:
    """Carry out the drill; return the contenders' exit codes and what each of the job's outcomes counts."""
    try:
        fixture.begin()
        drill.action(fixture)
        fixture.say("The fault is over: the job counts what is left, and ends.")
        fixture.finish()
        codes = {name: each.exit_code for name, each in fixture.contenders.items() if name not in fixture.lost}
        return codes, _results(fixture, provider)
    finally:
        fixture.end()


def _results(fixture: Fixture, provider: HaProvider) -> list[dict[str, int]]:
    commands = [[*provider.results, each] for each in fixture.outcomes or fixture.job.outcomes]
    printed = [fixture.environment.call(each, fixture.folder, RESULTS_TIMEOUT_S) for each in commands]
    return [json.loads(each)["words"] for each in printed]


def _counted_quietly(drill: Drill, provider: HaProvider, folder: Path, say: Say, files: int) -> Mapping[str, int]:
    """Count the same input on a cluster that nobody disturbs."""
    environment = SandboxEnvironment(folder.parent / "quiet-sandbox", zookeepers=1, namenodes=1)
    environment.up(say)
    fixture = Fixture(drill.name, drill.setup, environment, provider, folder / "quiet", say)
    try:
        fixture.count(files)
        return _results(fixture, provider)[0]
    finally:
        fixture.end()
        environment.down()


def skipped(drill: Drill, environment: str, provider: HaProvider, reason: str) -> Outcome:
    """Return the outcome of a drill that was not run in the environment of that name."""
    return Outcome(
        drill=drill.name,
        title=drill.title,
        group=drill.group,
        environment=environment,
        provider=provider.name,
        status="skipped",
        reason=reason,
    )


def _history(fixture: Fixture, provider: HaProvider) -> Sequence[Event]:
    history = fixture.folder / HISTORY
    if provider.keeps_guarantees:
        files = fixture.environment.variables()["HA_FILES"]
        try:
            edits.save(fixture.environment.edits(), files, fixture.job.name, history)
        except ValueError as error:
            raise DrillError(f"The edit log of HDFS cannot be read: {error}") from error
    return load(history)


def report(outcomes: Sequence[Outcome], settings: Mapping[str, float] = DURATIONS) -> Report:
    """Return a report of these outcomes, with facts about the machine that help to compare them."""
    return Report(
        version=importlib.metadata.version("hybrid-ha"),
        when=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        machine={
            "cores": str(os.cpu_count()),
            "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB",
            "kernel": platform.release(),
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("pyspark", "kazoo", "hdfs-native")},
        },
        settings=dict(settings),
        outcomes=list(outcomes),
    )
