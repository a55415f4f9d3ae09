"""Verification: can each batch that Spark retains be continued? By names, lengths, and what the small files say.

Spark forgets state and commits at different times, so the oldest retained batch often cannot be continued. That is no
damage if every later batch can: state that only the oldest batch needs is what Spark deletes next. Of more than one
batch it is believed only if all that is older is gone as well, up to a version that is kept whole.
"""

import time
from collections.abc import Callable, Sequence
from enum import StrEnum

import msgspec

from ha.checkpoints.closure import Closure
from ha.checkpoints.names import CheckpointFiles, StoreFiles
from ha.checkpoints.reading import CheckpointReader

AGAIN_S = 2.0
"""Seconds between two looks. A hole that both see is not one of Spark's deletions in progress, which takes
milliseconds for a file."""


class Condition(StrEnum):
    """The use that a batch still has."""

    RESTORABLE = "restorable"
    REBUILT = "restorable with rebuilt files"
    FORGOTTEN = "forgotten by Spark"
    DAMAGED = "damaged"


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
    """Verify each batch whose commit is retained. The query may be running.

    Args:
        reader: opens the checkpoint; what one reader has read is not read again.
        pause: waits for some seconds before a second look at what seems to be damaged.

    Returns:
        the batches in order, and the number of bytes that were read.

    Raises:
        NotFound: there is no such checkpoint.
        StoreError: the store did not answer.
    """
    first = reader()
    found = judged(first)
    holes = {each.missing for each in found if each.condition is Condition.DAMAGED}
    if not holes:
        return found, first.bytes
    pause(AGAIN_S)
    again = reader()
    return [_doubted(each, holes) for each in judged(again)], first.bytes + again.bytes


def judged(reader: CheckpointReader) -> list[Verified]:
    """Look once at each batch whose commit is retained."""
    names = reader.files()
    return conditions(names, reader.closures(names, names.batches))


def conditions(names: CheckpointFiles, closures: Sequence[Closure]) -> list[Verified]:
    """Say what can be done with each batch, given the closures of all that are retained."""
    last_hole = max((each.batch for each in closures if not each.restorable), default=-1)
    oldest = min((each.batch for each in closures if each.batch > last_hole), default=-1)
    return [
        Verified(each.batch, _condition(names, each, oldest), len(each.files), each.bytes, each.missing, each.reason)
        for each in closures
    ]


def _condition(names: CheckpointFiles, closure: Closure, oldest: int) -> Condition:
    """``oldest`` is the first batch from which on all can be continued."""
    if closure.restorable:
        return Condition.REBUILT if closure.rebuilt else Condition.RESTORABLE
    forgotten = closure.batch < oldest and _was_forgotten(names, closure)
    return Condition.FORGOTTEN if forgotten else Condition.DAMAGED


def _was_forgotten(names: CheckpointFiles, closure: Closure) -> bool:
    """Whether Spark has deleted the missing file, and all that is older."""
    named = names.state_file(closure.missing)
    if closure.batch == names.batches[0]:
        return named is not None or closure.missing == f"offsets/{closure.batch}"
    if named is None:
        return False
    store, version = named
    files = names.stores.get(store, StoreFiles({}, {}))
    left = min((each.number for each in (*files.changes, *files.whole)), default=None)
    return left is not None and left > version.number and any(each.number == left for each in files.whole)


def _doubted(found: Verified, holes: set[str]) -> Verified:
    """Return what a second look says; a hole that the first one did not see was made meanwhile."""
    if found.condition is Condition.DAMAGED and found.missing not in holes:
        return msgspec.structs.replace(found, condition=Condition.FORGOTTEN)
    return found
