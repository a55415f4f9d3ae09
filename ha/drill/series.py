"""Drills one after the other, on one ground, for one guard or several."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ha.drill.drill import Drill
from ha.drill.ground import DrillError, Ground
from ha.drill.guards import HYBRID, Guard
from ha.drill.outcome import Outcome
from ha.drill.runner import missing, run_drill, skipped
from ha.drill.sandbox_ground import SandboxGround
from ha.drill.stage import Say
from ha.history.events import Event

Found = tuple[Outcome, Sequence[Event]]


def run_series(
    drills: Sequence[Drill],
    ground: Ground,
    guards: Sequence[Guard],
    folder: Path,
    say: Say,
    begins: Callable[[Drill, Guard], None] = lambda _drill, _guard: None,
) -> Iterator[Found]:
    """Yield what came of each drill, and its history, as soon as it is over.

    Args:
        drills: which.
        ground: where; brought up before each, and left up.
        guards: who guards the job; others than this project's only take part in drills for ``peers``.
        folder: below which each drill has a folder of its own.
        say: is told each step in one sentence.
        begins: is told before each that is run.
    """
    for drill, guard in _pairs(drills, guards):
        if lacking := missing(drill, ground):
            yield skipped(drill, ground.name, guard, lacking), []
            continue
        begins(drill, guard)
        try:
            ground.up(say)
        except DrillError as error:
            yield skipped(drill, ground.name, guard, f"NOT RUN: the {ground.name} did not get well: {error}"), []
            continue
        yield run_drill(drill, ground, guard, folder / f"{drill.name}-{guard.name}", say, lambda: _quiet(folder))


def skip_series(drills: Sequence[Drill], ground: str, guards: Sequence[Guard], reason: str) -> Iterator[Found]:
    """Yield for each drill that it was not run, on the ground of that name."""
    for drill, guard in _pairs(drills, guards):
        yield skipped(drill, ground, guard, f"NOT RUN: {reason}"), []


def _pairs(drills: Sequence[Drill], guards: Sequence[Guard]) -> Iterator[tuple[Drill, Guard]]:
    return ((drill, guard) for drill in drills for guard in guards if guard is HYBRID or drill.peers)


def _quiet(folder: Path) -> Ground:
    return SandboxGround(folder / "quiet-sandbox", zookeepers=1, namenodes=1)
