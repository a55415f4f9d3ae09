"""Finding: one line of the doctor's report."""

from enum import Enum

import msgspec

from leader.errors import Unreachable
from store.errors import NoSpace, NotSent, NotWritable, PermissionDenied, Unknown


class Level(Enum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"  # it works, but not as well or as safely as it could; or the doctor could not find out
    FAILED = "failed"  # a contender of this host cannot do its work like this


class Finding(msgspec.Struct, frozen=True):
    """One line."""

    check: str  # what was looked at, in one or two words
    level: Level  # how it ended
    found: str  # what was seen
    remedy: str = ""  # what to do; empty if there is nothing to do


def ok(check: str, found: str) -> Finding:
    """Nothing is to be done."""
    return Finding(check, Level.OK, found)


def warning(check: str, found: str, remedy: str) -> Finding:
    """Something should be done."""
    return Finding(check, Level.WARNING, found, remedy)


def failed(check: str, found: str, remedy: str) -> Finding:
    """Something must be done."""
    return Finding(check, Level.FAILED, found, remedy)


DATANODES = "look at the DataNodes, with `hdfs dfsadmin -report`."


def remedy(error: Exception) -> str:
    """Return the next step after a file system has refused, or has not answered."""
    if isinstance(error, PermissionDenied):
        return "Give this user the right to read and write there."
    if isinstance(error, NotWritable):
        return "Wait until a NameNode is active and has left safe mode: see `hdfs dfsadmin -safemode get`."
    if isinstance(error, NoSpace):
        return "Make room there."
    if "certificate" in f"{error}":
        return "Let `webhdfs_ca` name a file with the authority that signs the server's certificate."
    if isinstance(error, (NotSent, Unknown, Unreachable)):
        return "Check that a NameNode serves there, and that this host reaches it."
    return "Correct that."
