"""Errors of the protocol, as its users see them.

    HaError
    └── LeaderError
        ├── InvalidName         the name of a job, endpoint, contender or address is not valid
        ├── InvalidSettings     timings or addresses that contradict each other
        ├── NotLeader           this process does not lead, or no longer does; nothing was written
        ├── Fenced              the store refused a write because another leader has taken over
        ├── NoLeader            the job has no leader now
        │   └── Leaderless          its lease is free: the next one may be on its way
        ├── Paused              an operator has paused the job: no process may take over
        ├── ForeignBatch        a batch of a query that the output does not belong to, or of an older state of its query
        ├── OutputLost          files of a batch were deleted on their way to its readers
        ├── QueryFailed         a query of the job has failed, and nothing here starts it again
        ├── Unreadable          the store holds something that cannot be read, and must not be skipped
        └── Unreachable         no store answered in time; names every cause

Failures of a single store call are :class:`store.errors.StoreError`; the tree there splits at *refused* and *unknown*.
All calls for a leader raise ``Fenced`` once another one has taken over; only the public API repeats that.
"""

from store.errors import HaError


class LeaderError(HaError):
    """Any error of the protocol."""


class InvalidName(LeaderError, ValueError):
    """A name is not valid; the message says what is allowed."""


class InvalidSettings(LeaderError, ValueError):
    """Settings are wrong or contradict each other; the message says which."""


class NotLeader(LeaderError):
    """This process does not lead the job, or no longer does; nothing was written."""


class Fenced(NotLeader):
    """The store refused the write: the leader directory belongs to a later epoch now."""


class NoLeader(LeaderError):
    """The job has no leader at present, or does not exist."""


class Leaderless(NoLeader):
    """The job exists, but its lease has no holder: the next leader may be on its way."""


class Paused(LeaderError):
    """An operator has paused the job: no process may take over. The message says who paused it, and how to resume."""


class ForeignBatch(LeaderError):
    """A batch is neither the next one of its output nor a repetition: its rows would be lost or come twice.

    Nothing was written. The message says whose batches the output has, and what to do.
    """


class OutputLost(LeaderError):
    """Files of a batch were deleted before they were in their places; the message says which, and what to do.

    Attributes:
        files: how many the batch has; 0 if that is not known.
        lost: how many of them are gone.
    """

    def __init__(self, message: str, files: int = 0, lost: int = 0) -> None:
        super().__init__(message)
        self.files, self.lost = files, lost


class TooManyDeadLetters(LeaderError):
    """A batch has more records that cannot be processed than its query tolerates; the message says how many."""


class QueryFailed(LeaderError):
    """A query of the job has failed, and nothing in this program starts it again; the message says why."""


class RegionBehind(LeaderError):
    """A region of an output has not come as far as the others need; the message says which, and why."""


class Unreadable(LeaderError):
    """The store holds something that cannot be read here; the message says what, and what to do about it."""


class Unreachable(LeaderError):
    """No store answered within the time-out; the message names what each of them said."""
