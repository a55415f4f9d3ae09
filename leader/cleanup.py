"""What a job that has ended for good leaves behind: into the trash, and out of it again.

It begins with a mark on the job's state, one rename: so it begins only from a state that has ended for good, and who
would run the job again finds the mark, or was there first. Every step is a rename to a place that the mark names, so
after a crash anybody goes on from what is there, and what comes late is refused.
"""

import re
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace

from leader.names import BLOBS, GRAPH, OUT, SEQUENCE, SPARK, TRASH
from leader.own import OwnDirectory
from leader.queries import Queries
from leader.results import Results
from leader.status import JobStatus, StatusEntry
from store.errors import AlreadyExists, Conflict, Invalid, NotFound

FOLDERS = (GRAPH, BLOBS, SPARK, OUT)
"""What is cleaned up, in this order: what points to something goes before what it points to."""

_TRASH = re.compile(r"[0-9a-f]{8}")
_MOVED = re.compile(rf"({'|'.join(FOLDERS)}){SEQUENCE}")


@dataclass(frozen=True, slots=True)
class Trashed:
    """What one cleaning has moved into the trash, or one replacement of a query's checkpoint.

    Attributes:
        name: what to call it.
        folders: what it is, as it was called in the leader directory.
        restorable: whether the job has not been run again since; a query's checkpoint always is.
        at_ms: when it was last changed, by the store's wall clock, in milliseconds since 1970; for display only.
    """

    name: str
    folders: tuple[str, ...]
    restorable: bool
    at_ms: int


class Cleanup:
    """A hand on what a job has left behind: its leader's, or an operator's when nobody leads it."""

    def __init__(self, own: OwnDirectory) -> None:
        """Touch nothing yet; ``own`` is the leader directory."""
        self._own = own
        self._status = JobStatus(own)
        self._results = Results(own)
        self._queries = Queries(own)

    def clean(self) -> str:
        """Move the graph, the blobs, Spark's checkpoints and output into the trash, then mark the dirty results clean.

        After a crash it goes on where it was; when all is clean it changes nothing.

        Returns:
            What it is called in the trash.

        Raises:
            Conflict: the state was changed at the same moment.
            Fenced: a leader has taken over.
            Invalid: the job has not ended for good, or nobody can tell its state; nothing was touched.
            StoreError: it was refused, or it stayed unknown; call it again.
        """
        marked = self._ended()
        if marked.cleaning == "cleaned":
            return marked.trash
        if not marked.cleaning:
            marked = self._status.replace(marked, replace(marked, cleaning="cleaning", trash=uuid.uuid4().hex[:8]))
        self._own.make_folder(TRASH)
        self._own.make_folder(f"{TRASH}/{marked.trash}")
        moved = self._moved(marked.trash)
        for folder in FOLDERS:
            # One that is there already may only be seen: a NameNode may forget what it shows.
            source, sequence = moved.get(folder, (folder, 0))
            with suppress(NotFound):  # the job never had one
                self._own.settle(source, f"{TRASH}/{marked.trash}/{folder}", sequence + 1)
        for name in self._results.dirty():
            self._results.clean(name)
        self._status.replace(marked, replace(marked, cleaning="cleaned"))
        return marked.trash

    def restore(self) -> str:
        """Undo the last cleaning, also one that has not come to its end; results stay clean.

        Returns:
            What was restored, as it was called in the trash.

        Raises:
            Conflict: the state was changed at the same moment, or something else is in the place of a folder.
            Fenced: a leader has taken over.
            Invalid: the job was not cleaned up since it ended, or nobody can tell its state.
            NotFound: the trash has been emptied.
            StoreError: it was refused, or it stayed unknown; call it again.
        """
        marked = self._ended()
        if not marked.cleaning:
            raise Invalid(f"Job {self._own.job!r} has not been cleaned up since it ended: there is nothing to restore.")
        if marked.cleaning == "cleaning":  # whatever is halfway, and in whichever direction: from here it is known
            self.clean()
            marked = self._ended()
        if not any(each.name == marked.trash for each in self._own.list(TRASH)):
            raise NotFound(f"The trash of job {self._own.job!r} does not hold {marked.trash} any more.")
        halfway = self._status.replace(marked, replace(marked, cleaning="cleaning"))
        moved = self._moved(marked.trash)
        for folder in reversed(FOLDERS):
            if folder in moved:
                self._put_back(moved[folder][0], folder)
        self._status.replace(halfway, StatusEntry(marked.status))
        return marked.trash

    def trash(self) -> list[Trashed]:
        """Return what is in the trash, oldest first.

        Raises:
            Fenced: a leader has taken over.
            StoreError: the store did not answer.
        """
        marked = self._status.entry().trash
        found = []
        for entry in self._own.list(TRASH):
            if not _TRASH.fullmatch(entry.name):
                continue
            if folders := tuple(self._moved(entry.name)):
                found.append(Trashed(entry.name, folders, entry.name == marked, entry.modified_ms))
            elif query := self._queries.discarded(entry.name):
                found.append(Trashed(entry.name, (f"{SPARK}/{query}",), restorable=True, at_ms=entry.modified_ms))
        return sorted(found, key=lambda each: (each.at_ms, each.name))

    def empty(self) -> list[str]:
        """Delete what is in the trash, for good, but for a cleaning that has not come to its end.

        Returns:
            What was deleted.

        Raises:
            Fenced: a leader has taken over.
            StoreError: it stayed unknown whether all of it is gone; call it again.
        """
        marked = self._status.entry()
        kept = marked.trash if marked.cleaning == "cleaning" else ""
        doomed = sorted(
            each.name for each in self._own.list(TRASH) if _TRASH.fullmatch(each.name) and each.name != kept
        )
        for name in doomed:
            self._own.delete(f"{TRASH}/{name}")
        return doomed

    def _ended(self) -> StatusEntry:
        """The state of a job that has ended for good."""
        found = self._status.certain()
        if not found.status.globally_terminal:
            raise Invalid(f"Job {self._own.job!r} is {found.status.value}: only what has ended for good is cleaned up.")
        return found

    def _moved(self, trash: str) -> dict[str, tuple[str, int]]:
        """What one cleaning has moved: path and number by folder, in the order of :data:`FOLDERS`."""
        found = {}
        for entry in self._own.list(f"{TRASH}/{trash}"):
            if match := _MOVED.fullmatch(entry.name):
                found[match[1]] = (f"{TRASH}/{trash}/{entry.name}", int(match[2] or 1))
        return {folder: found[folder] for folder in FOLDERS if folder in found}

    def _put_back(self, source: str, folder: str) -> None:
        try:
            self._own.rename(source, folder)
        except AlreadyExists as error:
            raise Conflict(f"Job {self._own.job!r} has another {folder!r} by now: move it away first.") from error
