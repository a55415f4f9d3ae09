"""JobStatus: a job's state, kept as the name of one entry in the leader directory. A transition is a fenced rename.

The entry's number grows with every transition. So a rename that the store executes late finds its source gone, even if
the job is in the same state again. The states and transitions are those of Flink's ``JobStatus``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import SEQUENCE, STATUS, written
from store.errors import AlreadyExists, Conflict, Invalid, NotFound

_ENTRY = re.compile(rf"{STATUS}([A-Z]+)(?:~(cleaning|cleaned)-([0-9a-f]{{8}}))?{SEQUENCE}")


class Status(Enum):
    """State of a job, in the order in which jobs get there."""

    INITIALIZING = "INITIALIZING"  # the program has started and has no graph yet
    CREATED = "CREATED"
    RECONCILING = "RECONCILING"  # a new leader finds out what still runs
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"  # the job has ended for this leader; the next leader goes on
    FAILING = "FAILING"
    CANCELLING = "CANCELLING"
    FAILED = "FAILED"  # the job has ended for good and must not run again; so it has in the next two states
    CANCELED = "CANCELED"
    FINISHED = "FINISHED"

    @property
    def globally_terminal(self) -> bool:
        """Whether the job has ended for good: no leader runs it again."""
        return self in (Status.FAILED, Status.CANCELED, Status.FINISHED)

    @property
    def terminal(self) -> bool:
        """Whether the job has ended, for this leader at least."""
        return self.globally_terminal or self is Status.SUSPENDED

    def allows(self, new: "Status") -> bool:
        """Whether a job may change to that state. It may stay in its state, which is then written once more."""
        return new is self or new in _NEXT[self]


_ABORTS = frozenset({Status.FAILING, Status.CANCELLING, Status.SUSPENDED})
_NEXT: dict[Status, frozenset[Status]] = {
    Status.INITIALIZING: _ABORTS | {Status.CREATED, Status.FAILED},
    Status.CREATED: _ABORTS | {Status.RECONCILING, Status.RUNNING},
    Status.RECONCILING: _ABORTS | {Status.RUNNING, Status.RESTARTING, Status.FINISHED},
    Status.RUNNING: _ABORTS | {Status.RECONCILING, Status.RESTARTING, Status.FINISHED},
    Status.RESTARTING: _ABORTS | {Status.CREATED, Status.RECONCILING, Status.RUNNING},
    Status.SUSPENDED: _ABORTS | {Status.CREATED, Status.RECONCILING, Status.RUNNING, Status.RESTARTING},
    Status.FAILING: frozenset({Status.FAILED, Status.RESTARTING, Status.CANCELLING, Status.SUSPENDED}),
    Status.CANCELLING: frozenset({Status.CANCELED, Status.FAILING, Status.SUSPENDED}),
    Status.FAILED: frozenset(),
    Status.CANCELED: frozenset(),
    Status.FINISHED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class StatusEntry:
    """The entry that holds a job's state."""

    status: Status  # the state
    cleaning: str = ""  # `cleaning` while the job's leftovers are cleaned up, `cleaned` afterwards, else empty
    trash: str = ""  # name of the folder in the trash that receives the leftovers; empty without a cleanup
    sequence: int = 1  # one higher with every change, from 1; 0 if there is no entry because somebody has deleted it

    @property
    def base(self) -> str:
        """The entry's name without its number."""
        return f"{STATUS}{self.status.value}" + (f"~{self.cleaning}-{self.trash}" if self.cleaning else "")

    @property
    def name(self) -> str:
        """The entry's name."""
        return written(self.base, self.sequence)

    @classmethod
    def parse(cls, name: str) -> "StatusEntry | None":
        """Read a name; None if it is not that of a state that this version knows."""
        match = _ENTRY.fullmatch(name)
        if not match or match[1] not in Status.__members__:
            return None
        return cls(Status(match[1]), match[2] or "", match[3] or "", int(match[4] or 1))


def pick(names: Iterable[str]) -> StatusEntry | None:
    """Return the valid state entry among the names of a leader directory; None if there is none."""
    # There is only one, unless somebody has made more by hand. Then the highest number counts, next the furthest state.
    order = list(Status)
    found = filter(None, map(StatusEntry.parse, names))
    return max(found, key=lambda each: (each.sequence, order.index(each.status)), default=None)


class JobStatus:
    """The state of a job, for its leader."""

    def __init__(self, directory: FencedDirectory) -> None:
        self._directory = directory

    def read(self) -> Status:
        """Return the job's state; ``CREATED`` if none is stored."""
        return self.entry().status

    def change(self, expected: Status, new: Status) -> None:
        """Change the job's state. Equal states write it once more, because a listed state may not be acknowledged.

        Raises:
            Conflict: the job is not in the expected state.
            Invalid: there is no such transition; nothing was sent.
        """
        if not expected.allows(new):
            raise Invalid(f"A job cannot change from {expected.value} to {new.value}.")
        present = self.entry()
        if present.status is not expected:
            raise self._conflict(present)
        self.replace(present, present if new is expected else StatusEntry(new))

    def begin_again(self, expected: Status) -> None:
        """Bring a job that has ended for good back to ``CREATED``, so that it can run once more.

        Raises:
            Conflict: the job is in another state, or a cleanup is under way; complete that first.
            Invalid: the expected state does not end a job for good.
        """
        if not expected.globally_terminal:
            raise Invalid(f"A job that is {expected.value} has not ended for good, so it cannot begin again.")
        present = self.entry()
        if present.status is not expected or present.cleaning == "cleaning":
            raise self._conflict(present)
        self.replace(present, StatusEntry(Status.CREATED))

    def entry(self) -> StatusEntry:
        """Return the valid entry; one that says ``CREATED`` if there is none."""
        found = self._directory.look("", lambda entries: pick(entry.name for entry in entries))
        return found or StatusEntry(Status.CREATED, sequence=0)

    def certain(self) -> StatusEntry:
        """Return the only entry.

        Raises:
            Invalid: there is none, or more than one, or this version does not know it: the state is uncertain.
        """
        names = [entry.name for entry in self._directory.list() if entry.name.startswith(STATUS)]
        found = StatusEntry.parse(names[0]) if len(names) == 1 else None
        if found is None:
            said = ", ".join(sorted(names)) or "nothing"
            raise Invalid(f"The state of job {self._directory.job!r} is not known: its directory says {said}.")
        return found

    def replace(self, present: StatusEntry, new: StatusEntry) -> StatusEntry:
        """Replace the entry that was read by one with the next number, and return the new one.

        Raises:
            Conflict: the entry that was read is gone.
        """
        if not present.sequence:
            self._directory.make_folder(present.name)
        try:
            name = self._directory.commit(present.name, new.base, max(present.sequence, 1) + 1)
        except (NotFound, AlreadyExists):
            raise self._conflict(self.entry()) from None
        committed = StatusEntry.parse(name)
        assert committed is not None, "what was written can be read"
        return committed

    def _conflict(self, present: StatusEntry) -> Conflict:
        doing = f" and being cleaned up ({present.trash})" if present.cleaning == "cleaning" else ""
        return Conflict(f"Job {self._directory.job!r} is {present.status.value}{doing} now.")
