"""Verification: can each batch that Spark retains be continued? By names and small files, and by all contents.

Spark forgets state and commits at different times, so the oldest retained batch often cannot be continued. That is no
damage if every later batch can: state that only the oldest batch needs is what Spark deletes next. Of more than one
batch it is believed only if all that is older is gone as well, up to a version that is kept whole.

By content every file that a retained batch needs is read, and the check sums that there are are compared. HDFS compares
its own sums with what it sends, so reading alone finds a block that has rotted or is gone.
"""

import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum

import msgspec

from ha.checkpoints.check_sums import hadoop_sums
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import MOST_BYTES, CheckpointReader
from ha.checkpoints.closure import Closure, Hole
from ha.checkpoints.contents import Unreadable
from ha.checkpoints.file_check import Checked, ContentCheck
from store.errors import DeadlineExceeded, NotFound, NotSent, Unknown

AGAIN_S = 2.0
"""Seconds between two looks. A hole in both is no deletion of Spark's in progress, which takes milliseconds a file."""

READERS = 8  # files that are read at once; each may be large

Told = Callable[[int, int], object]  # called with the number of bytes that were read, and that there are


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


class ContentReport(msgspec.Struct, frozen=True):
    """How many files were read, and how thoroughly each could be checked."""

    files: int = 0  # number of files
    bytes: int = 0  # their total size
    summed: int = 0  # files that agree with a check sum in them or beside them
    formed: int = 0  # files without one that have the form of their kind
    unchecked: int = 0  # files without one whose form is not known here; that they can be read is all that is known


def verify_contents(
    reader: Callable[[], CheckpointReader],  # opens the checkpoint
    found: list[Verified],  # what `ha.checkpoints.verify.verify` has found
    told: Told | None = None,  # called with the progress, from any thread, one call at a time
    # Waits for some seconds before a second look at what seems to be damaged.
    pause: Callable[[float], object] = time.sleep,
) -> tuple[list[Verified], ContentReport]:
    """Read every file that a batch which can be continued needs. The query may be running."""
    # Returns the batches, marked as damaged if they need a damaged file; and what was read.
    opened = reader()
    names = opened.files()
    checked: dict[str, Checked] = {}
    while True:  # in the place of what is damaged a restart may need other files
        closures = opened.closures(names, names.batches)
        needed = {path: size for each in closures for path, size in each.files.items()}
        wanted = {  # check sums are read with their files
            path: size for path, size in needed.items() if not path.endswith(".crc") and path not in checked
        }
        checked |= _checked_twice(reader, opened, wanted, names.sizes, told, pause)
        faults = {path: _hole(path, each) for path, each in checked.items() if each.fault}
        if faults.keys() == names.faults.keys():
            break
        names = CheckpointFiles(names.sizes, faults, folders=names.folders)
    again = {each.batch: each for each in conditions(names, closures)}
    batches = [each if each.condition in BAD else again.get(each.batch, each) for each in found]
    return batches, _report(checked, names.sizes)


def _hole(path: str, checked: Checked) -> Hole:
    return Hole(path, f"It is {'altered' if checked.altered else 'damaged'}. {checked.fault}", altered=checked.altered)


def _checked_twice(
    reader: Callable[[], CheckpointReader],
    opened: CheckpointReader,
    wanted: Mapping[str, int],
    sizes: Mapping[str, int],
    told: Told | None,
    pause: Callable[[float], object],
) -> dict[str, Checked]:
    """Check these files; what is damaged is seen twice: it is neither deleted nor replaced just now."""
    checked = _check(opened, wanted, sizes, told)
    faults = {path for path, each in checked.items() if each.fault}
    if faults:
        pause(AGAIN_S)
        again = reader()
        sizes = again.files().sizes
        checked |= _check(again, {path: sizes[path] for path in faults if path in sizes}, sizes, None)
        for path in faults - sizes.keys():
            checked[path] = Checked()
    return checked


def _report(checked: Mapping[str, Checked], sizes: Mapping[str, int]) -> ContentReport:
    good = [each for each in checked.values() if not each.fault]
    summed = sum(1 for each in good if each.summed)
    formed = sum(1 for each in good if each.formed and not each.summed)
    total = sum(sizes[path] for path in checked)
    return ContentReport(len(checked), total, summed, formed, len(good) - summed - formed)


def _check(
    reader: CheckpointReader, wanted: Mapping[str, int], sizes: Mapping[str, int], told: Told | None
) -> dict[str, Checked]:
    """Check these files; those that are gone are left out."""
    lock = threading.Lock()
    total = sum(wanted.values())
    done = 0

    def check(item: tuple[str, int]) -> Checked | None:
        nonlocal done
        found = _check_file(reader, *item, sizes)
        with lock:
            done += item[1]
            if told is not None:
                told(done, total)
        return found

    with ThreadPoolExecutor(READERS, thread_name_prefix="ha-verify") as crew:
        results = zip(wanted, crew.map(check, wanted.items()), strict=True)
        return {path: each for path, each in results if each is not None}


def _check_file(reader: CheckpointReader, path: str, size: int, sizes: Mapping[str, int]) -> Checked | None:
    try:
        spark, hadoop = (
            reader.tree.head(each, MOST_BYTES) if each in sizes else None for each in (f"{path}.crc", hadoop_sums(path))
        )
        checking = ContentCheck(path, size, spark, hadoop)
        reader.tree.read_through(path, size, checking.add)
    except NotFound:
        return None
    except Unreadable as error:
        return Checked(f"{error}", summed=True)
    except (DeadlineExceeded, NotSent):
        raise  # the store is slow: that says nothing of the file
    except Unknown as error:
        return Checked(f"It cannot be read: {error}")
    return checking.result()
