"""The job's state, as the name of one entry in the leader directory; a transition is a rename, so it is fenced.

The entry's number grows with every transition: a rename that is executed late finds its source gone, also if the job
is in the same state again. States and transitions are those of Flink's ``JobStatus``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from leader.names import SEQUENCE, STATUS, written
from leader.own import LOOKS, OwnDirectory
from store.errors import AlreadyExists, Conflict, Invalid, NotFound

_ENTRY = re.compile(rf"{STATUS}([A-Z]+)(?:~(cleaning|cleaned)-([0-9a-f]{{8}}))?{SEQUENCE}")


class Status(Enum):
    """What a job is doing, in the order in which jobs get there."""

    INITIALIZING = "INITIALIZING"
    """The program has been started, and has no graph yet."""
    CREATED = "CREATED"
    RECONCILING = "RECONCILING"
    """A new leader finds out what is still running."""
    RUNNING = "RUNNING"
    RESTARTING = "RESTARTING"
    SUSPENDED = "SUSPENDED"
    """It has ended for this leader; the next one goes on."""
    FAILING = "FAILING"
    CANCELLING = "CANCELLING"
    FAILED = "FAILED"
    """It has ended for good, and is not to be run again; likewise the next two."""
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
        """Whether a job may go from this state to that one; to stay is allowed, and says it once more."""
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
    """The entry that says so.

    Attributes:
        status: the state.
        cleaning: ``cleaning`` or ``cleaned`` if what the job left is being cleaned up, or has been; see ``cleanup``.
        trash: where that goes in the trash; empty if nothing is cleaned up.
        sequence: one higher with every change, from 1; 0 if there is no entry, which somebody has deleted.
    """

    status: Status
    cleaning: str = ""
    trash: str = ""
    sequence: int = 1

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
        """Read a name; None if it is not a state's that is known here."""
        match = _ENTRY.fullmatch(name)
        if not match or match[1] not in Status.__members__:
            return None
        return cls(Status(match[1]), match[2] or "", match[3] or "", int(match[4] or 1))


def pick(names: Iterable[str]) -> StatusEntry | None:
    """Return the entry that counts, of all in a leader directory; None if there is none.

    There is one, unless somebody has made more by hand. Of several the last counts, and of those the furthest.
    """
    order = list(Status)
    found = filter(None, map(StatusEntry.parse, names))
    return max(found, key=lambda each: (each.sequence, order.index(each.status)), default=None)


class JobStatus:
    """The leader's hand on its job's state."""

    def __init__(self, own: OwnDirectory) -> None:
        """Touch nothing yet; ``own`` is the leader's directory."""
        self._own = own

    def read(self) -> Status:
        """Return the job's state; a job without one counts as created.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        return self.entry().status

    def change(self, expected: Status, new: Status) -> None:
        """Bring the job from one state into another; if they are the same, say so once more: seen is not done.

        Raises:
            Conflict: it is not in the expected state.
            Fenced: another leader has taken over.
            Invalid: there is no such transition; nothing was sent.
            StoreError: it was refused, or it stayed unknown whether the state has changed.
        """
        if not expected.allows(new):
            raise Invalid(f"A job that is {expected.value} does not become {new.value}.")
        present = self.entry()
        if present.status is not expected:
            raise self._conflict(present)
        self.replace(present, present if new is expected else StatusEntry(new))

    def begin_again(self, expected: Status) -> None:
        """Bring a job that has ended for good back to ``CREATED``, so that it can be run once more.

        Raises:
            Conflict: it is in another state, or is being cleaned up, which is to be finished first.
            Fenced: another leader has taken over.
            Invalid: that state is no end.
            StoreError: it was refused, or it stayed unknown whether the state has changed.
        """
        if not expected.globally_terminal:
            raise Invalid(f"A job that is {expected.value} has not ended: there is nothing to begin again.")
        present = self.entry()
        if present.status is not expected or present.cleaning == "cleaning":
            raise self._conflict(present)
        self.replace(present, StatusEntry(Status.CREATED))

    def entry(self) -> StatusEntry:
        """Return the entry that counts; one that says ``CREATED`` if there is none.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        for _ in range(LOOKS):
            if found := pick(entry.name for entry in self._own.list()):
                return found
        return StatusEntry(Status.CREATED, sequence=0)

    def certain(self) -> StatusEntry:
        """Return the only entry there is.

        Raises:
            Fenced: another leader has taken over.
            Invalid: there is none, or more than one, or one that this version does not know: nobody can tell the state.
            StoreError: the store did not answer.
        """
        names = [entry.name for entry in self._own.list() if entry.name.startswith(STATUS)]
        found = StatusEntry.parse(names[0]) if len(names) == 1 else None
        if found is None:
            said = ", ".join(sorted(names)) or "nothing"
            raise Invalid(f"The state of job {self._own.job!r} is not known: its directory says {said}.")
        return found

    def replace(self, present: StatusEntry, new: StatusEntry) -> StatusEntry:
        """Put another entry in the place of the one that was read, and return it; its number is the next.

        Raises:
            Conflict: that one is not there any more.
            Fenced: another leader has taken over.
            StoreError: it was refused, or it stayed unknown whether it was replaced.
        """
        if not present.sequence:
            self._own.make_folder(present.name)
        try:
            name = self._own.settle(present.name, new.base, max(present.sequence, 1) + 1)
        except (NotFound, AlreadyExists):
            raise self._conflict(self.entry()) from None
        settled = StatusEntry.parse(name)
        assert settled is not None, "what was written can be read"
        return settled

    def _conflict(self, present: StatusEntry) -> Conflict:
        doing = f" and being cleaned up ({present.trash})" if present.cleaning == "cleaning" else ""
        return Conflict(f"Job {self._own.job!r} is {present.status.value}{doing} now.")
