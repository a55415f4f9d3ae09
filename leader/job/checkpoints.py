"""Checkpoints: a job's counter of checkpoint ids, and the newest completed checkpoints of each query, for its leader.

Every change renames an entry from the name last seen to a name that never existed before, below a directory that the
next leader renames away. So every change is a compare-and-swap, and fenced. To add a checkpoint, the query's oldest
entry is renamed to the newest: that adds one and drops one in one step. Only the leader writes. A read is one list.

A change counts only when it is acknowledged, because a NameNode lists changes that its journal may lose. A checkpoint
without an acknowledgement is renamed once more, to a name that says the same. See decision 18.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from leader.errors import InvalidName
from leader.job.fenced_directory import FencedDirectory
from leader.layout import names
from leader.layout.checkpoint import MAX_ID, NOTHING, Checkpoint, CheckpointEntry, Metadata, fit
from leader.layout.checkpoint_list import CheckpointList, parse
from leader.layout.checkpoint_state import CheckpointState
from leader.layout.names import CHECKPOINTS, RETAINED
from leader.observer import Observer
from store.clock import BOOT_CLOCK, now
from store.errors import AlreadyExists, NotFound, NotSent, NotWritable
from store.outcome import Outcome

ATTEMPTS = 4  # tries of one change whose outcome stays unknown, each within the call time-out
RETRY_S = 0.5  # pause between two tries to hand out an id
CALL = "checkpoint"  # name of a change in messages and metrics; a read is called `checkpoints`
MOST_QUERIES = 256  # of one job. With more, their names change at each start: entries would pile up


@dataclass(frozen=True, slots=True)
class IdHandedOut:
    """A call that began at ``started`` has handed out a checkpoint id."""

    started: float
    epoch: int
    id: int


@dataclass(frozen=True, slots=True)
class BatchPublished:
    """A call that began at ``started`` has published that a query's batch is complete."""

    started: float
    epoch: int
    query: str
    batch: int


class Checkpoints:
    """The checkpoints of a job, for its leader; safe to use from several threads.

    Every method also raises :class:`leader.errors.Unreadable` if the store holds a name that is neither a checkpoint's
    nor the counter's.
    """

    def __init__(
        self,
        directory: FencedDirectory,
        changed: Callable[[CheckpointState], None] = lambda _: None,
        retained: int = RETAINED,
        observer: Observer | None = None,
        patience: float = 0.0,
    ) -> None:
        """Connect to nothing yet.

        Args:
            directory: the leader directory.
            changed: called with the checkpoints after every publication, to mirror them in ZooKeeper.
            retained: completed checkpoints to keep of each query, at least 1.
            observer: learns of each id handed out and each batch published, but not of errors.
            patience: seconds for which :meth:`next` retries while no NameNode is active.
        """
        self._patience = patience
        self._changed = changed
        self._directory = directory
        self._most = retained
        self._observer = observer
        self._lock = threading.Lock()
        self._known: CheckpointList | None = None
        self._counted = 0  # last number that the counter was set to with an acknowledgement
        self._acknowledged: dict[str, CheckpointEntry] = {}
        self._doubted: dict[str, CheckpointEntry] = {}  # by query: the last, unless an acknowledged one followed

    def state(self) -> CheckpointState:
        """Read the counter and each query's newest checkpoint from the file system."""
        return self._list().state(self._directory.job, self._directory.leader)

    def latest(self, query: str) -> Checkpoint | None:
        """Read a query's newest checkpoint from the file system; None if there is none."""
        return self.state().latest.get(query)

    def retained(self, query: str) -> list[Checkpoint]:
        """Read all retained checkpoints of a query from the file system, the newest last."""
        return self._list().retained(query)

    def next(self) -> int:
        """Hand out the next checkpoint id: 1 at first, then one higher every time. No id comes twice.

        Only an acknowledged rename of the counter hands out an id. If the answer is lost, that id is skipped.

        Raises:
            InvalidName: somebody has damaged the counter: there is no name for a higher id.
        """
        started = now()
        while True:
            try:
                with self._lock:
                    number = self._take()
                    self._tell()
                break
            except (NotSent, NotWritable):  # it was not handed out
                if now() >= started + self._patience:
                    raise
            BOOT_CLOCK.sleep(RETRY_S)
        if self._observer is not None:
            self._observer(self._directory.job, IdHandedOut(started, self._directory.leader.epoch, number))
        return number

    def set(self, number: int) -> int:
        """Continue the ids at a number, and return the next id: that number, or a higher one after an unknown outcome.

        Raises:
            InvalidName: the number is not an id, or it was handed out before and must not come twice.
        """
        if not 1 <= number <= MAX_ID:
            raise InvalidName(f"{number} is not a checkpoint id: ids are from 1 to {MAX_ID:,}.")
        with self._lock:
            before = self._peek().next_id
            if number < before:
                raise InvalidName(
                    f"The checkpoint ids of job {self._directory.job!r} cannot go back to {number}: the next is "
                    f"{before}, and none is handed out twice."
                )
            if number > before or before != self._counted:
                self._move(lambda found: max(number, found + 1))
                self._tell()
            return self._counted

    def completed(self, query: str, batch: int, metadata: Metadata = NOTHING) -> CheckpointState:
        """Publish that a query's batch is complete, under an id of its own; return the newest of each query.

        A batch older than the published one changes nothing. The same batch gains the metadata if it had none.

        Args:
            query: name of the query.
            batch: Spark's id of the batch.
            metadata: more about the batch; shortened to the length that a name can hold.

        Raises:
            InvalidName: the query's name or a number cannot be stored, or the job has too many queries.
        """
        started = now()
        wanted = Checkpoint(query, batch, MAX_ID, metadata)
        fit(wanted)  # refused before anything is read
        with self._lock:
            state = self._publish(wanted)
        if self._observer is not None:
            self._observer(self._directory.job, BatchPublished(started, self._directory.leader.epoch, query, batch))
        return state

    def _publish(self, wanted: Checkpoint) -> CheckpointState:
        query = wanted.query
        for last in _attempts():
            entry = self._intend(self._peek(), wanted)
            if entry is None:
                return self._tell()  # a new leader's mirror in ZooKeeper begins with what it found
            found = self._fresh()
            gives_way = self._gives_way(found, entry)
            changed = self._make(entry.name) if gives_way is None else self._rename(gives_way.name, entry.name)
            if changed.done:
                self._doubted.pop(query, None)
                self._acknowledged[query] = entry
                kept = [each for each in found.entries.get(query, ()) if each != gives_way]
                self._known = found.replaced(query, self._drop([*kept, entry]))
                return self._tell()
            self._doubted[query] = entry
            self._judge(changed, last=last)
        raise AssertionError("the last attempt returns or raises")

    # --- what to write

    def _intend(self, found: CheckpointList, wanted: Checkpoint) -> CheckpointEntry | None:
        """Return an unused entry, never tried before; None if an acknowledged entry already says the same."""
        newest, doubted = found.newest(wanted.query), self._doubted.get(wanted.query)
        if newest is not None and newest.checkpoint.batch >= wanted.batch:
            says = newest.checkpoint
        elif doubted is not None and doubted.checkpoint.batch == wanted.batch:
            says = doubted.checkpoint  # a late execution makes this same checkpoint
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
                f"Job {self._directory.job!r} has checkpoints of {MOST_QUERIES} queries, and those of {query!r} are "
                "too many: give queries names that stay the same, or remove old entries from "
                f"{self._directory.at(CHECKPOINTS)}."
            )

    def _gives_way(self, found: CheckpointList, entry: CheckpointEntry) -> CheckpointEntry | None:
        """Return the entry to rename: that of the same checkpoint, or the oldest if all places are taken; else None."""
        entries = found.entries.get(entry.checkpoint.query, ())
        if entries and entries[-1].checkpoint.order == entry.checkpoint.order:
            return entries[-1]
        return entries[0] if len(entries) >= self._most else None

    def _drop(self, entries: list[CheckpointEntry]) -> list[CheckpointEntry]:
        """Delete the oldest surplus entries, left by a lower limit or by a change that was executed late."""
        # An entry that cannot be deleted now is deleted with a later batch; the new checkpoint counts all the same.
        while len(entries) > self._most:
            dropped = self._delete(entries[0].name)
            if not dropped.done and not isinstance(dropped.error, NotFound):
                break
            entries = entries[1:]
        return entries

    # --- the counter

    def _take(self) -> int:
        """Move the counter by one, and return its former number."""
        return self._move(lambda found: found + 1)

    def _move(self, target: Callable[[int], int]) -> int:
        """Rename the counter from the number that is found to its target, and return the former number."""
        for last in _attempts():
            found = self._fresh()
            old, new = found.next_id, target(found.next_id)
            if new > MAX_ID:  # could not be read back, and the ids would start at zero
                raise InvalidName(
                    f"The checkpoint ids of job {self._directory.job!r} end at {MAX_ID:,}: rename its counter by hand."
                )
            moved = self._rename(f"next={old}", f"next={new}")
            if moved.done:
                self._known = replace(found, next_id=new)
                self._counted = new
                return old
            self._judge(moved, last=last)
        raise AssertionError("the last attempt returns or raises")

    # --- what is known

    def _list(self) -> CheckpointList:
        with self._lock:
            self._known = None
            return self._peek()

    def _peek(self) -> CheckpointList:
        """Return what is known, or read it."""
        if self._known is None:
            self._known = self._read()
        return self._known

    def _fresh(self) -> CheckpointList:
        """Return what is known, or read it; it counts as unknown until the change has succeeded."""
        found, self._known = self._peek(), None
        return found

    def _tell(self) -> CheckpointState:
        state = self._peek().state(self._directory.job, self._directory.leader)
        self._changed(state)
        return state

    # --- calls of the store

    def _read(self) -> CheckpointList:
        entries = self._directory.list(CHECKPOINTS, "checkpoints")
        return parse((entry.name for entry in entries), self._directory.job, self._directory.leader)

    def _make(self, name: str) -> Outcome[None]:
        return self._directory.attempt(CALL, lambda files: files.make_directory(self._at(name)))

    def _rename(self, source: str, target: str) -> Outcome[None]:
        return self._directory.attempt(CALL, lambda files: files.rename(self._at(source), self._at(target)))

    def _delete(self, name: str) -> Outcome[None]:
        return self._directory.attempt(CALL, lambda files: files.delete(self._at(name)))

    def _at(self, name: str) -> str:
        return self._directory.at(f"{CHECKPOINTS}/{name}")

    def _judge(self, outcome: Outcome[None], *, last: bool) -> None:
        """Raise unless another try makes sense: another process moved the name, or the outcome is unknown."""
        retry = outcome.unknown or isinstance(outcome.error, NotFound | AlreadyExists)
        if not retry or last:
            self._read()  # raises Fenced if another leader has taken over
            outcome.result()


def _attempts() -> Iterator[bool]:
    """Yield once for each attempt; True for the last."""
    return (number == ATTEMPTS for number in range(1, ATTEMPTS + 1))
