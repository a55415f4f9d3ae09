"""Renames from a leader directory to where its job's output is read, which refuse a driver that has been fenced.

Spark creates missing parents, so a fenced driver can bring its old leader directory back to life, with what it stages
there. It cannot bring back what only the protocol makes, the record, nor a folder that was made here without parents.
So whatever is to appear outside goes through such a folder first: once another leads, that is gone for good.
"""

import os
import posixpath
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from leader.errors import Fenced, InvalidSettings
from leader.names import RECORD, LeaderDirectory
from store.errors import AlreadyExists, Invalid, NotFound, NotSent, NotWritable, Unknown
from store.files import Entry, Files
from store.opening import open_files

T = TypeVar("T")

ATTEMPTS = 5
"""Tries of one call whose outcome is unknown, or that the store does not take now."""

CALL_TIMEOUT = 5.0
"""Seconds for one call. A driver may wait that long: whether it still leads is not decided here."""

RETRY = 0.5
"""Seconds between two tries."""


class Directory(Protocol):
    """What of a :class:`ha.leadership.Leadership` is needed here."""

    job: str
    epoch: int
    directory: str


class Moves:
    """A hand on the leader directory and on what lies outside of it, in one file system."""

    def __init__(self, leadership: Directory, outside: str) -> None:
        """Connect to nothing yet.

        Args:
            leadership: whose directory it is.
            outside: a URI; everything beside it and below it can be moved to.

        Raises:
            InvalidSettings: it is in another file system, or in a job's directory: no rename leads there.
        """
        self._job, self._epoch = leadership.job, leadership.epoch
        self.root, self.inside, self.outside = _common(leadership.directory, outside)
        self._files = open_files(self.root)

    def do(self, operation: Callable[[Files], T]) -> T:
        """Call the store, and again if it gives no answer: for what may happen twice.

        Raises:
            StoreError: it was refused, or nobody knows even now.
        """
        for _ in range(ATTEMPTS - 1):
            outcome = self._files.outcome("output", operation, CALL_TIMEOUT)
            if not isinstance(outcome.error, Unknown | NotSent | NotWritable):
                return outcome.result()
            threading.Event().wait(RETRY)
        return self._files.call("output", operation, CALL_TIMEOUT)

    def list(self, path: str) -> list[Entry]:
        """Return a folder's entries, by name; none if there is no such folder, unless this was fenced.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        try:
            return sorted(self.do(lambda files: files.list(path)), key=lambda entry: entry.name)
        except NotFound:
            self.check()
            return []

    def check(self) -> None:
        """Look whether the leader directory is there still: the true one, with its record.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        try:
            self.do(lambda files: files.list(f"{self.inside}/{RECORD}"))
        except NotFound:
            raise Fenced(f"Epoch {self._epoch} of job {self._job!r} is over: its output is another leader's.") from None

    def make_folders(self, *paths: str) -> None:
        """Make folders of the leader directory, of which a directory that was brought back to life has none.

        The look comes last: the directory was the true one then, so it was when the folders were made.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        with suppress(NotFound):
            for path in paths:
                self.do(lambda files, path=path: files.make_directory(path))  # type: ignore[misc]
        self.check()

    def move(self, source: str, target: str) -> bool:
        """Rename within the leader directory, or out of it; returns False if the target was there.

        A folder outside is made if it is missing. A target that is only *seen* after an unknown outcome counts here.

        Raises:
            Fenced: another leader has taken over.
            NotFound: there is no such source.
            StoreError: it was refused, or it stayed unknown whether it was moved.
        """
        doubtful = False
        parents = not target.startswith(f"{self.inside}/")
        for last in (False,) * ATTEMPTS + (True,):
            error = self._files.outcome("output", lambda files: files.rename(source, target), CALL_TIMEOUT).error
            match error:
                case None:
                    return True
                case AlreadyExists():  # so the source is there still: a missing one would have been reported first
                    return False
                case NotFound() if doubtful and self._there(target):
                    return True
                case NotFound() if parents and not last:
                    self.check()
                    self.do(lambda files: make_parents(files, posixpath.dirname(target)))
                    parents = False
                case NotFound():
                    self.check()
                    raise error
                case Unknown() | NotSent() | NotWritable() if not last:
                    doubtful = doubtful or isinstance(error, Unknown)
                    threading.Event().wait(RETRY)
                case _:
                    raise error
        raise AssertionError("the last attempt returns or raises")

    def remove(self, path: str) -> None:
        """Delete an entry with everything below it; no error if it is not there.

        Raises:
            StoreError: it is not known whether it is gone.
        """
        with suppress(NotFound):
            self.do(lambda files: files.delete(path, recursive=True))

    def sweep(self) -> None:
        """Delete what fenced drivers have brought back to life: directories of earlier epochs beside this true one.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        self.check()
        job = posixpath.dirname(self.inside)
        for entry in self.list(job):
            found = LeaderDirectory.parse(entry.name)
            if found is not None and found.epoch < self._epoch:  # which no rename makes the leader directory again
                self.remove(f"{job}/{entry.name}")

    def close(self) -> None:
        """Let go of the file system."""
        self._files.close()

    def _there(self, path: str) -> bool:
        parent, name = posixpath.split(path)
        try:
            return any(entry.name == name for entry in self.do(lambda files: files.list(parent)))
        except NotFound:
            return False


def make_parents(files: Files, path: str) -> None:
    """Create a directory and whatever is missing above it."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        with suppress(AlreadyExists):
            files.make_directory("/".join(parts[:end]))


def _common(inside: str, outside: str) -> tuple[str, str, str]:
    """Return a root that holds both, and their paths below it.

    Raises:
        InvalidSettings: there is none.
    """
    ours, theirs = urlsplit(inside), urlsplit(outside)
    if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
        raise InvalidSettings(
            f"The output {outside!r} is not in the file system of {inside!r}: choose a directory that is, "
            "because a batch gets there by a rename."
        )
    paths = [posixpath.normpath(parts.path) for parts in (ours, theirs)]
    top = posixpath.commonpath(paths) if ours.scheme == "file" else "/"
    if top in paths or not theirs.path.startswith("/") or paths[1].startswith(f"{posixpath.dirname(paths[0])}/"):
        raise InvalidSettings(f"The output {outside!r} cannot be there: choose a directory beside those of the jobs.")
    try:
        open_files(f"{ours.scheme}://{ours.netloc}{top}").close()
    except Invalid as error:
        raise InvalidSettings(f"output: {error}") from error
    below = [os.path.relpath(path, top) for path in paths]
    return f"{ours.scheme}://{ours.netloc}{top}", below[0], below[1]
