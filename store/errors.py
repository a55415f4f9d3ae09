"""Errors of a store: the operation was refused, or its outcome is unknown.

    StoreError
    ├── Refused             the operation did not happen and never will
    │   ├── NotFound            a name on the way is not there (for a rename: the compare of compare-and-swap failed)
    │   ├── AlreadyExists       the destination is there
    │   ├── Conflict            the version given is not the present one
    │   ├── NotEmpty            a directory to be deleted has entries
    │   ├── PermissionDenied    the store says no to this user
    │   ├── NoSpace             disk full or quota used up
    │   ├── NotWritable         safe mode, standby, or a read-only server: try again later
    │   ├── Invalid             the request itself makes no sense (bad name, wrong type of entry)
    │   └── NotSent             nothing was sent: no connection, or too many calls are stuck already
    └── Unknown             it may have happened, or still happen
        ├── DeadlineExceeded    no answer in time; the call was abandoned and may yet be executed
        └── ConnectionLost      the answer went missing

The protocol lives on the split at the root: after ``Refused`` it may decide, after ``Unknown`` it must look.
A driver that cannot classify an error raises ``Unknown``, which is always safe.
"""


class StoreError(Exception):
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


class NoSpace(Refused):
    """The disk is full or a quota is used up."""


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
