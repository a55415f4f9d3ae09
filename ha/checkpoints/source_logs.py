"""Source logs: which entries of a source's log are read, and what form each has. Pure.

A file source reads its whole log when its query starts: the newest compacted entry, and all entries after it. The rate
source reads when it began. Kafka does not read its log again once there is an offset; of others that is not known. An
entry that has another form raises :class:`ha.checkpoints.contents.Unreadable`.
"""

from typing import Any, NamedTuple

from ha.checkpoints import contents
from ha.checkpoints.checkpoint_files import SourceLog
from ha.checkpoints.contents import Altered, Unreadable

_TIME_DIGITS = 13  # of milliseconds since 1970: fewer are a part of a time, and Spark would count from another one


class Entries(NamedTuple):
    """The entries of one log: paths that are read, one that can be rebuilt and its origin, or what is missing."""

    paths: list[str]
    rebuilt: dict[str, str] = {}  # noqa: RUF012  # of a tuple: it is never changed
    missing: str = ""


def is_of_files(log: SourceLog) -> bool:
    """Whether only a file source has such a log: others write one entry at most."""
    return bool(log.compacted) or len(log.entries) > 1


def entries(folder: str, log: SourceLog, newest: int) -> Entries:
    """Return what a file source reads up to its entry ``newest``; ``folder`` is that of the log."""
    base = max((each for each in log.compacted if each <= newest), default=None)
    needed = range(0 if base is None else base + 1, newest + 1)
    hole = next((each for each in needed if each not in log.entries), None)
    if hole is None:
        first = [] if base is None else [log.compacted[base]]
        return Entries([*first, *(log.entries[each] for each in needed)])
    if later := [each for each in log.compacted if each > newest]:
        return Entries([], {f"{folder}/{newest}.compact": log.compacted[min(later)]})
    return Entries([], missing=f"{folder}/{hole}")


def check_entry(data: bytes, size: int) -> bool:
    """Check an entry of a file source's log; if ``data`` is shorter than ``size``, only its head was read."""
    contents.logged_files(data if len(data) >= size else data.rpartition(b"\n")[0])
    return True


def check_beginning(data: bytes) -> bool:
    """Check the entry of a rate source: a version, and a time."""
    version, _, said = data.partition(b"\n")
    if version != b"v1" or not said.isdigit():
        raise Unreadable("It does not say when the source began." if data else "It is empty.")
    if len(said) < _TIME_DIGITS:
        raise Altered("It says that the source began in another century.")  # Spark takes any time
    return True


def is_number(offset: Any) -> bool:
    """Whether an offset is that of a rate source."""
    return isinstance(offset, int) and not isinstance(offset, bool)
