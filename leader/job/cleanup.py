"""Cleanup: moves the leftovers of a job that has ended for good to the trash, and back.

A cleanup begins with a mark on the job's state, by one rename. So it begins only from a state that ends a job for good,
and a process that wants to run the job again either finds the mark or comes first. Every step is a rename to a place
that the mark names. So any process can continue after a crash, and the store refuses a step that comes late.
"""

import re
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace

from leader.job.fenced_directory import FencedDirectory
from leader.job.query_checkpoints import QueryCheckpoints
from leader.job.results import Results
from leader.job.status import JobStatus, StatusEntry
from leader.job.swept_files import swept_from
from leader.job.versioned_files import NumberedEntry, newest, numbered
from leader.layout.names import BLOBS, GRAPH, OUT, REWINDING, REWOUND, SEQUENCE, SPARK, TRASH
from store.errors import AlreadyExists, Conflict, Invalid, NotFound

# Cleaned up in this order: a folder that points to another one goes first.
FOLDERS = (GRAPH, BLOBS, SPARK, OUT, REWINDING)

_TRASH = re.compile(r"[0-9a-f]{8}")
_MOVED = re.compile(rf"({'|'.join(FOLDERS)})(){SEQUENCE}")


@dataclass(frozen=True, slots=True)
class Trashed:
    """The entries that one cleanup, or one replacement of a query's checkpoint, has moved to the trash."""

    name: str  # of the folder in the trash
    folders: tuple[str, ...]  # former paths in the leader directory
    restorable: bool  # whether the job has not run again since; always true for a query's checkpoint
    at_ms: int  # last change, in milliseconds since 1970 by the store's wall clock; for display only


class Cleanup:
    """The leftovers of a job, for its leader, or for an operator while the job has no leader.

    After an unknown outcome call the method again.
    """

    def __init__(self, directory: FencedDirectory) -> None:
        self._directory = directory
        self._status = JobStatus(directory)
        self._results = Results(directory)
        self._queries = QueryCheckpoints(directory)

    def clean(self) -> str:
        """Move the graph, the blobs, Spark's checkpoints and output to the trash, then mark the dirty results clean.

        It returns the name of the folder in the trash. After a crash it continues where it stopped; if everything is
        clean, it changes nothing.

        Raises:
            Conflict: another process changed the state at the same moment.
            Invalid: the job has not ended for good, or its state is not certain; nothing was changed.
        """
        marked = self._ended()
        if marked.cleaning == "cleaned":
            return marked.trash
        if not marked.cleaning:
            marked = self._status.replace(marked, replace(marked, cleaning="cleaning", trash=uuid.uuid4().hex[:8]))
        self._directory.make_folder(TRASH)
        self._directory.make_folder(f"{TRASH}/{marked.trash}")
        moved = self._moved(marked.trash)
        for folder in FOLDERS:
            # A folder that was moved already is moved once more, because a NameNode may forget a listed change.
            source = moved.get(folder, NumberedEntry(0, 0, path=folder))
            with suppress(NotFound):  # the job never had this folder
                self._directory.commit(source.path, f"{TRASH}/{marked.trash}/{folder}", source.sequence + 1)
        for name in self._results.dirty():
            self._results.clean(name)
        self._status.replace(marked, replace(marked, cleaning="cleaned"))
        return marked.trash

    def restore(self) -> str:
        """Undo the last cleanup, even an incomplete one, and return its folder in the trash; results stay clean.

        Raises:
            Conflict: another process changed the state at the same moment, or the job has a new folder of that name.
            Invalid: the job was not cleaned up since it ended, or its state is not certain.
            NotFound: the trash has been emptied.
        """
        marked = self._ended()
        if not marked.cleaning:
            raise Invalid(
                f"Job {self._directory.job!r} has not been cleaned up since it ended: there is nothing to restore."
            )
        if marked.cleaning == "cleaning":  # a cleanup or a restore stopped halfway; after a cleanup the place is known
            self.clean()
            marked = self._ended()
        if not any(each.name == marked.trash for each in self._directory.list(TRASH)):
            raise NotFound(f"The trash of job {self._directory.job!r} does not hold {marked.trash} any more.")
        halfway = self._status.replace(marked, replace(marked, cleaning="cleaning"))
        moved = self._moved(marked.trash)
        for folder in reversed(FOLDERS):
            if folder in moved:
                self._put_back(moved[folder].path, folder)
        self._status.replace(halfway, StatusEntry(marked.status))
        return marked.trash

    def trash(self) -> list[Trashed]:
        """Return the contents of the trash, oldest first."""
        marked = self._status.entry().trash
        found = []
        for entry in self._directory.list(TRASH):
            if not _TRASH.fullmatch(entry.name):
                continue
            if folders := tuple(self._moved(entry.name)):
                found.append(Trashed(entry.name, folders, entry.name == marked, entry.modified_ms))
            elif swept := swept_from(each.name for each in self._directory.list(f"{TRASH}/{entry.name}")):
                found.append(Trashed(entry.name, tuple(swept), restorable=True, at_ms=entry.modified_ms))
            elif query := self._rewound(entry.name) or self._queries.discarded(entry.name):
                found.append(Trashed(entry.name, (f"{SPARK}/{query}",), restorable=True, at_ms=entry.modified_ms))
        return sorted(found, key=lambda each: (each.at_ms, each.name))

    def _rewound(self, trash: str) -> str:
        """Return the query whose checkpoint was put here by a rewind; empty if there is none."""
        names = (entry.name for entry in self._directory.list(f"{TRASH}/{trash}"))
        return next((name.removeprefix(REWOUND) for name in names if name.startswith(REWOUND)), "")

    def empty(self, older_than_ms: int = 0) -> list[str]:
        """Delete the contents of the trash for good, except an incomplete cleanup; return the deleted names.

        With ``older_than_ms``, only what was changed so long ago, by the store's clock.
        """
        marked = self._status.entry()
        kept = marked.trash if marked.cleaning == "cleaning" else ""
        until = self._present_ms() - older_than_ms if older_than_ms else None
        doomed = sorted(
            each.name
            for each in self._directory.list(TRASH)
            if _TRASH.fullmatch(each.name) and each.name != kept and (until is None or each.modified_ms <= until)
        )
        for name in doomed:
            self._directory.delete(f"{TRASH}/{name}")
        return doomed

    def _present_ms(self) -> int:
        """Return the time of the store, which a new folder has."""
        name = uuid.uuid4().hex[:8]
        self._directory.make_folder(TRASH)
        self._directory.make_folder(f"{TRASH}/{name}")
        found = next((each.modified_ms for each in self._directory.list(TRASH) if each.name == name), 0)
        self._directory.delete(f"{TRASH}/{name}")
        return found

    def _ended(self) -> StatusEntry:
        found = self._status.certain()
        if not found.status.globally_terminal:
            raise Invalid(
                f"Job {self._directory.job!r} is {found.status.value}: it can be cleaned up once it has ended for good."
            )
        return found

    def _moved(self, trash: str) -> dict[str, NumberedEntry]:
        """Return the folders that one cleanup has moved, in the order of :data:`FOLDERS`."""
        folder = f"{TRASH}/{trash}"
        found = newest(numbered(self._directory.list(folder), folder, _MOVED, lambda _: 0))
        return {each: found[each] for each in FOLDERS if each in found}

    def _put_back(self, source: str, folder: str) -> None:
        try:
            self._directory.rename(source, folder)
        except AlreadyExists as error:
            raise Conflict(
                f"Job {self._directory.job!r} has a new folder {folder!r} by now: move it away first."
            ) from error
