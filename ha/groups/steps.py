"""Steps: the hand-over of a job between two roots, each step one rename; any process can look and go on.

    seal     <target>: moving/tree             becomes arriving~<n>~<leader>   the copy is complete, and never written
    fence    <source>: <old leader directory>  becomes moved~<n>~<target>      no leader there, now or later
    check    both have the same files, sizes and names                         else back
    decide   <target>: arriving~<n>~<leader>   becomes <leader>                the job lies at the target
    back     <target>: arriving~<n>~<leader>   becomes undone~<n>~<leader>     that never happens
             <source>: moved~<n>~<target>      becomes a leader directory      so the job lies at the source again

A step is taken after the one before it was acknowledged. A step of another process is only seen, and a NameNode may
forget what it shows, so that step is repeated first, under the next sequence. See decision 73.
"""

import uuid
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from ha.checkpoints.trees import Tree
from ha.groups.marks import COPYING, CopyMark, arrival, arrived, copies_in, is_scratch
from ha.groups.mirror import check_same
from ha.placement.finding import holds
from ha.placement.place import Pointer, pointer_in
from leader.layout.names import OUT, RECORD, LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import Conflict, NotFound
from store.files import Entry, Files

CALL_TIMEOUT_S = 20.0
REST_S = 30 * 60.0  # a job that has moved stays for so long, by the clock of the NameNode to which it came


class Place(msgspec.Struct, frozen=True):
    """A job's directory at one root."""

    root: str  # its URI
    names: frozenset[str] | None  # of the entries; None if there is no such directory
    leads: bool = False  # whether it holds a leader directory with a lease, so that the job lies here
    # Sequence and time of the newest arrival, in milliseconds of that NameNode's clock; zeros if none.
    arrived: tuple[int, int] = (0, 0)

    @property
    def pointer(self) -> Pointer | None:
        """Where the job went from here."""
        return pointer_in(self.names or ())

    @property
    def copies(self) -> list[CopyMark]:
        """The copies of a job that was on its way here, the newest first."""
        return copies_in(self.names or ())


class Seen(msgspec.Struct, frozen=True):
    """A job, as all roots of its group show it."""

    places: list[Place]  # of each root

    @property
    def at(self) -> Place | None:
        """Where it lies; None if it is on its way, or does not exist."""
        return next((each for each in self.places if each.leads), None)

    @property
    def left(self) -> Place | None:
        """The root that a job on its way has left: the one with the newest pointer. None if it lies somewhere."""
        pointers = [each for each in self.places if each.pointer is not None]
        if self.at is not None or not pointers:
            return None
        return max(pointers, key=lambda each: each.pointer.sequence if each.pointer else 0)

    @property
    def next(self) -> int:
        """A sequence that no move of this job has had."""
        known = [0]
        for each in self.places:
            known += [each.arrived[0], each.pointer.sequence if each.pointer else 0]
            known += [copy.sequence for copy in each.copies]
        return max(known) + 1

    def of(self, root: str) -> Place:
        """Return the job's place at a root."""
        return next(each for each in self.places if each.root == root)


def look(roots: Mapping[str, BoundedFiles], job: str) -> Seen:
    """Look at all roots: two lists at most of each."""
    return Seen([_place(root, files, job) for root, files in roots.items()])


def _place(root: str, files: BoundedFiles, job: str) -> Place:
    try:
        entries: list[Entry] = files.call("move", lambda each: each.list(job), CALL_TIMEOUT_S)
    except NotFound:
        return Place(root, None)
    names = frozenset(each.name for each in entries)
    arrivals = [(arrival(each.name), each.modified_ms) for each in entries if arrival(each.name)]
    leads = files.call("move", lambda each: holds(each, job, names), CALL_TIMEOUT_S)
    return Place(root, names, leads, max(arrivals, default=(0, 0)))


class Handover:
    """The steps of one job's move between two roots. ``NotFound``: another process has taken one."""

    def __init__(self, roots: Mapping[str, BoundedFiles], job: str, source: str, target: str) -> None:
        self.source = source
        self._source, self._target, self._job, self._to = roots[source], roots[target], job, target

    def prepare(self) -> None:
        """Make the job's directory at the target, for the copy."""
        self._target.call("move", lambda files: files.make_root(), CALL_TIMEOUT_S)
        self._target.call("move", lambda files: files.make_directory(self._job), CALL_TIMEOUT_S)

    def seal(self, sequence: int, leader: LeaderDirectory) -> CopyMark:
        """Name the complete copy, which stays as it is, and record when that was."""
        copy = CopyMark(sequence, False, leader)
        self._make(self._target, arrived(sequence))
        self._rename(self._target, f"{COPYING}/tree", copy.name)
        return copy

    def fence(self, sequence: int, old: LeaderDirectory) -> Pointer:
        """Take the leader directory away from the source; ``NotFound`` if it is another one by now."""
        pointer = Pointer(sequence, self._to)
        self._rename(self._source, old.name, pointer.name)
        return pointer

    def fence_again(self, pointer: Pointer, sequence: int) -> Pointer:
        """Acknowledge a fence that was only seen."""
        again = Pointer(sequence, pointer.root)
        self._rename(self._source, pointer.name, again.name)
        return again

    def decide(self, copy: CopyMark) -> None:
        """Make the copy the job. Only after a fence that was acknowledged to this process."""
        self._rename(self._target, copy.name, copy.leader.name)

    def back(self, pointer: Pointer, sequence: int) -> None:
        """Put the leader directory back, under a new name, when all its copies are revoked."""
        copies = self.revoke_all(sequence)
        epoch = max((each.leader.epoch for each in copies), default=0)
        if not epoch:
            raise Conflict(f"{pointer.root} has no trace of the copy of job {self._job!r}: see decision 73.")
        self._rename(self._source, pointer.name, LeaderDirectory(epoch, f"{uuid.uuid4()}").name)

    def copies(self) -> list[CopyMark]:
        """Return the copies at the target now, the newest first: of a job that was fenced, at least the sealed one."""
        return copies_in(self._list(self._target, ""))

    def revoke_all(self, sequence: int) -> list[CopyMark]:
        """Decide that no copy ever becomes the job; acknowledges that also of those that are seen to be revoked."""
        found = self.copies()
        for each in found:
            self._rename(self._target, each.name, CopyMark(sequence, True, each.leader).name)
        return found

    def check(self, pointer: Pointer, copy: CopyMark) -> None:
        """Raise ``Conflict`` unless the copy has all of the fenced leader directory: somebody has written meanwhile."""
        source, target = f"{self._job}/{pointer.name}", f"{self._job}/{copy.name}"
        if not self.emptied(pointer):
            check_same(Tree(self._source, source), Tree(self._target, target))

    def emptied(self, pointer: Pointer) -> bool:
        """Whether the old leader directory is being deleted: the move was decided, even if a NameNode forgets that."""
        return RECORD not in self._list(self._source, pointer.name)

    def confirm(self) -> None:
        """Have the target acknowledge a change: then it forgets nothing that it has shown before."""
        scratch = f"{COPYING}-{uuid.uuid4().hex}"
        self._make(self._target, scratch)
        self._delete(self._target, scratch)

    def empty(self, pointer: Pointer) -> None:
        """Delete what is in the old leader directory when the job has arrived: only its name is still needed."""
        for each in sorted(self._list(self._source, pointer.name), key=lambda name: name != RECORD):  # it comes first
            self._delete(self._source, f"{pointer.name}/{each}")

    def tidy(self, seen: Place) -> None:
        """Forget earlier moves at the target; when the job has arrived."""
        for name in seen.names or ():
            old = CopyMark.parse(name) or Pointer.parse(name)
            if is_scratch(name) or old is not None or 0 < arrival(name) < seen.arrived[0]:
                self._delete(self._target, name)

    def discard(self) -> None:
        """Delete what moves that were undone have left at the target, but for the names that say so."""
        # A mover that has lost its way may still fence the source: such a name lets anybody put the job back.
        for name in self._list(self._target, ""):
            copy = CopyMark.parse(name)
            if is_scratch(name):
                self._delete(self._target, name)
            elif copy is not None and copy.undone:
                for each in self._list(self._target, name):
                    self._delete(self._target, f"{name}/{each}")

    def _make(self, files: BoundedFiles, name: str) -> None:
        files.call("move", lambda each: each.make_directory(f"{self._job}/{name}"), CALL_TIMEOUT_S)

    def _rename(self, files: BoundedFiles, old: str, new: str) -> None:
        files.call("move", lambda each: each.rename(f"{self._job}/{old}", f"{self._job}/{new}"), CALL_TIMEOUT_S)

    def _list(self, files: BoundedFiles, name: str) -> list[str]:
        path = f"{self._job}/{name}".rstrip("/")
        return [each.name for each in files.call("move", lambda driver: driver.list(path), CALL_TIMEOUT_S)]

    def _delete(self, files: BoundedFiles, name: str) -> None:
        with suppress(NotFound):
            files.call("bulk_delete", lambda each: each.delete(f"{self._job}/{name}", recursive=True), CALL_TIMEOUT_S)


# --- why a job cannot move now: it has moved lately, or no rename would reach where its outputs lie


def time_of(files: BoundedFiles) -> int:
    """Return the time of a root's own clock, in milliseconds since 1970: that of a directory that is made for that."""
    folder = f".time-{uuid.uuid4().hex}"

    def ask(driver: Files) -> int:
        driver.make_directory(folder)
        try:
            driver.make_directory(f"{folder}/now")
            (found,) = driver.list(folder)
        finally:
            driver.delete(folder, recursive=True)
        return found.modified_ms

    return files.call("move", ask, CALL_TIMEOUT_S)


def rest(arrived_ms: int, now_ms: int) -> str:
    """Return how long a job stays that came at that time; empty if it may move."""
    left = REST_S - (now_ms - arrived_ms) / 1000
    return f"it has moved lately, and stays for {left / 60:.0f} min more" if left > 0 else ""


def outputs(files: BoundedFiles, job: str, leader: str) -> list[str]:
    """Return the outputs of a job that publish batches by renames out of its leader directory."""
    try:
        found = files.call("move", lambda driver: driver.list(f"{job}/{leader}/{OUT}"), CALL_TIMEOUT_S)
    except NotFound:
        return []
    return sorted(each.name for each in found if each.is_directory)


def bound(outputs: list[str], source: str, target: str) -> str:
    """Return which output keeps a job on its file system; empty if none does."""
    here, there = (urlsplit(root)[:2] for root in (source, target))
    if not outputs or here == there:
        return ""
    there_is = f"its output {outputs[0]!r} is published by renames on {here[0]}://{here[1]}"
    return f"{there_is}, and none leads there from outside"
