"""Verification by content: reads every file that a retained batch needs, and compares the check sums that there are.

HDFS compares its own sums with what it sends, so reading alone finds a block that has rotted or is gone.
"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec

from ha.checkpoints.closure import Closure
from ha.checkpoints.content_check import Checked, ContentCheck
from ha.checkpoints.contents import Unreadable
from ha.checkpoints.reading import MOST_BYTES, CheckpointReader
from ha.checkpoints.verify import AGAIN_S, Condition, Verified
from store.errors import DeadlineExceeded, NotFound, NotSent, Unknown

READERS = 8
"""Files that are read at once; each may be large."""


class ContentReport(msgspec.Struct, frozen=True):
    """How many files were read, and how thoroughly each could be checked.

    Attributes:
        files: number of files.
        bytes: their total size.
        summed: files that agree with a check sum in them or beside them.
        formed: files without one that have the form of their kind.
        unchecked: files without one whose form is not known here; that they can be read is all that is known.
    """

    files: int = 0
    bytes: int = 0
    summed: int = 0
    formed: int = 0
    unchecked: int = 0


Told = Callable[[int, int], object]
"""Called with the number of bytes that were read, and that there are."""


def verify_contents(
    reader: Callable[[], CheckpointReader],
    found: list[Verified],
    told: Told | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> tuple[list[Verified], ContentReport]:
    """Read every file that a batch which can be continued needs. The query may be running.

    Args:
        reader: opens the checkpoint.
        found: what :func:`ha.checkpoints.verify.verify` has found.
        told: called with the progress, from any thread, one call at a time.
        pause: waits for some seconds before a second look at what seems to be damaged.

    Returns:
        the batches, of which those that need a damaged file are damaged; and what was read.

    Raises:
        NotFound: there is no such checkpoint.
        StoreError: the store did not answer.
    """
    opened = reader()
    names = opened.files()
    closures = {each.batch: each for each in opened.closures(names, names.batches)}
    needed = {path: size for each in closures.values() for path, size in each.files.items()}
    wanted = {path: size for path, size in needed.items() if not path.endswith(".crc")}  # these are read with theirs
    checked = _check(opened, wanted, names.sizes, told)
    faults = {path for path, each in checked.items() if each.fault}
    if faults:  # seen twice: it is neither deleted nor replaced just now
        pause(AGAIN_S)
        again = reader()
        sizes = again.files().sizes
        checked |= _check(again, {path: sizes[path] for path in faults if path in sizes}, sizes, None)
        for path in faults - sizes.keys():
            del checked[path]
    damaged = {path: each.fault for path, each in checked.items() if each.fault}
    return [_judged(each, closures.get(each.batch), damaged) for each in found], _report(checked, wanted)


def _judged(batch: Verified, closure: Closure | None, faults: Mapping[str, str]) -> Verified:
    bad = min(faults.keys() & closure.files.keys(), default="") if closure is not None else ""
    if not bad or batch.condition is Condition.DAMAGED:
        return batch
    reason = f"It is damaged. {faults[bad]}"
    return msgspec.structs.replace(batch, condition=Condition.DAMAGED, missing=bad, reason=reason)


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
    folder, slash, name = path.rpartition("/")
    beside = [f"{path}.crc", f"{folder}{slash}.{name}.crc"]
    try:
        spark, hadoop = (reader.tree.head(each, MOST_BYTES) if each in sizes else None for each in beside)
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
