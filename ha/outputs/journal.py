"""Journal: publishes the batches of one output, each once, in whatever process their rows were written.

:class:`ha.spark.Output` and the format ``ha`` both write an attempt below ``staged``, and hand it over with the
names of its files. The journal seals it: one rename takes it to a place where no task can add a file. A second rename
decides it, with a record of its files. Then each of its partitions is moved to its place by one rename, and a last
rename says that the batch is complete: see :mod:`ha.outputs.layout`. A driver that does a batch again finds it decided,
drops its own rows, and moves the rest of what was decided. :mod:`ha.outputs.batch` says whose batches an output
takes. See decisions 17, 36, 51 and 79.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import msgspec

from ha.leadership.fenced_rename import FencedHome, FencedRename, common_root, make_parents
from ha.outputs import layout, neighbours
from ha.outputs.batch import Admission, Batch
from ha.outputs.columns import TYPED, Types, keep_types
from ha.outputs.committing import Committing
from ha.outputs.elsewhere import Elsewhere, Giving, Undecided, nowhere
from ha.outputs.folder import OutputFolder
from ha.outputs.moving import MovedFiles, Moving
from ha.outputs.partition_commit import PartitionCommit, Policy
from ha.outputs.record import TARGET, Record, Target
from ha.program.output_report import DECIDE, MOVE, RECORD, REPORTS
from leader.errors import OutputLost
from leader.layout.names import OUT
from leader.layout.packed_names import written
from store.errors import AlreadyExists, NotFound, StoreError

_log = logging.getLogger("ha")


class Journal:
    """The journal of one output, for the leader that owns it. It settles before its first batch, and after a failure.

    It is safe to use from several threads.

    Attributes:
        staged: URI of the folder below which attempts are written, each as ``<attempt>/rows``.
        renames: lead from the leader directory to the output.
        newest: the newest id that is known to be decided; -1 if none is.
    """

    def __init__(
        self,
        home: FencedHome,  # the leader directory
        uri: str,  # directory in which the batches appear; empty with `elsewhere`
        name: str,
        commit: PartitionCommit | None = None,  # when partitions are committed, and how; None for never
        policies: Mapping[str, Policy] | None = None,  # those that it names, without `success-file`
        renames: FencedRename | None = None,  # lead to that directory, and are closed by their owner; None for its own
        *,
        flat: bool = False,  # whether a partition of a batch is one file beside those of others: `ha output merge`
        files: tuple[str, Sequence[str]] = ("", ()),  # their format, and the columns of partitions: kept for ever
        alone: bool = True,  # whether no other process of this leader publishes to the output
        elsewhere: Elsewhere | None = None,  # what publishes batches that do not appear in a directory
    ) -> None:
        # InvalidSettings: no rename leads to that directory.
        uri = uri if elsewhere is None else nowhere(home.directory, elsewhere)
        self.staged = staged_below(home.directory, uri, name)
        self.renames = self._renames = renames or FencedRename(home, uri)
        self._shared = renames is not None
        self._folder = OutputFolder.of(self._renames, name)
        self._committing = Committing(self._folder, commit, policies or {}, alone=alone) if commit else None
        opening = self._committing.open if self._committing else None
        self._moving = Giving(self._folder, elsewhere) if elsewhere else Moving(self._folder, opening, flat=flat)
        of_kind = (elsewhere.kind, elsewhere.place) if elsewhere else ("", "")
        path = f"{urlsplit(self._renames.root).path.rstrip('/')}/{self._renames.outside}"
        self._target = Target(path, flat, *of_kind, files[0].lower(), tuple(files[1]))
        self._name, self._own = name, ""
        self.newest, self._settled = -1, False
        self._lock = threading.RLock()
        self._admission, self._replayed = Admission(self._folder), 0
        self._types: Types = {}
        self._types_kept = False

    # --- a batch

    def rows(self, attempt: str) -> str:
        """Return the folder in which the rows of an attempt are written, below the root of the renames."""
        return self._folder.at(layout.STAGED, attempt, layout.ROWS)

    @property
    def asks_for_types(self) -> bool:
        """Whether it is to be told of the types of the rows, before the first of them are published."""
        return not self._types and self._target.format in TYPED

    def expect(self, types: Types) -> None:
        """Tell it of the types that this program writes; rows whose types clash with older ones are not published."""
        self._types_kept = self._types_kept and types == self._types
        self._types = types

    def admit(self, batch: Batch) -> bool:
        """Return whether to write a batch: False if it was decided before. It costs nothing if all is settled."""
        # ForeignBatch: the output has batches of another query, or of a later state of this one.
        # OutputLost: files of a decided batch are gone.
        with self._lock:
            if self._settled:
                with suppress(NotFound):  # another journal may have taken the output over
                    return self._admission.is_new(batch, self.newest)
            self.settle(batch=batch)
            return self._admission.is_new(batch, self.newest)

    def publish(self, attempt: str, batch: Batch, wrote: Record, least: int = 0) -> bool:
        """Publish what was written of a batch; returns False, and drops it, if the batch was decided before."""
        # attempt: where that is, below `staged`; a name that is never used again.
        # batch: which one it is; its moment is needed for a partition commit.
        # wrote: the files that belong to it. Tasks that were repeated may add others: those are deleted.
        # least: the lowest id that the batch may have, if it is not decided; later ones go on from there.
        # AlreadyExists: the output has such a batch, and this job did not put it there.
        # Fenced: another leader has taken over. Whatever was published, that leader publishes as well.
        # ForeignBatch: the output has batches of another query, or of a later state of this one.
        # InvalidSettings: a column has another type than in earlier batches.
        # OutputLost: files of the batch are gone.
        # StoreError: it is not known whether the batch was published: write it again.
        with self._turn(attempt, batch):
            sealed = self._sealed(attempt, batch, wrote)
            published = self._admission.is_new(batch, self.newest)
            if published:
                if self._types and not self._types_kept:
                    keep_types(self._folder, self._types)
                    self._types_kept = True
                self._admission.lift(batch.number, least)
                self._publish(sealed, batch, wrote)
            else:
                with suppress(StoreError):  # the next journal that settles drops it
                    self._renames.remove(sealed)
                self._count(batch)
            self._commit(batch)
        return published

    def repeat(self, batch: Batch, rows: int | None = None) -> None:
        """Do what is left of a batch that was decided before and is done again; its rows are dropped and counted."""
        # `rows` is how many there are this time, if that was counted.
        with self._turn("", batch):
            if rows is not None:
                self.compare(batch, self._admission.record_of(batch), rows)
            self._count(batch)
            self._commit(batch)

    def compare(self, batch: Batch, published: Record | None, rows: int) -> None:
        """Say so if a batch has another number of rows than when it was published; one of an unknown number passes."""
        before = None if published is None else published.row_count
        if before not in (None, rows):
            REPORTS.add(self._name, differing=1)
            _log.warning(
                "%s has %d rows in this try, and was published in output %s with %d: what was published stays.",
                _capital(batch), rows, self._name, before,
            )  # fmt: skip

    def _count(self, batch: Batch) -> None:
        REPORTS.add(self._name, replayed=1)
        _log.info("%s is in output %s already: its rows of this try are dropped.", _capital(batch), self._name)
        before, self._replayed = self._replayed, self._replayed + 1
        counted = self._folder.at(f"{layout.REPLAYED}{self._replayed}")
        with suppress(StoreError):  # the count is for people
            if before:
                self._renames.move(self._folder.at(f"{layout.REPLAYED}{before}"), counted)
            else:
                self._renames.make_folders(counted)

    def _commit(self, batch: Batch) -> None:
        """Commit the partitions that are due, if the batch is the newest one: then it is complete."""
        if self._committing and batch.moment and self._admission.id_of(batch) == self.newest:
            self._committing.commit(self.newest, batch.moment)

    @contextmanager
    def _turn(self, attempt: str = "", batch: Batch | None = None) -> Iterator[None]:
        """Have the journal for one thread, settled; what raises has it settle again."""
        with self._lock:
            try:
                if not self._settled:
                    self.settle(attempt, batch)
                self._settled = False  # until all of it has succeeded
                yield
                self._settled = True
            finally:
                REPORTS.show()

    def commit_pending(self) -> int:
        """Commit every partition that is pending, because the input has ended; return how many."""
        # OutputLost: files of a batch are gone.
        if self._committing is None:
            return 0
        with self._turn():
            return self._committing.commit(self.newest, None)

    def abandon(self, attempt: str, number: int) -> bool:
        """Drop an attempt, unless it was decided: then the query's next try completes it. Return whether it was."""
        with self._lock:
            self._settled = False
            decided = self._renames.exists(self._folder.at(layout.ready(self.id_of(number))))
            self._renames.remove(self._folder.at(layout.STAGED, attempt))  # the next journal drops what is sealed
        return decided

    # --- settling

    def settle(self, attempt: str = "", batch: Batch | None = None) -> None:
        """Take the output over: drop everything that is staged except one attempt, and complete the decided batches."""
        # A journal that has settled before finds its own folder gone, and settles again before it decides anything.
        # attempt: that stays.
        # batch: of this attempt; if the output has batches of another query, nothing is taken over for it.
        renames, folder, self._settled = self._renames, self._folder, False
        if not self._target.kind:
            renames.do(lambda files: make_parents(files, renames.outside))
        renames.make_folders(f"{renames.inside}/{OUT}", folder.home)
        names = folder.names()
        neighbours.check(renames, self._name, self._target, names, shared=self._shared)
        self._replayed = max(layout.numbers(layout.REPLAYED, names), default=0)
        self._admission.load(names)
        if batch is not None:
            self._admission.check(batch, lambda: max(self.newest, self._newest_done()))
        self._own = self._admission.own = self._taken(names)
        renames.make_folders(*map(folder.at, (layout.STAGED, layout.READY, layout.DONE)))
        renames.sweep()
        self._drop_staged(attempt)  # so that a late rename of it finds nothing
        if self._committing:
            self._committing.take_over()  # and then it looks for decided batches
        if decided := folder.ids(layout.READY):
            renames.acknowledge()  # a NameNode may forget a decision that it shows
            decided = folder.ids(layout.READY)
        folder.keep(folder.home, written(TARGET, self._target))
        if self._committing:
            self._committing.load()
        self.newest = max(self.newest, self._newest_done())
        for batch_id in decided:
            self._finish(batch_id)
        self._settled = True

    def _drop_staged(self, but: str = "") -> None:
        """Drop what tasks have written and nobody has sealed, except one attempt."""
        for name in self._folder.names(layout.STAGED):
            if name != but:
                self._renames.remove(self._folder.at(layout.STAGED, name))

    def _finish(self, batch_id: int) -> None:
        """Complete a batch that was decided, perhaps by an earlier leader; its query does one again that is undone."""
        try:
            self._counted(lambda: self._moving.finish(batch_id))
        except Undecided as error:
            _log.warning("%s", error)
        else:
            self.newest = max(self.newest, batch_id)

    def id_of(self, number: int) -> int:
        """Return the id of the present query's batch with this number; of its first part, if it is written in parts."""
        return self._admission.id_of(Batch(number))

    def close(self) -> None:
        """Let go of the file system."""
        if not self._shared:
            self._renames.close()

    def _taken(self, names: list[str]) -> str:
        """Take the folder of sealed attempts over, so that its former owner can decide nothing; return its path."""
        own = self._folder.take_over(layout.OWN, names)
        for entry in self._renames.list(own):
            self._renames.remove(f"{own}/{entry.name}")
        return own

    # --- publishing

    def _sealed(self, attempt: str, batch: Batch, wrote: Record) -> str:
        """Rename an attempt to where no task finds it; return its path."""
        for first in (True, False):
            sealed = f"{self._own}/{attempt}"
            try:
                if wrote.files:
                    self._renames.move(self._folder.at(layout.STAGED, attempt), sealed)
                else:  # no task has created anything
                    self._renames.make_folder(sealed)
                    self._renames.make_folders(f"{sealed}/{layout.ROWS}")
            except NotFound as error:
                self._renames.check()  # or all of it has gone with the leader directory
                if not first:
                    raise self._gone(batch) from error
                self.settle(attempt, batch)  # another journal may have taken the output over
                self._settled = False
            else:
                return sealed
        raise AssertionError("the second try returns or raises")

    def _publish(self, sealed: str, batch: Batch, wrote: Record) -> None:
        number, renames = self._admission.id_of(batch), self._renames
        wrote = msgspec.structs.replace(wrote, plan=batch.plan, after=self.newest)
        with REPORTS.timed(self._name, RECORD):
            try:
                record = self._moving.take_stock(sealed, wrote)
            except NotFound as error:
                renames.check()
                raise self._gone(batch) from error
            if self._committing:
                self._committing.check(record.partitions)
        with REPORTS.timed(self._name, DECIDE):
            if not renames.move(sealed, self._folder.at(layout.ready(number))):
                raise AlreadyExists(f"Batch {number} of output {self._name!r} was decided meanwhile.")
        self.newest = number
        with REPORTS.timed(self._name, MOVE):
            if self._committing:
                self._committing.open(number, record, batch.moment)
            try:
                self._counted(lambda: self._moving.move(number, record))
            except Undecided:
                self.newest = record.after
                raise
        if 0 <= record.after // layout.BUCKET < number // layout.BUCKET:  # the first of a further thousand
            with suppress(StoreError):
                self._drop_staged()  # by tasks that went on after their attempt was sealed

    def _gone(self, batch: Batch) -> NotFound:
        return NotFound(
            f"What Spark has written of {batch} for output {self._name!r} is gone: does a clean-up delete below the "
            "leader directory? Nothing was decided, so the query does the batch again."
        )

    def _counted(self, move: Callable[[], MovedFiles]) -> None:
        """Move a batch, and count what becomes of its files."""
        try:
            moved = move()
        except OutputLost as error:
            lost = max(1, error.lost)  # the record itself may be what is lost
            REPORTS.counted(self._name, lost, 0, 0, lost)
            raise
        REPORTS.counted(self._name, moved.created, moved.renamed, moved.ignored, moved.failed)

    def _newest_done(self) -> int:
        """Return the newest complete batch; a thousand that has just begun may be empty."""
        for bucket in reversed(self._folder.ids(layout.DONE)):
            if done := self._folder.ids(layout.DONE, f"{bucket}"):
                return done[-1]
        return -1


def staged_below(directory: str, uri: str, name: str) -> str:
    """Return the URI of the folder below which attempts of an output are written, that appear in ``uri``."""
    return f"{directory}/{layout.home(name, common_root(directory, uri)[2])}/{layout.STAGED}"


def _capital(batch: Batch) -> str:
    return f"{batch}"[0].upper() + f"{batch}"[1:]
