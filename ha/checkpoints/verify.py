"""Verification: can each batch that Spark retains be continued? By names, lengths, and what the small files say.

Spark forgets state and commits at different times, so the oldest retained batch often cannot be continued. That is no
damage if every later batch can: state that only the oldest batch needs is what Spark deletes next. Of more than one
batch it is believed only if all that is older is gone as well, up to a version that is kept whole.
"""

import shlex
import time
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure

AGAIN_S = 2.0
"""Seconds between two looks. A hole in both is no deletion of Spark's in progress, which takes milliseconds a file."""


class Condition(StrEnum):
    """The use that a batch still has."""

    RESTORABLE = "restorable"
    REBUILT = "restorable with rebuilt files"
    REPAIRED = "restorable from an older version"
    FORGOTTEN = "forgotten by Spark"
    ALTERED = "altered"  # Spark goes on, and takes what is there, which is not what was written
    DAMAGED = "damaged"


BAD = (Condition.DAMAGED, Condition.ALTERED)


class Verified(msgspec.Struct, frozen=True):
    """One batch: its condition, what its closure weighs, and why it cannot be continued."""

    batch: int
    condition: Condition
    files: int
    bytes: int
    missing: str = ""
    reason: str = ""


def verify(
    reader: Callable[[], CheckpointReader], pause: Callable[[float], object] = time.sleep
) -> tuple[list[Verified], int]:
    """Return a verdict of each batch with a retained commit, and the number of bytes read. The query may be running."""
    # `reader` opens the checkpoint, and `pause` waits before a second look at what seems to be damaged.
    first = reader()
    found = judged(first)
    holes = {each.missing for each in found if each.condition in BAD}
    if not holes:
        return found, first.bytes
    pause(AGAIN_S)
    again = reader()
    return [_doubted(each, holes) for each in judged(again)], first.bytes + again.bytes


def judged(reader: CheckpointReader) -> list[Verified]:
    """Look once at each batch whose commit is retained; and at the one that a start does next, if that is damaged."""
    names = reader.files()
    found = conditions(names, reader.closures(names, names.batches))
    beginning = reader.start(names)
    if beginning.missing and not any(each.condition in BAD for each in found[-1:]):
        condition = Condition.ALTERED if beginning.altered else Condition.DAMAGED
        found.append(Verified(beginning.batch, condition, 0, 0, beginning.missing, beginning.reason))
    return found


def fault(reader: Callable[[], CheckpointReader], pause: Callable[[float], object] = time.sleep) -> Closure | None:
    """Return what bars a start from the newest batch of a checkpoint as it lies, if two looks see it; else None."""
    found = _fault(reader())
    if found is None:
        return None
    pause(AGAIN_S)
    again = _fault(reader())
    return again if again is not None and again.missing == found.missing else None


def _fault(reader: CheckpointReader) -> Closure | None:
    names = reader.files()
    looked = (reader.start(names), *reader.closures(names, names.batches[-1:]))
    return next((each for each in looked if each.missing), None)


def advice(missing: str, job: str, query: str) -> str:
    """Return a remedy for a missing or damaged file of a query."""
    if missing == "metadata":
        return (
            "No batch can be continued without it, and outputs know the query by its id: put the file back, from a "
            "savepoint, a replica, or the trash of the file system."
        )
    return f"`ha checkpoint verify {job} {shlex.quote(query)}` says which batches can be continued, and how to go back."


def conditions(names: CheckpointFiles, closures: Sequence[Closure]) -> list[Verified]:
    """Return a verdict of each batch, given the closures of all that are retained."""
    last_hole = max((each.batch for each in closures if not each.restorable), default=-1)
    oldest = min((each.batch for each in closures if each.batch > last_hole), default=-1)
    return [
        Verified(
            each.batch,
            _condition(names, each, oldest),
            len(each.files),
            each.bytes,
            each.missing or min(each.skipped, default=""),
            each.reason,
        )
        for each in closures
    ]


def _condition(names: CheckpointFiles, closure: Closure, oldest: int) -> Condition:
    """``oldest`` is the first batch from which on all can be continued."""
    if closure.restorable and closure.skipped:
        return Condition.REPAIRED
    if closure.restorable:
        return Condition.REBUILT if closure.rebuilt else Condition.RESTORABLE
    if closure.altered:
        return Condition.ALTERED
    there = closure.missing in names.faults
    forgotten = not there and closure.batch < oldest and _was_forgotten(names, closure)
    return Condition.FORGOTTEN if forgotten else Condition.DAMAGED


def _was_forgotten(names: CheckpointFiles, closure: Closure) -> bool:
    """Whether Spark has deleted the missing file, and all that is older."""
    named = names.state_file(closure.missing)
    if closure.batch == names.batches[0]:
        return named is not None or closure.missing == f"offsets/{closure.batch}"
    if named is None:
        return False
    store, version = named
    files = names.store(store)
    left = min((each.number for each in (*files.changes, *files.whole)), default=None)
    return left is not None and left > version.number and any(each.number == left for each in files.whole)


def _doubted(found: Verified, holes: set[str]) -> Verified:
    """Return what a second look says; a hole that the first one did not see was made meanwhile."""
    if found.condition in BAD and found.missing not in holes:
        return msgspec.structs.replace(found, condition=Condition.FORGOTTEN)
    return found
