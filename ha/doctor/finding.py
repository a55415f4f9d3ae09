"""Finding: one line of the doctor's report."""

from enum import Enum

import msgspec

from store.errors import PermissionDenied, StoreError


class Level(Enum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    """It works, but not as well or as safely as it could; or the doctor could not find out."""
    FAILED = "failed"
    """A contender of this host cannot do its work like this."""


class Finding(msgspec.Struct, frozen=True):
    """One line.

    Attributes:
        check: what was looked at, in one or two words.
        level: how it ended.
        found: what was seen.
        remedy: what to do; empty if there is nothing to do.
    """

    check: str
    level: Level
    found: str
    remedy: str = ""


def ok(check: str, found: str) -> Finding:
    """Nothing is to be done."""
    return Finding(check, Level.OK, found)


def warning(check: str, found: str, remedy: str) -> Finding:
    """Something should be done."""
    return Finding(check, Level.WARNING, found, remedy)


def failed(check: str, found: str, remedy: str) -> Finding:
    """Something must be done."""
    return Finding(check, Level.FAILED, found, remedy)


def remedy(error: StoreError) -> str:
    """Say what to do about a file system that refused, or did not answer."""
    if isinstance(error, PermissionDenied):
        return "Give this user the right to read and write there."
    return "Check `files`, HADOOP_CONF_DIR and the network; see `ha config show`."
