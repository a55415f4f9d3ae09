"""The leader's own directory, as a store: every call has a deadline, every change is acknowledged, or raises an error.

What changes here changes by :meth:`OwnDirectory.settle`: a rename to a name that was never there before. So it is a
compare-and-set, what is executed late finds its source gone or its destination taken, and a claim by the next leader
fences all of it. See decision 16.
"""

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from leader import job as tree
from leader.errors import Fenced
from leader.names import MAX_SEQUENCE, RECORD, STAGED, LeaderDirectory, written
from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound, Refused, StoreError, Unknown
from store.files import Entry, Files
from store.outcome import Outcome
from store.paths import parent

T = TypeVar("T")

ATTEMPTS = 6
"""Tries of one change whose outcome stays unknown, each within the call time-out."""

LOOKS = 3
"""Lists until a name is taken for absent: ``file://`` may miss what is renamed while it lists."""

MAX_BYTES = 1 << 20
"""Longest content of a file: a call has to do it within its time-out. Bigger things belong below ``path()``."""

FILE_TIMEOUTS = 4
"""Call time-outs for the content of a file: HDFS opens a pipeline of DataNodes for it, which takes some 0.4 s."""


class OwnDirectory:
    """One leader directory; safe to use from several threads."""

    def __init__(self, files: BoundedFiles, job: str, directory: LeaderDirectory, call_timeout: float) -> None:
        """Touch nothing yet.

        Args:
            files: closed by whoever opened it.
            job: the job's name.
            directory: the leader directory; once it is another leader's, every call raises ``Fenced``.
            call_timeout: seconds for each store call.
        """
        self.job = job
        self.directory = directory
        self._files = files
        self._timeout = call_timeout
        self._swept = False

    def list(self, folder: str = "") -> list[Entry]:
        """Return the entries of a folder; none if there is no such folder.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        try:
            return self._call("own_list", lambda files: files.list(self._at(folder)))
        except NotFound:
            if folder != RECORD:
                self.check()
                return []
            raise self._fenced() from None

    def check(self) -> None:
        """Look whether the directory is still there, with its record: one that Spark has brought back to life has none.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        self.list(RECORD)

    def fenced_by(self) -> Fenced | None:
        """Look who leads, as the store says now; None if nobody has taken over.

        Returns:
            The error that names the present epoch, session and contender.

        Raises:
            StoreError: the store did not answer, or has no such job any more.
        """
        directory, record = self._call("own_present", lambda files: tree.read(files, self.job), 2)
        if directory == self.directory:
            return None
        lease = record.lease
        who = lease.contender if lease is not None and lease.owner == directory.session_id else "another contender"
        return Fenced(
            f"Epoch {self.directory.epoch} of job {self.job!r} was fenced: {who} has taken over, "
            f"and the job is at epoch {directory.epoch}, session {directory.session_id}, now."
        )

    def read(self, path: str) -> bytes:
        """Return a file's content.

        Raises:
            Fenced: another leader has taken over.
            NotFound: there is no such file.
            StoreError: the store did not answer, or it is longer than :data:`MAX_BYTES`.
        """
        return self._checked("own_read", lambda files: files.read(self._at(path), MAX_BYTES), FILE_TIMEOUTS)

    def make_folder(self, path: str) -> None:
        """Create a folder unless it is there. Nothing is proved by that: what is renamed into it proves it.

        Raises:
            Fenced: another leader has taken over.
            StoreError: it is not known whether it is there.
        """
        self._checked("own_make", lambda files: files.make_directory(self._at(path)))

    def delete(self, path: str) -> None:
        """Delete what nobody needs any more, with everything below it; no error if it is not there.

        It is not made sure: a NameNode may forget a deletion that was not acknowledged.

        Raises:
            Fenced: another leader has taken over.
            StoreError: it is not known whether it is gone.
        """
        with suppress(NotFound):
            self._checked("own_delete", lambda files: files.delete(self._at(path), recursive=True))

    def place(self, data: bytes | None, entry: str) -> None:
        """Store a file (an empty directory if ``data`` is None) under a name that was never there before.

        It is written elsewhere and moved into its name, whole; see :meth:`settle`. If that is refused nothing is left.

        Args:
            data: the file's content.
            entry: its path; the folder is made if it is missing.

        Raises:
            AlreadyExists: somebody else has taken the name.
            Fenced: another leader has taken over.
            Invalid: it is longer than :data:`MAX_BYTES`.
            StoreError: it was refused, or it stayed unknown whether it was stored.
        """
        staged = self.stage(data)
        try:
            self.make_folder(parent(entry))
            self.settle(staged, entry)
        except Refused:
            with suppress(StoreError, Fenced):  # or the next leader sweeps it away
                self.delete(staged)
            raise

    def staging(self) -> str:
        """Return a path that nobody has used, for something on its way; what stays there the next leader sweeps away.

        Raises:
            Fenced: another leader has taken over.
            StoreError: it is not known whether its folder is there.
        """
        self.make_folder(STAGED)
        self._sweep()
        return f"{STAGED}/{self.directory.epoch}-{uuid.uuid4().hex}"

    def stage(self, data: bytes | None) -> str:
        """Write what is to be moved into its place, and return its path; the next leader sweeps it away.

        Raises:
            Fenced: another leader has taken over.
            Invalid: it is longer than :data:`MAX_BYTES`.
            StoreError: it is not known whether it was written.
        """
        if data is not None and len(data) > MAX_BYTES:
            raise Invalid(
                f"It has {len(data):,} bytes, and {MAX_BYTES:,} are allowed: write it below leadership.path()."
            )
        path = self.staging()
        if data is None:
            self.make_folder(path)
        else:
            self._checked("own_write", lambda files: files.write(self._at(path), data), FILE_TIMEOUTS)
        return path

    def rename(self, source: str, target: str) -> None:
        """Rename an entry, once; for a name that has to be just so.

        Raises:
            AlreadyExists: the target is there.
            Fenced: another leader has taken over.
            NotFound: the source is not there.
            StoreError: it was refused, or nobody knows.
        """
        self._checked("own_rename", lambda files: files.rename(self._at(source), self._at(target)))

    def settle(self, source: str, entry: str, sequence: int = 1) -> str:
        """Rename an entry, and return its name once that is acknowledged: then no crash of a NameNode undoes it.

        After an unknown outcome it is renamed from wherever it is, to ``entry`` or to the next name that says the same.

        Args:
            source: its path.
            entry: the path it shall have, without its number.
            sequence: that number, one higher than any of such an entry before; see :func:`leader.names.written`.

        Raises:
            AlreadyExists: somebody else has taken the new name.
            Fenced: another leader has taken over.
            Invalid: there is no name with a higher number; somebody has made one by hand.
            NotFound: it is not there (any more).
            StoreError: it was refused, or it stayed unknown whether it was renamed.
        """
        if sequence + ATTEMPTS > MAX_SEQUENCE:  # what comes after it could not be read back
            raise Invalid(f"The numbers of {entry} of job {self.job!r} end at {MAX_SEQUENCE:,}: mend its name.")
        places = [source, *(written(entry, sequence + each) for each in range(ATTEMPTS))]
        here, perhaps_moved, doubted = 0, False, False
        for _ in range(ATTEMPTS):
            outcome = self._try(places[here], places[here + 1])
            if outcome.done:
                return places[here + 1]
            if outcome.unknown:
                perhaps_moved = doubted = True
            elif isinstance(outcome.error, NotFound) and perhaps_moved:
                here, perhaps_moved = here + 1, False  # seen, not acknowledged: it is renamed once more
            elif isinstance(outcome.error, NotFound) and here:
                here -= 1  # the NameNode has forgotten what it showed
            else:
                self.check()
                if doubted and isinstance(outcome.error, NotFound):
                    break  # it was moved, and somebody else has moved it on
                outcome.result()
        self.check()
        raise Unknown(f"It stayed unknown whether {source} of job {self.job!r} became {entry}.")

    def _try(self, source: str, target: str) -> Outcome[None]:
        old, new = self._at(source), self._at(target)
        return self._files.outcome("own_rename", lambda files: files.rename(old, new), self._timeout)

    def _sweep(self) -> None:
        """Delete once what earlier leaders have left behind half done; nobody can finish it, they are fenced."""
        if self._swept:
            return
        self._swept = True
        mine = f"{self.directory.epoch}-"
        with suppress(StoreError):  # it is in nobody's way
            for entry in self.list(STAGED):
                if not entry.name.startswith(mine):
                    self.delete(f"{STAGED}/{entry.name}")

    def _checked(self, name: str, operation: Callable[[Files], T], timeouts: int = 1) -> T:
        try:
            return self._call(name, operation, timeouts)
        except NotFound:
            self.check()
            raise

    def _call(self, name: str, operation: Callable[[Files], T], timeouts: int = 1) -> T:
        return self._files.call(name, operation, timeouts * self._timeout)

    def _at(self, path: str) -> str:
        home = f"{self.job}/{self.directory.name}"
        return f"{home}/{path}" if path else home

    def _fenced(self) -> Fenced:
        return Fenced(f"Epoch {self.directory.epoch} of job {self.job!r} is over: another leader has taken its place.")
