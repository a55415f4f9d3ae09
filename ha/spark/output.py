"""A streaming query's output, each batch exactly once, also if a driver that was replaced goes on writing.

    <leader directory>/out/<name>/staged/<attempt>      Spark writes here
    <leader directory>/out/<name>/ready/<attempt>       one rename: refused to a fenced driver
    <output>/batch=<id>                                 one more: the whole batch appears, or nothing

Spark creates missing parents, so a fenced driver could bring ``staged`` back to life, and with it the directory of its
old epoch. It never writes to ``ready``, which is made here without parents: once another leads, it is gone for good.
"""

import os
import posixpath
import threading
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ha.leadership import Leadership
from leader.errors import Fenced, InvalidSettings
from leader.names import check_word
from store.errors import AlreadyExists, Invalid, NotFound, NotSent, NotWritable, StoreError, Unknown
from store.files import Files
from store.opening import open_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ATTEMPTS = 5
"""Tries of one rename whose outcome is unknown, or that the store does not take now."""

CALL_TIMEOUT = 5.0
"""Seconds for one call. A driver may wait that long: whether it still leads is not decided here."""

RETRY = 0.5
"""Seconds between two tries."""

# The rename makes a batch visible at once, so Spark's own marker and its second move of every file are of no use.
_WRITER = {
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


class Output:
    """A directory that batches are published to, for use in ``foreachBatch``; one per query.

    It does NOT compare: if a batch was published before, what is there stays, and what was written now is dropped.
    """

    def __init__(self, leadership: Leadership, uri: str, name: str = "output") -> None:
        """Make the directories, and drop what earlier drivers left unfinished.

        Args:
            leadership: of the job.
            uri: where batches appear as ``batch=<id>``; in the same file system as the job.
            name: tells the outputs of one job apart.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: the name cannot be one.
            InvalidSettings: the output is in another file system: no rename leads there.
            StoreError: the store did not answer.
        """
        self._leadership = leadership
        inside = leadership.path(f"out/{check_word(name, 'an output')}")
        root, self._inside, self._outside = _common(inside, uri)
        self._files = open_files(root)
        self._home = posixpath.dirname(posixpath.dirname(self._inside))
        self._staged = f"{inside}/staged"
        try:
            try:
                self._connect()
                self._files.call("output", self._prepare, ATTEMPTS * CALL_TIMEOUT)
            except NotFound:
                raise self._fenced() from None
        except BaseException:
            self._files.close()
            raise

    def write(
        self, batch: "DataFrame", batch_id: int, source: str = "json", options: Mapping[str, str] | None = None
    ) -> bool:
        """Write a batch and publish it; returns whether it was published now, and not before.

        Args:
            batch: evaluated exactly once, also if it was published before: Spark counts on that for its state.
            batch_id: as Spark gave it.
            source: Spark's name of the file format.
            options: for Spark's writer.

        Raises:
            Fenced: another leader has taken over; nothing was published.
            StoreError: it stayed unknown whether it was published; Spark will do the batch again.
        """
        attempt = uuid.uuid4().hex  # a rename that is executed late must not catch the next try half-written
        batch.write.format(source).options(**_WRITER, **(options or {})).save(f"{self._staged}/{attempt}")
        ready = f"{self._inside}/ready/{attempt}"
        self._move(f"{self._inside}/staged/{attempt}", ready)
        published = self._move(ready, f"{self._outside}/batch={batch_id}")
        if not published:
            with suppress(StoreError):  # the next driver drops it
                self._files.call("output", lambda files: files.delete(ready, recursive=True), CALL_TIMEOUT)
        return published

    def close(self) -> None:
        """Let go of the file system."""
        self._files.close()

    def _connect(self) -> None:
        """Find a NameNode that answers: what deletes must not be given up on, for it may go on later."""
        for last in (False,) * (ATTEMPTS - 1) + (True,):
            outcome = self._files.outcome("output", lambda files: files.list(self._home), CALL_TIMEOUT)
            if not isinstance(outcome.error, Unknown | NotSent | NotWritable) or last:
                outcome.result()
                return
            threading.Event().wait(RETRY)

    def _prepare(self, files: Files) -> None:
        make_parents(files, self._outside)
        for path in (f"{self._inside}/staged", f"{self._inside}/ready"):
            with suppress(NotFound):
                files.delete(path, recursive=True)
        for path in (posixpath.dirname(self._inside), self._inside, f"{self._inside}/ready"):
            files.make_directory(path)

    def _move(self, source: str, target: str) -> bool:
        """Rename; returns False if the target was there."""
        doubtful = False
        for last in (False,) * (ATTEMPTS - 1) + (True,):
            error = self._files.outcome("output", lambda files: files.rename(source, target), CALL_TIMEOUT).error
            match error:
                case None:
                    return True
                case AlreadyExists():  # so the source is there still: a missing one would have been reported first
                    return False
                case NotFound() if doubtful and self._exists(target):
                    return True
                case NotFound():
                    raise self._fenced() from error
                case Unknown() | NotSent() | NotWritable() if not last:
                    doubtful = doubtful or isinstance(error, Unknown)
                    threading.Event().wait(RETRY)
                case _:
                    raise error
        raise AssertionError("the last attempt returns or raises")

    def _exists(self, path: str) -> bool:
        parent, name = posixpath.split(path)
        try:
            return any(
                entry.name == name
                for entry in self._files.call("output", lambda files: files.list(parent), CALL_TIMEOUT)
            )
        except NotFound:
            return False

    def _fenced(self) -> Fenced:
        job, epoch = self._leadership.job, self._leadership.epoch
        return Fenced(f"Epoch {epoch} of job {job!r} is over: its output is another leader's to write.")


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
    if top in paths or not theirs.path.startswith("/"):
        raise InvalidSettings(f"The output {outside!r} cannot be there: choose a directory beside those of the jobs.")
    try:
        open_files(f"{ours.scheme}://{ours.netloc}{top}").close()
    except Invalid as error:
        raise InvalidSettings(f"output: {error}") from error
    below = [os.path.relpath(path, top) for path in paths]
    return f"{ours.scheme}://{ours.netloc}{top}", below[0], below[1]
