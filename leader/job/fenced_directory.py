"""FencedDirectory: a job's leader directory as a store, for the leader that owns it.

Every call has a deadline, and every change is acknowledged or raises an error. :meth:`FencedDirectory.commit` renames
an entry to a name that never existed before. So a change is a compare-and-set, and one that the store executes late
finds its source gone or its destination taken. The next leader claims the job by renaming the whole directory, which
fences every later change. See decision 16.
"""

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from leader.errors import Fenced
from leader.layout import tree
from leader.layout.names import CHECKPOINTS, MAX_SEQUENCE, RECORD, STAGED, LeaderDirectory, written
from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound, Refused, StoreError, Unknown
from store.files import Entry, Files
from store.outcome import Outcome
from store.paths import parent

T = TypeVar("T")

ATTEMPTS = 6  # tries of one change whose outcome stays unknown, each within the call time-out
LOOKS = 3  # lists before a name counts as absent: `file://` may miss an entry that is renamed during the list
MAX_BYTES = 1 << 20  # of a file: one call must move it within its time-out. Bigger data belongs below `path()`
FILE_TIMEOUTS = 4  # call time-outs for the content of a file: HDFS opens a pipeline of DataNodes for it, in about 0.4 s

# Only the protocol creates these: where one is missing, this is no longer the leader directory.
PROOFS = (RECORD, CHECKPOINTS)


class FencedDirectory:
    """One leader directory; safe to use from several threads. Paths are relative to it.

    Every method that calls the store raises :class:`leader.errors.Fenced` once another leader has taken over, and
    :class:`store.errors.StoreError` if the store refuses the call (``Refused``: nothing has changed) or its outcome
    stays unknown (``Unknown``). Methods list only other errors.
    """

    def __init__(
        self, files: BoundedFiles, job: str, leader: LeaderDirectory, call_timeout: float, home: str = ""
    ) -> None:
        """Connect to nothing yet; the caller closes the store. ``home``: path below its root, if not the usual one."""
        self.job = job
        self.leader = leader
        self._home = home or f"{job}/{leader.name}"
        self._files = files
        self._timeout = call_timeout
        self._swept = False

    def at(self, path: str = "") -> str:
        """Return the path below the root of the store; an empty one is the directory itself."""
        return f"{self._home}/{path}" if path else self._home

    # --- reads

    def list(self, folder: str = "", call: str = "own_list") -> list[Entry]:
        """Return the entries of a folder; none if there is no such folder. Metrics count it as ``call``."""
        try:
            return self._call(call, lambda files: files.list(self.at(folder)))
        except NotFound:
            if folder in PROOFS:
                raise self._fenced() from None
            self.check()
            return []

    def look(self, folder: str, pick: Callable[[Sequence[Entry]], T | None]) -> T | None:
        """Return the entry that ``pick`` finds in a folder; None after :data:`LOOKS` lists without a find."""
        return next((found for _ in range(LOOKS) if (found := pick(self.list(folder))) is not None), None)

    def check(self) -> None:
        """Raise ``Fenced`` unless the directory still exists with its record."""
        # Spark may bring an old leader directory back to life, but never its record.
        self.list(RECORD)

    def fenced_by(self) -> Fenced | None:
        """Ask the store for the present leader; return the error that names it, or None if this one still leads."""
        leader, record = self._call("own_present", lambda files: tree.read(files, self.job), 2)
        if leader == self.leader:
            return None
        lease = record.lease
        who = lease.contender if lease is not None and lease.owner == leader.session_id else "another contender"
        return Fenced(
            f"Epoch {self.leader.epoch} of job {self.job!r} was fenced: {who} has taken over, "
            f"and the job is at epoch {leader.epoch}, session {leader.session_id}, now."
        )

    def read(self, path: str, most: int = MAX_BYTES) -> bytes:
        """Return a file's content, at most that many bytes; NotFound without a file."""
        return self._checked("own_read", lambda files: files.read(self.at(path), most), _timeouts(most))

    # --- changes

    def make_folder(self, path: str) -> None:
        """Create a folder unless it exists. Proves nothing about the fence; the rename of an entry into it does."""
        self._checked("own_make", lambda files: files.make_directory(self.at(path)))

    def delete(self, path: str) -> None:
        """Delete an entry with everything below it; no error if there is none."""
        # A NameNode may forget a deletion that it never acknowledged, so delete only entries that no reader needs.
        with suppress(NotFound):
            self._checked("own_delete", lambda files: files.delete(self.at(path), recursive=True))

    def rename(self, source: str, target: str) -> None:
        """Rename an entry once, to exactly this name; AlreadyExists or NotFound if that is so."""
        self._checked("own_rename", lambda files: files.rename(self.at(source), self.at(target)))

    def attempt(self, call: str, change: Callable[[Files], None]) -> Outcome[None]:
        """Make one change, and return its outcome instead of raising. Its paths come from :meth:`at`."""
        return self._files.outcome(call, change, self._timeout)

    def put(self, data: bytes | None, entry: str, most: int = MAX_BYTES) -> None:
        """Store a file under a name that never existed before; an empty directory if ``data`` is None."""
        # It is written elsewhere and moved to its path, into a folder that is made if need be. A refusal leaves nothing
        # behind: AlreadyExists if another process has taken the name, Invalid if the content is too long.
        staged = self.stage(data, most)
        try:
            self.make_folder(parent(entry))
            self.commit(staged, entry)
        except Refused:
            with suppress(StoreError, Fenced):  # if this fails, the next leader sweeps it away
                self.delete(staged)
            raise

    def staging(self) -> str:
        """Return an unused path for incomplete files; the next leader sweeps it away."""
        own = f"{STAGED}/{self.leader.epoch}"
        try:
            self.make_folder(own)
        except NotFound:
            self.make_folder(STAGED)
            self.make_folder(own)
        self._sweep()
        return f"{own}/{uuid.uuid4().hex}"

    def stage(self, data: bytes | None, most: int = MAX_BYTES) -> str:
        """Write a file, or make a directory if ``data`` is None, at a :meth:`staging` path, and return that path."""
        if data is not None and len(data) > most:
            raise Invalid(
                f"The content has {len(data):,} bytes, and {most:,} are allowed: write it below leadership.path()."
            )
        path = self.staging()
        if data is None:
            self.make_folder(path)
        else:
            self._checked("own_write", lambda files: files.write(self.at(path), data), _timeouts(len(data)))
        return path

    def commit(self, source: str, entry: str, sequence: int = 1) -> str:
        """Rename an entry, and return its name once the store has acknowledged it: no crash of a NameNode undoes it.

        After an unknown outcome, the entry is renamed from where it is, to ``entry`` or to the next equal name.

        Args:
            source: present path.
            entry: new path, without its number.
            sequence: that number, one higher than any before it; see :func:`leader.layout.names.written`.

        Raises:
            AlreadyExists: another process has taken the new name.
            Invalid: there is no name with a higher number; somebody has made one by hand.
            NotFound: the source does not exist (any more).
        """
        if sequence + ATTEMPTS > MAX_SEQUENCE:  # a higher number could not be read back
            raise Invalid(f"The numbers of {entry} of job {self.job!r} end at {MAX_SEQUENCE:,}: rename it by hand.")
        places = [source, *(written(entry, sequence + each) for each in range(ATTEMPTS))]
        here, perhaps_moved, doubted = 0, False, False
        for _ in range(ATTEMPTS):
            outcome = self._try(places[here], places[here + 1])
            if outcome.done:
                return places[here + 1]
            if outcome.unknown:
                perhaps_moved = doubted = True
            elif isinstance(outcome.error, NotFound) and perhaps_moved:
                here, perhaps_moved = here + 1, False  # seen but not acknowledged, so it is renamed once more
            elif isinstance(outcome.error, NotFound) and here:
                here -= 1  # the NameNode has forgotten what it showed
            else:
                self.check()
                if doubted and isinstance(outcome.error, NotFound):
                    break  # it was moved, and another process has moved it on
                outcome.result()
        self.check()
        raise Unknown(f"It is not known whether {source} of job {self.job!r} became {entry}.")

    def _try(self, source: str, target: str) -> Outcome[None]:
        return self.attempt("own_rename", lambda files: files.rename(self.at(source), self.at(target)))

    def _sweep(self) -> None:
        """Delete, once, the incomplete files of earlier leaders: those leaders are fenced and cannot complete them."""
        # They go with the folder of their leader: a store hides files on their way.
        if self._swept:
            return
        self._swept = True
        with suppress(StoreError):  # leftovers do no harm
            for entry in self.list(STAGED):
                if entry.name != f"{self.leader.epoch}":
                    self.delete(f"{STAGED}/{entry.name}")

    def _checked(self, name: str, operation: Callable[[Files], T], timeouts: int = 1) -> T:
        try:
            return self._call(name, operation, timeouts)
        except NotFound:
            self.check()
            raise

    def _call(self, name: str, operation: Callable[[Files], T], timeouts: int = 1) -> T:
        return self._files.call(name, operation, timeouts * self._timeout)

    def _fenced(self) -> Fenced:
        return Fenced(f"Epoch {self.leader.epoch} of job {self.job!r} is over: another leader has taken its place.")


def _timeouts(most: int) -> int:
    """Return the call time-outs for so many bytes: one more for each further :data:`MAX_BYTES`."""
    return FILE_TIMEOUTS + max(0, most - 1) // MAX_BYTES
