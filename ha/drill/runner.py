"""Runner: runs drills one after the other in one environment, for one or several HA providers."""

import fcntl
import importlib.metadata
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ha.drill.drill import Drill
from ha.drill.environment import DrillError, Environment, ProgramFailed
from ha.drill.fixture import DURATIONS, Fixture, Say
from ha.drill.ha_provider import HYBRID, HaProvider
from ha.drill.judge import Judge
from ha.drill.observer import HISTORY
from ha.drill.outcome import Check, DrillOutcome, Report
from ha.history import edits
from ha.history.events import Event, load
from ha.hosts.host_error import HostError
from store.clock import now

MARK = ".drill"  # a file in each folder that a drill has made; nothing else is deleted

RESULTS_TIMEOUT_S = 150.0

Found = tuple[DrillOutcome, Sequence[Event]]  # the outcome of a drill, and its history
Codes = dict[str, int | None]  # the exit codes of contenders, by their names


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other commands out of a folder, whose files each of them would delete."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DrillError(f"Another command is busy in {folder.absolute()}: use another folder, or wait.") from None
        yield


def run_series(
    drills: Sequence[Drill],
    environment: Environment,
    providers: Sequence[HaProvider],
    folder: Path,
    say: Say,
    begins: Callable[[Drill, HaProvider], None] = lambda _drill, _provider: None,
) -> Iterator[Found]:
    """Yield each drill's outcome and history as soon as the drill is over, and leave the environment up."""
    # Each drill gets a folder below ``folder``. Baselines take part only in the drills that allow them.
    for drill, provider in _pairs(drills, providers):
        place = folder / f"{drill.name}-{provider.name}"
        if lacking := missing(drill, environment) or _not_ours(place):
            yield skipped(drill, environment.name, provider, lacking), []
            continue
        begins(drill, provider)
        try:
            environment.up(say)
        except HostError as error:
            reason = f"NOT RUN: the {environment.name} did not get well: {error}"
            yield skipped(drill, environment.name, provider, reason), []
            continue
        yield run_drill(drill, environment, provider, place, say)


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


def _not_ours(folder: Path) -> str:
    """Return why a folder must not be deleted; empty if a drill has made it, or it is not there."""
    if not folder.exists() or (folder / MARK).exists():
        return ""
    return f"NOT RUN: {folder} is there already, and is no drill's: choose another --folder, or delete it."


def run_drill(drill: Drill, environment: Environment, provider: HaProvider, folder: Path, say: Say) -> Found:
    """Run one drill in an environment where all is well; return its outcome and its history."""
    # An earlier drill's files in ``folder`` are deleted. The next call of ``up`` makes the environment well again.
    began, reason, checks, measures = now(), "", list[Check](), dict[str, float]()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    fixture = Fixture(drill.name, drill.setup, environment, provider, folder, say)
    try:
        codes, outcomes = _carried_out(drill, fixture, provider)
        events = _history(fixture, provider)
        told = (drill, events, fixture.faults, fixture.over, fixture.durations)
        judge = Judge(*told, keeps_guarantees=provider.keeps_guarantees)
        judge.judge(fixture.observer.fed(), outcomes, codes)
        checks, measures = judge.checks + fixture.checks, judge.measures | fixture.measures
    except HostError as error:
        reason = str(error)
        events = load(folder / HISTORY)
    outcome = msgspec.structs.replace(
        skipped(drill, environment.name, provider, reason),
        status="passed" if checks and all(check.passed for check in checks) else "failed",
        began=began,
        seconds=round(now() - began, 1),
        checks=checks,
        measures=measures,
        faults=fixture.faults,
    )
    return outcome, events


def _carried_out(drill: Drill, fixture: Fixture, provider: HaProvider) -> tuple[Codes, list[dict[str, int]]]:
    """Carry out the drill; return the contenders' exit codes and what each of the job's outcomes counts."""
    try:
        fixture.begin()
        epoch = fixture.epoch
        drill.action(fixture)
        fixture.recover(epoch if drill.expected.changes[0] else 0)
        fixture.say("The fault is over: the job counts what is left, and ends.")
        fixture.finish()
        codes = {name: each.exit_code for name, each in fixture.contenders.items() if name not in fixture.lost}
        results = _results(fixture, provider)
        if provider.books and not fixture.outcomes:  # the job's files are where they were
            call = lambda command: fixture.environment.call(command, fixture.folder, RESULTS_TIMEOUT_S)  # noqa: E731
            fixture.checks.append(books(call, [*provider.books, fixture.job.name]))
        return codes, results
    finally:
        fixture.end()


def _results(fixture: Fixture, provider: HaProvider) -> list[dict[str, int]]:
    commands = [[*provider.results, each] for each in fixture.outcomes or fixture.job.outcomes]
    printed = [fixture.environment.call(each, fixture.folder, RESULTS_TIMEOUT_S) for each in commands]
    return [json.loads(each)["words"] for each in printed]


def books(call: Callable[[Sequence[str]], str], command: Sequence[str]) -> Check:
    """Return whether each output has all that Spark has committed, as a command of the job's tells.

    Raises:
        DrillError: it did not come to an answer: it ended with an error and printed nothing, or not at all.
    """
    try:
        said, closed = call(command), True
    except ProgramFailed as error:
        if not error.output.strip():
            raise
        said, closed = error.output, False
    return Check("outputs have what Spark committed", closed, said.strip().rpartition("\n")[2])


def skipped(drill: Drill, environment: str, provider: HaProvider, reason: str) -> DrillOutcome:
    """Return the outcome of a drill that was not run in the environment of that name."""
    named: dict[str, Any] = {"drill": drill.name, "title": drill.title, "group": drill.group, "provider": provider.name}
    return DrillOutcome(**named, environment=environment, status="skipped", reason=reason)


def _history(fixture: Fixture, provider: HaProvider) -> Sequence[Event]:
    history = fixture.folder / HISTORY
    if provider.keeps_guarantees:
        files = fixture.environment.variables()["HA_FILES"]
        try:
            edits.save(fixture.cluster.edits(), files, fixture.job.name, history)
        except ValueError as error:
            raise DrillError(f"The edit log of HDFS cannot be read: {error}") from error
    return load(history)


def report(outcomes: Sequence[DrillOutcome], settings: Mapping[str, float] = DURATIONS) -> Report:
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
