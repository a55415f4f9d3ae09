"""FencedRename: moves files from a leader directory to where readers expect them, and refuses a fenced driver.

Spark creates missing parents, so a fenced driver can bring its old leader directory back to life, with its staged
files. It cannot bring back what only the protocol creates: the record, and a folder that was created here without
parents. So every published file passes through such a folder first. The next leader's claim removes it for good.
"""

import os
import posixpath
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from leader.errors import InvalidName, InvalidSettings
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import (
    BLOBS,
    CHECKPOINTS,
    EXCEPTIONS,
    GRAPH,
    HISTORY,
    OUT,
    RECORD,
    RESULTS,
    REWINDING,
    SPARK,
    STAGED,
    STATUS,
    TRASH,
    UNGUARDED,
    LeaderDirectory,
)
from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, now
from store.errors import AlreadyExists, Invalid, NotEmpty, NotFound, NotSent, NotWritable, StoreError, Unknown
from store.files import Entry, Files
from store.open import normal, open_files
from store.traits import traits
from store.uris import split

T = TypeVar("T")

ATTEMPTS = 5  # tries of one call whose outcome is unknown

PATIENCE_S = 30.0
"""For so long a call is repeated that the store cannot take now: while NameNodes change their roles, none is active."""

CALL_TIMEOUT_S = 5.0
"""Time for one call. A driver can wait that long, because nothing here decides whether it still leads."""

RETRY_S = 0.5  # pause between two tries
MOST_PARENTS = 10_000  # folders outside that are remembered as being there

_OWN_FOLDERS = {BLOBS, CHECKPOINTS, EXCEPTIONS, GRAPH, HISTORY, OUT, RECORD, RESULTS, REWINDING, SPARK, STAGED, TRASH}


class FencedHome(Protocol):
    """The part of a :class:`ha.leadership.leadership.Leadership` that a :class:`FencedRename` needs."""

    job: str
    epoch: int
    session_id: str
    directory: str

    def open_files(self, uri: str) -> BoundedFiles:
        """Open another root; its calls are counted with those of the leadership's own stores."""


@dataclass
class LeaderFiles:
    """The same of a leader that has no :class:`ha.leadership.leadership.Leadership`: a sidecar."""

    job: str
    epoch: int
    session_id: str
    directory: str
    open_files: Callable[[str], BoundedFiles]


class FencedRename:
    """Renames in one file system: within a leader directory, and from there to the outside.

    Its methods raise :class:`leader.errors.Fenced` once another leader has taken over, and
    :class:`store.errors.StoreError` if the store refuses a call or its outcome stays unknown after several tries.

    Attributes:
        root: URI of a directory that contains both ends; all paths are relative to it.
        inside: path of the leader directory.
        outside: path of the target.
    """

    def __init__(self, leadership: FencedHome, outside: str) -> None:
        """Connect to nothing yet."""
        # `leadership`: owner of the leader directory. `outside`: URI of the target; renames may lead to it, beside it
        # and below it.
        # InvalidSettings: no rename leads to the target: it is in another file system, or in a job's directory.
        self.job, self._epoch = leadership.job, leadership.epoch
        self.root, self.inside, self.outside = common_root(leadership.directory, outside)
        self._files = leadership.open_files(self.root)
        self._parents: set[str] = set()
        leader = LeaderDirectory(leadership.epoch, leadership.session_id)
        self._directory = FencedDirectory(self._files, leadership.job, leader, CALL_TIMEOUT_S, self.inside)

    def do(self, operation: Callable[[Files], T]) -> T:
        """Call the store, and repeat the call if it gives no answer; only for idempotent operations."""
        return patiently(lambda: self._files.call("output", operation, CALL_TIMEOUT_S))

    def names(self, path: str) -> list[str]:
        """Return the names of the entries of a folder, sorted; none if there is no such folder."""
        return [entry.name for entry in self.list(path)]

    def list(self, path: str) -> list[Entry]:
        """Return the entries of a folder, sorted by name; none if there is no such folder."""
        try:
            return sorted(self.do(lambda files: files.list(path)), key=lambda entry: entry.name)
        except NotFound:
            self.check()
            return []

    def check(self) -> None:
        """Raise ``Fenced`` unless the leader directory still exists with its record."""
        patiently(self._directory.check)

    def make_folder(self, path: str) -> None:
        """Create a folder, whoever has created the directory that it is in."""
        self.do(lambda files: files.make_directory(path))

    def make_folders(self, *paths: str) -> None:
        """Create folders in the leader directory; a directory that Spark brought back to life has none of them.

        The check comes last. It proves that the directory was the true one when the folders were created.
        """
        with suppress(NotFound):
            for path in paths:
                self.make_folder(path)
        self.check()

    def move(self, source: str, target: str) -> bool:
        """Rename within the leader directory or out of it; return False if the target existed before.

        A missing folder outside is created. It returns True only when no crash of a NameNode can undo the move.
        """
        # NotFound: the source does not exist.
        outside = not target.startswith(f"{self.inside}/")
        parent_known = outside and not self._make_parent(posixpath.dirname(target))
        doubtful, unknown, end = False, 0, now() + PATIENCE_S
        while True:
            error = self._files.outcome("output", lambda files: files.rename(source, target), CALL_TIMEOUT_S).error
            match error:
                case None:
                    return True
                case AlreadyExists():  # the source exists, because a store reports a missing source first
                    return False
                case NotFound() if doubtful and unknown < ATTEMPTS and self.exists(target):
                    self.acknowledge()
                    if self.exists(target):
                        return True
                    unknown += 1  # the NameNode has forgotten what it showed
                case NotFound() if parent_known:  # somebody may have deleted it
                    self.check()
                    self._parents.clear()
                    self._make_parent(posixpath.dirname(target))
                    parent_known = False
                case NotFound():
                    self.check()
                    raise error
                case Unknown() if unknown < ATTEMPTS:
                    doubtful, unknown = True, unknown + 1
                    _pause()
                case NotSent() | NotWritable() if now() < end:
                    _pause()
                case _:
                    raise error

    def acknowledge(self) -> None:
        """Have the store acknowledge a change. A crash of it undoes nothing that it showed before and shows after."""
        own = f"{self.inside}/{STAGED}/{self._epoch}"  # the next leader sweeps it away
        self.make_folders(f"{self.inside}/{STAGED}", own, folder := f"{own}/{uuid.uuid4().hex}")
        with suppress(StoreError):
            self.remove(folder)

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""
        with suppress(Invalid):  # a file
            try:
                self.do(lambda files: files.list(path))
            except NotFound:
                return False
        return True

    def _make_parent(self, folder: str) -> bool:
        """Create a folder outside, and those above it that are missing; False, without a call, if it is known."""
        if not folder or folder in self._parents:
            return False
        try:
            with suppress(AlreadyExists):
                self.make_folder(folder)
        except NotFound:
            self.do(lambda files: make_parents(files, folder))
        if len(self._parents) >= MOST_PARENTS:
            self._parents.clear()
        self._parents.add(folder)
        return True

    def remove(self, path: str) -> None:
        """Delete an entry with everything below it; no error if there is none."""
        with suppress(NotFound):
            self.do(lambda files: files.delete(path, recursive=True))

    def sweep(self) -> None:
        """Delete directories of earlier epochs that fenced drivers have brought back to life."""
        self.check()
        job = posixpath.dirname(self.inside)
        for entry in self.list(job):
            found = LeaderDirectory.parse(entry.name)
            if found is not None and found.epoch < self._epoch:  # no rename turns it into a leader directory again
                self.remove(f"{job}/{entry.name}")

    def publish(self, staged: str, folder: str) -> bool:
        """Move a file or directory to the target for good; return False, and drop it, if the target existed before."""
        # `staged`: its path, relative to the leader directory. `folder`: an unused path, also relative. After a crash
        # the next leader sweeps away what stays there.
        # NotFound: there is nothing at ``staged``.
        folder = f"{self.inside}/{folder}"
        self.make_folders(folder)
        self.move(f"{self.inside}/{staged}", f"{folder}/it")
        if not self.move(f"{folder}/it", self.outside):
            with suppress(StoreError):
                self.remove(folder)
            return False
        try:
            # A NameNode may list changes that its successor never heard of. Deleting the empty folder proves the move.
            self.do(lambda files: files.delete(folder))
        except NotFound:
            self.check()
        except NotEmpty as error:
            raise Unknown(f"{self.outside!r} was seen, but does not exist any more: publish it again.") from error
        return True

    def close(self) -> None:
        """Close the file system."""
        self._files.close()


def make_parents(files: Files, path: str) -> None:
    """Create a directory and every missing one above it."""
    parts = path.split("/")
    for end in range(1, len(parts) + 1):
        with suppress(AlreadyExists):
            files.make_directory("/".join(parts[:end]))


def staged_path(leadership: FencedHome, staged: str) -> str:
    """Return the path of staged data, relative to the leader directory."""
    # InvalidName: the URI is not below the leader directory, or belongs to the protocol.
    relative = staged.removeprefix(f"{leadership.directory}/")
    parts = relative.split("/")
    if (
        relative == staged
        or {"", ".", ".."} & set(parts)
        or parts[0] in _OWN_FOLDERS
        or parts[0].startswith((STATUS, UNGUARDED))
    ):
        raise InvalidName(
            f"{staged!r} cannot be published: stage it at leadership.path('work/...') and give that URI; "
            f"{', '.join(sorted(_OWN_FOLDERS))} are the protocol's own folders."
        )
    return relative


def patiently(call: Callable[[], T]) -> T:
    """Call the store, again if the outcome is unknown, and for a while if it cannot take the call."""
    unknown, end = 0, now() + PATIENCE_S
    while True:
        try:
            return call()
        except Unknown:
            unknown += 1
            if unknown == ATTEMPTS:
                raise
        except (NotSent, NotWritable):
            if now() >= end:
                raise
        _pause()


def _pause() -> None:
    BOOT_CLOCK.sleep(RETRY_S)


def common_root(inside: str, outside: str) -> tuple[str, str, str]:
    """Return a root that contains both, and their paths below it. InvalidSettings: there is none."""
    try:
        ours, theirs = split(inside), split(normal(outside) if outside.startswith("viewfs:") else outside)
    except Invalid as error:
        raise InvalidSettings(f"output: {error}") from error
    if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
        raise InvalidSettings(
            f"The output {outside!r} is not in the file system of {inside!r}: choose a directory that is, "
            "because a batch gets there by a rename."
        )
    paths = [posixpath.normpath(parts.path) for parts in (ours, theirs)]
    top = posixpath.commonpath(paths) if traits(inside).local else "/"
    if top in paths or not theirs.path.startswith("/") or paths[1].startswith(f"{posixpath.dirname(paths[0])}/"):
        raise InvalidSettings(f"The output {outside!r} cannot be there: choose a directory beside those of the jobs.")
    try:
        open_files(f"{ours.scheme}://{ours.netloc}{top}").close()
    except Invalid as error:
        raise InvalidSettings(f"output: {error}") from error
    below = [os.path.relpath(path, top) for path in paths]
    return f"{ours.scheme}://{ours.netloc}{top}", below[0], below[1]
