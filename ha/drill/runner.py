"""Runs drills one after the other and gathers what came of them."""

import importlib.metadata
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ha.drill.drill import DURATIONS, Drill
from ha.drill.ground import DrillError, Ground
from ha.drill.guards import Guard
from ha.drill.judge import Judge
from ha.drill.observer import HISTORY
from ha.drill.outcome import Outcome, Report
from ha.drill.stage import Say, Stage
from ha.history import edits
from ha.history.events import Event, load
from store.clock import now

RESULTS_TIMEOUT = 150.0


def missing(drill: Drill, ground: Ground) -> str:
    """Return why a drill cannot run on a ground, in a sentence; empty if it can."""
    lacking = sorted(need.value for need in drill.needs - ground.abilities)
    if not lacking:
        return ""
    return f"NOT RUN: the {ground.name} cannot {' nor '.join(lacking)}; {ground.elsewhere}."


def run_drill(
    drill: Drill, ground: Ground, guard: Guard, folder: Path, say: Say, quiet: Callable[[], Ground]
) -> tuple[Outcome, Sequence[Event]]:
    """Run one drill; return what came of it, and its history.

    Args:
        drill: what to do.
        ground: where; all is well there before, and is made well again by the next call of ``up``.
        guard: who guards the job.
        folder: for its logs and histories.
        say: is told each step in one sentence.
        quiet: makes a cluster that nobody disturbs, for drills that compare.
    """
    began, reason = now(), ""
    shutil.rmtree(folder, ignore_errors=True)
    stage = Stage(drill, ground, guard, folder, say)
    judge: Judge | None = None
    try:
        try:
            stage.begin()
            drill.act(stage)
            say("The fault is over: the job counts what is left, and ends.")
            stage.finish()
            codes = {name: each.exit_code for name, each in stage.contenders.items() if name not in stage.lost}
            words = _results(stage)
        finally:
            stage.end()
        events = _history(stage)
        judge = Judge(drill, events, stage.faults, stage.over, stage.durations, promises=guard.promises)
        judge.judge(stage.observer.fed(), words, codes)
        if drill.compared:
            say("A second job counts the same input on a quiet cluster.")
            other = _counted_quietly(drill, quiet(), guard, folder / "quiet", say, len(stage.observer.fed()))
            differ = sum(words.get(word) != other.get(word) for word in words.keys() | other.keys())
            detail = f"{differ} of {len(other)} words differ from what the job on a quiet cluster has written"
            judge.add("output as on a quiet cluster", not differ, detail)
    except DrillError as error:
        reason = str(error)
        events = load(folder / HISTORY)
    passed = not reason and judge is not None and all(check.passed for check in judge.checks)
    outcome = Outcome(
        drill=drill.name,
        title=drill.title,
        group=drill.group,
        ground=ground.name,
        guard=guard.name,
        status="passed" if passed else "failed",
        reason=reason,
        began=began,
        seconds=round(now() - began, 1),
        checks=judge.checks if judge else [],
        measures=judge.measures if judge else {},
        faults=stage.faults,
    )
    return outcome, events


def _results(stage: Stage) -> dict[str, int]:
    told = stage.ground.call(["python", "-m", stage.guard.results, stage.output], stage.folder, RESULTS_TIMEOUT)
    found: dict[str, int] = json.loads(told)["words"]
    return found


def _counted_quietly(
    drill: Drill, ground: Ground, guard: Guard, folder: Path, say: Say, files: int
) -> Mapping[str, int]:
    ground.up(say)
    stage = Stage(drill, ground, guard, folder, say)
    try:
        stage.count(files)
        return _results(stage)
    finally:
        stage.end()
        ground.down()


def skipped(drill: Drill, ground: str, guard: Guard, reason: str) -> Outcome:
    """What came of a drill that was not run, on the ground of that name."""
    return Outcome(
        drill=drill.name,
        title=drill.title,
        group=drill.group,
        ground=ground,
        guard=guard.name,
        status="skipped",
        reason=reason,
    )


def _history(stage: Stage) -> Sequence[Event]:
    history = stage.folder / HISTORY
    if stage.guard.promises:
        files = stage.ground.environment()["HA_FILES"]
        try:
            edits.save(stage.ground.edits(), files, stage.job, history)
        except ValueError as error:
            raise DrillError(f"What HDFS has executed cannot be read: {error}") from error
    return load(history)


def report(outcomes: Sequence[Outcome], settings: Mapping[str, float] = DURATIONS) -> Report:
    """Put outcomes together, with what helps to compare them."""
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
