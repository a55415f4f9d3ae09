"""Verification by content: reads every file that a retained batch needs, and compares the check sums that there are.

HDFS compares its own sums with what it sends, so reading alone finds a block that has rotted or is gone.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ha.checkpoints.check_sums import hadoop_sums
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import MOST_BYTES, CheckpointReader
from ha.checkpoints.closure import Hole
from ha.checkpoints.contents import Unreadable
from ha.checkpoints.file_check import Checked, ContentCheck
from ha.checkpoints.verify import AGAIN_S, BAD, Verified, conditions
from store.errors import DeadlineExceeded, NotFound, NotSent, Unknown

READERS = 8  # files that are read at once; each may be large


class ContentReport(msgspec.Struct, frozen=True):
    """How many files were read, and how thoroughly each could be checked."""

    files: int = 0  # number of files
    bytes: int = 0  # their total size
    summed: int = 0  # files that agree with a check sum in them or beside them
    formed: int = 0  # files without one that have the form of their kind
    unchecked: int = 0  # files without one whose form is not known here; that they can be read is all that is known


Told = Callable[[int, int], object]  # called with the number of bytes that were read, and that there are


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
