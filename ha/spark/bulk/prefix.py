"""What of a checkpoint belongs together while its query runs. No I/O.

Spark writes ``offsets/N`` before batch N, the state of version N + 1 and the sources' logs during it, and ``commits/N``
last. So when ``commits/N`` was seen, all that batch needs is there, and stays until Spark has forgotten batch N: the
rest, of a later batch, is left out. What is left is what a crash right after that commit would have left.
"""

import re
from collections.abc import Iterable, Mapping

_NUMBER = r"[0-9]{1,19}"  # Spark's are of 64 bits
_BATCH = re.compile(_NUMBER)
_LOG = re.compile(rf"(?:commits|offsets|sources/[^/]+)/({_NUMBER})(?:\.compact)?")
_STATE = re.compile(rf"state/(?:.*/)?({_NUMBER})(?:_[0-9A-Za-z-]+)?\.(?:delta|snapshot|changelog|zip)")


def kept(listing: Mapping[str, int]) -> dict[str, int]:
    """Return the files that are Spark's to read: none that is on its way into its name, and no local check sums."""
    return {path: size for path, size in listing.items() if not path.rpartition("/")[2].startswith(".")}


def newest_commit(paths: Iterable[str]) -> int | None:
    """Return the newest batch in the commit log, given paths of its files; None if nothing was committed."""
    names = (path.rpartition("/")[2] for path in paths)
    return max((int(name) for name in names if _BATCH.fullmatch(name)), default=None)


def consistent(listing: Mapping[str, int], newest: int) -> dict[str, int]:
    """Return the files that are needed to go on after a batch, and those that do no harm.

    Args:
        listing: sizes by path; listed after that batch was seen in the commit log.
        newest: the batch.
    """
    return {path: size for path, size in kept(listing).items() if not _later(path, newest)}


def _later(path: str, newest: int) -> bool:
    if log := _LOG.fullmatch(path):
        return int(log[1]) > newest
    state = _STATE.fullmatch(path)
    return state is not None and int(state[1]) > newest + 1
