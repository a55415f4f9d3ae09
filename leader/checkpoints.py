"""The leader's hand on its job's checkpoints: the id counter, and the newest completed ones of each query.

Every change is a rename from a name last seen to one that was never there before, below a directory that a new leader
renames away: so it is a compare-and-swap, and fenced. A query's oldest checkpoint is renamed to its newest: that adds
and drops in one step. One process writes, the leader; reads are one list. What is only seen counts for nothing: a
NameNode lists what its journal may never have. A checkpoint that is there, and that this hand has no acknowledgement
of, is renamed once more, to a name that says the same. See decision 18.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

from leader import names
from leader.checkpoint import MAX_ID, NOTHING, Checkpoint, CheckpointEntry, Metadata, fit
from leader.checkpoint_folder import CheckpointFolder, attempts
from leader.checkpoint_list import CheckpointList
from leader.checkpoint_state import CheckpointState
from leader.errors import InvalidName
from leader.names import RETAINED, LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import NotFound

MOST_QUERIES = 256
"""Queries of one job; more mean that names are made up anew each time, and nothing here would ever be forgotten."""


class Checkpoints:
    """Safe to use from several threads."""

    def __init__(
        self,
        files: BoundedFiles,
        job: str,
        directory: LeaderDirectory,
        call_timeout: float,
        changed: Callable[[CheckpointState], None] = lambda _: None,
        retained: int = RETAINED,
    ) -> None:
        """Touch nothing yet.

        Args:
            files: closed by whoever opened it.
            job: the job's name.
            directory: the leader directory; once it is another leader's, every change raises ``Fenced``.
            call_timeout: seconds for each store call.
            changed: called with the checkpoints after every publication, for the copy in ZooKeeper.
            retained: completed checkpoints of each query that are kept, at least 1.
        """
        self._changed = changed
        self._folder = CheckpointFolder(files, job, directory, call_timeout)
        self._most = retained
        self._lock = threading.Lock()
        self._known: CheckpointList | None = None
        self._counted = 0
        """What the counter was last set to with an acknowledgement."""
        self._acknowledged: dict[str, CheckpointEntry] = {}
        self._doubted: dict[str, CheckpointEntry] = {}
        """What was last written of a query without an acknowledgement, if anything was since the last of those."""

    def state(self) -> CheckpointState:
        """Read the counter and each query's newest checkpoint from the file system.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
            Unreadable: there is a name that is neither a checkpoint's nor the counter's.
        """
        return self._list().state(self._folder.job, self._folder.directory)

    def latest(self, query: str) -> Checkpoint | None:
        """Read a query's newest checkpoint from the file system; None if there is none. Raises as :meth:`state`."""
        return self.state().latest.get(query)

    def retained(self, query: str) -> list[Checkpoint]:
        """Read all that are kept of a query from the file system, the newest one last. Raises as :meth:`state`."""
        return self._list().retained(query)

    def next(self) -> int:
        """Hand out the next checkpoint id: 1 at first, then one higher every time, never one twice.

        Only a rename that is known to have been ours hands out an id: where the answer is lost, the id is skipped.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: there is no name for a higher id; somebody has damaged the counter.
            StoreError: it stayed unknown whether the counter moved; no id was handed out.
            Unreadable: as in :meth:`state`.
        """
        with self._lock:
            number = self._take()
            self._tell()
            return number

    def set(self, number: int) -> int:
        """Have ids go on from that number, and return the one that will be next.

        It is that number, or a higher one if it was not known whether the counter stood there already.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: it is no id, or ids were handed out up to there, which must not come twice.
            StoreError: it stayed unknown whether the counter moved.
            Unreadable: as in :meth:`state`.
        """
        if not 1 <= number <= MAX_ID:
            raise InvalidName(f"{number} is not a checkpoint id: those are from 1 to {MAX_ID:,}.")
        with self._lock:
            before = self._peek().next_id
            if number < before:
                raise InvalidName(
                    f"The checkpoint ids of job {self._folder.job!r} cannot go back to {number}: the next is {before}, "
                    "and none is handed out twice."
                )
            if number > before or before != self._counted:
                self._move(lambda found: max(number, found + 1))
                self._tell()
            return self._counted

    def completed(self, query: str, batch: int, metadata: Metadata = NOTHING) -> CheckpointState:
        """Publish that a query's batch is complete, under an id of its own; return the newest of each query.

        An older batch than the published one changes nothing; of the same one metadata are added if there were none.

        Args:
            query: its name.
            batch: Spark's id of the batch.
            metadata: what else is known; it is shortened to what a name can hold.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: the query's name or a number cannot be stored, or it is a query too many.
            StoreError: it stayed unknown whether it was published.
            Unreadable: as in :meth:`state`.
        """
        wanted = Checkpoint(query, batch, MAX_ID, metadata)
        fit(wanted)  # refused before anything is read
        with self._lock:
            for last in attempts():
                entry = self._intend(self._peek(), wanted)
                if entry is None:
                    return self._tell()  # a new leader's copy in ZooKeeper begins with what it found
                found = self._fresh()
                gives_way = self._gives_way(found, entry)
                changed = (
                    self._folder.make(entry.name)
                    if gives_way is None
                    else self._folder.rename(gives_way.name, entry.name)
                )
                if changed.done:
                    self._doubted.pop(query, None)
                    self._acknowledged[query] = entry
                    kept = [each for each in found.entries.get(query, ()) if each != gives_way]
                    self._known = found.replaced(query, self._drop([*kept, entry]))
                    return self._tell()
                self._doubted[query] = entry
                self._folder.judge(changed, last=last)
            raise AssertionError("the last attempt returns or raises")

    # --- what to write

    def _intend(self, found: CheckpointList, wanted: Checkpoint) -> CheckpointEntry | None:
        """An entry that neither is there nor was tried before; None if what is there says it, and is sure to stay."""
        newest, doubted = found.newest(wanted.query), self._doubted.get(wanted.query)
        if newest is not None and newest.checkpoint.batch >= wanted.batch:
            says = newest.checkpoint
        elif doubted is not None and doubted.checkpoint.batch == wanted.batch:
            says = doubted.checkpoint  # it may still be executed: then it is the same one, and not another
        else:
            self._check_room(found, wanted.query)
            return CheckpointEntry(fit(replace(wanted, id=self._take())))
        if says.batch == wanted.batch and says.metadata == NOTHING:
            says = fit(replace(says, metadata=wanted.metadata))
        if newest is not None and newest == self._acknowledged.get(wanted.query) and newest.checkpoint == says:
            return None
        tried = [each.writing for each in (newest, doubted) if each and each.checkpoint.order == says.order]
        return CheckpointEntry(says, max(tried) % names.MAX_WRITING + 1)

    def _check_room(self, found: CheckpointList, query: str) -> None:
        if query not in found.entries and len(found.entries) >= MOST_QUERIES:
            raise InvalidName(
                f"Job {self._folder.job!r} has checkpoints of {MOST_QUERIES} queries, and those of {query!r} are too "
                f"many: give queries names that stay the same, or remove old entries from {self._folder.path}."
            )

    def _gives_way(self, found: CheckpointList, entry: CheckpointEntry) -> CheckpointEntry | None:
        """The entry to rename: the one of the same checkpoint, or the oldest, if there are as many as are kept."""
        entries = found.entries.get(entry.checkpoint.query, ())
        if entries and entries[-1].checkpoint.order == entry.checkpoint.order:
            return entries[-1]
        return entries[0] if len(entries) >= self._most else None

    def _drop(self, entries: list[CheckpointEntry]) -> list[CheckpointEntry]:
        """Delete the oldest that are too many: fewer are kept than before, or a change was executed late.

        What cannot be deleted now is tried again with the next batch; what is new counts all the same.
        """
        while len(entries) > self._most:
            dropped = self._folder.delete(entries[0].name)
            if not dropped.done and not isinstance(dropped.error, NotFound):
                break
            entries = entries[1:]
        return entries

    # --- the counter

    def _take(self) -> int:
        """Move the counter by one, and return the id that it stood at."""
        return self._move(lambda found: found + 1)

    def _move(self, target: Callable[[int], int]) -> int:
        """Rename the counter from the number that is found to its target, and return the former."""
        for last in attempts():
            found = self._fresh()
            old, new = found.next_id, target(found.next_id)
            if new > MAX_ID:  # could not be read back: the ids would begin anew
                raise InvalidName(
                    f"The checkpoint ids of job {self._folder.job!r} end at {MAX_ID:,}: mend its counter."
                )
            moved = self._folder.rename(f"next={old}", f"next={new}")
            if moved.done:
                self._known = replace(found, next_id=new)
                self._counted = new
                return old
            self._folder.judge(moved, last=last)
        raise AssertionError("the last attempt returns or raises")

    # --- what is known

    def _list(self) -> CheckpointList:
        with self._lock:
            self._known = None
            return self._peek()

    def _peek(self) -> CheckpointList:
        """What is known, or else read."""
        if self._known is None:
            self._known = self._folder.read()
        return self._known

    def _fresh(self) -> CheckpointList:
        """What is known, or else read; it counts as unknown from now on until the change has succeeded."""
        found, self._known = self._peek(), None
        return found

    def _tell(self) -> CheckpointState:
        state = self._peek().state(self._folder.job, self._folder.directory)
        self._changed(state)
        return state
