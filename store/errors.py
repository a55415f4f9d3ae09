"""The root of all errors of this package, and those of a store: the operation was refused, or its outcome is unknown.

    HaError
    └── StoreError
        ├── Refused             the operation did not happen and never will
        │   ├── NotFound            a name on the way is not there (a rename: the compare of compare-and-swap failed)
        │   ├── AlreadyExists       the destination is there
        │   ├── Conflict            the version given is not the present one
        │   ├── NotEmpty            a directory to be deleted has entries
        │   ├── PermissionDenied    the store says no to this user
        │   ├── HasSnapshots        HDFS moves no directory that has snapshots in it
        │   ├── NoSpace             disk full or quota used up
        │   ├── NotWritable         safe mode, standby, or a read-only server: try again later
        │   ├── Invalid             the request itself makes no sense (bad name, wrong type of entry)
        │   └── NotSent             nothing was sent: no connection, or too many calls are stuck already
        └── Unknown             it may have happened, or still happen
            ├── DeadlineExceeded    no answer in time; the call was abandoned and may yet be executed
            └── ConnectionLost      the answer went missing

The protocol lives on the split at the root: after ``Refused`` it may decide, after ``Unknown`` it must look.
A driver that cannot classify an error raises ``Unknown``, which is always safe.

All calls of a store raise ``StoreError``; only the public API repeats that.
"""

import re
import shlex


class HaError(Exception):
    """Any error that this package raises on purpose."""


class StoreError(HaError):
    """Any failure of a store call."""


class Refused(StoreError):
    """The operation did not happen and never will."""


class NotFound(Refused):
    """The entry, or a directory on the way to it, does not exist."""


class AlreadyExists(Refused):
    """The destination exists."""


class Conflict(Refused):
    """The version given is not the present one: another client has changed the entry."""


class NotEmpty(Refused):
    """The directory to be deleted has entries."""


class PermissionDenied(Refused):
    """The store does not allow this user to do that."""


class HasSnapshots(Refused):
    """HDFS moves no directory that has snapshots, or has one below that has some; the text says what ends that."""

    def __str__(self) -> str:
        found = re.search(r"since (\S.*) is snapshottable", super().__str__())
        where = found[1] if found else "DIRECTORY"
        return (
            f"{super().__str__()}: delete them with `hdfs dfs -deleteSnapshot {where} NAME`; "
            f"`hdfs dfs -ls {where}/.snapshot` lists them"
        )


class NoSpace(Refused):
    """The disk is full or a quota is used up; the text says what ends that."""

    def __str__(self) -> str:
        said = super().__str__()
        found = re.search(r"The (NameSpace|DiskSpace|directory item).* of (?:directory )?(/.*) is exceeded", said)
        ends = {
            "NameSpace": "free some names there, or raise the quota with `hdfs dfsadmin -setQuota NUMBER {}`",
            "DiskSpace": "free some space there, or raise the quota with `hdfs dfsadmin -setSpaceQuota BYTES {}`",
            "directory item": "free some of {}, or raise the NameNode's dfs.namenode.fs-limits.max-directory-items",
        }
        return f"{said}: {ends[found[1]].format(shlex.quote(found[2])) if found else 'free some space there'}"


class NotWritable(Refused):
    """The store takes no writes now (safe mode, standby NameNode, read-only ZooKeeper)."""


class Invalid(Refused):
    """The request makes no sense: a bad name, or an entry of the wrong type."""


class NotSent(Refused):
    """Nothing was sent: there is no connection, or too many earlier calls are stuck."""


class Unknown(StoreError):
    """The operation may have happened, or may still happen."""


class DeadlineExceeded(Unknown):
    """No answer came in time; the call was abandoned and may be executed later."""


class ConnectionLost(Unknown):
    """The connection broke before the answer came."""
