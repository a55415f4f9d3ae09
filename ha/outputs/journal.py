"""Journal: publishes the batches of one output, each once, whoever has written their rows.

:class:`ha.spark.Output` and the format ``ha`` both write an attempt below ``staged`` and hand it over. One rename
decides it, with a record of its files. Then each of its partitions is moved to its place by one rename, and a last
rename says that the batch is complete: see :mod:`ha.outputs.layout`. A driver that does a batch again finds it decided,
drops its own rows, and moves the rest of what was decided. See decisions 17, 36 and 51.
"""

import logging
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from ha.leadership.fenced_rename import FencedRename, LeaderHome, common_root, make_parents
from ha.metrics.output_report import DECIDE, MOVE, RECORD, REPORTS
from ha.outputs import layout
from ha.outputs.commit_trigger import Moment
from ha.outputs.committing import Committing
from ha.outputs.moving import Moved, Moving
from ha.outputs.partition_commit import PartitionCommit, Policy
from ha.outputs.record import TARGET, Record, Target
from leader.errors import InvalidSettings, OutputLost, Unreadable
from leader.layout.names import OUT
from leader.layout.packed_names import read, written
from store.errors import AlreadyExists, NotFound, StoreError

OWNER = "owner="
"""Begins the name of the folder in ``staged`` that says which journal has settled last."""

SEALED = "-sealed"
"""Ends the name of an attempt to which no task can add a file any more."""

_log = logging.getLogger("ha")


class Journal:
    """The journal of one output, for the leader that owns it. It settles before its first batch, and after a failure.

    Attributes:
        staged: URI of the folder below which attempts are written, each as ``<attempt>/rows``.
        renames: lead from the leader directory to the output.
    """

    def __init__(
        self,
        home: LeaderHome,
        uri: str,
        name: str,
        commit: PartitionCommit | None = None,
        policies: Mapping[str, Policy] | None = None,
        renames: FencedRename | None = None,
        *,
        flat: bool = False,
        alone: bool = True,
    ) -> None:
        """Connect to nothing yet.

        Args:
            home: the leader directory.
            uri: directory in which the batches appear.
            name: of the output.
            commit: when partitions are committed, and how; None for never.
            policies: those that it names, without ``success-file``.
            renames: lead to that directory, and are closed by their owner; None for some of its own.
            flat: whether a partition of a batch appears as one file beside those of other batches, so that
                `ha output merge` can make one of them.
            alone: whether no other process of this leader publishes to the output. If others may, tasks may also add
                files to an attempt that is handed over, so :meth:`publish` has to be told which belong to it.

        Raises:
            InvalidSettings: no rename leads to that directory.
        """
        self.staged = staged_below(home.directory, uri, name)
        self.renames = self._renames = renames or FencedRename(home, uri)
        self._shared = renames is not None
        folder = f"{self._renames.inside}/{layout.home(name, self._renames.outside)}"
        self._committing = (
            Committing(self._renames, folder, name, commit, policies or {}, alone=alone) if commit else None
        )
        self._moving = Moving(
            self._renames, folder, name, self._committing.open if self._committing else None, flat=flat
        )
        self._target = Target(f"{urlsplit(self._renames.root).path.rstrip('/')}/{self._renames.outside}", flat)
        self._name, self._owner = name, f"{OWNER}{uuid.uuid4().hex}"
        self._newest, self._settled, self._shares = -1, False, not alone
        self._shifts: list[str] = []

    def publish(
        self,
        attempt: str,
        batch_id: int,
        wrote: Record | None = None,
        moment: Callable[[], Moment] | None = None,
        least: int = 0,
    ) -> bool:
        """Publish what was written of a batch; returns False, and drops it, if the batch was decided before.

        Args:
            attempt: where that is, below :attr:`staged`; a name that is never used again.
            batch_id: number that Spark gave to the batch; its id is higher if the query was put back.
            wrote: the files that belong to it, if tasks may still add others: those are deleted. None if all that is
                there belongs to the batch.
            moment: reads when the batch was; needed for a partition commit.
            least: the lowest id that the batch may have, if it is not decided; later ones go on from there.

        Raises:
            AlreadyExists: the output has such a batch, and this job did not put it there.
            Fenced: another leader has taken over. Whatever was published, that leader publishes as well.
            OutputLost: files of the batch are gone.
            StoreError: it is not known whether the batch was published: write it again.
        """
        try:
            if not self._settled or (self._shares and not self._alone(attempt)):
                self.settle(attempt)
            self._settled = False  # until all of it has succeeded
            if self._newest < self.id_of(batch_id) < least:
                self._lift(batch_id, least)
            published = self._publish(attempt, self.id_of(batch_id), wrote, moment)
            if self._committing and moment and self.id_of(batch_id) == self._newest:  # and it is complete
                self._committing.commit(self._newest, moment)
            self._settled = True
        finally:
            REPORTS.show()
        return published

    def commit_pending(self) -> int:
        """Commit every partition that is pending, because nothing comes any more; return how many.

        Raises:
            Fenced: another leader has taken over.
            OutputLost: files of a batch are gone.
            StoreError: a store did not answer; the next try does what is left.
        """
        if self._committing is None:
            return 0
        try:
            if not self._settled:
                self.settle()
            self._settled = False  # until all of it has succeeded
            committed = self._committing.commit(self._newest, None)
            self._settled = True
        finally:
            REPORTS.show()
        return committed

    def abandon(self, attempt: str, batch_id: int) -> bool:
        """Drop an attempt, unless it was decided: its publication may have raised all the same.

        Returns:
            Whether the batch is decided; then the next try of it completes it.
        """
        self._settled = False
        decided = self._renames.exists(self._moving.at(layout.ready(self.id_of(batch_id))))
        for each in (attempt, f"{attempt}{SEALED}"):
            self._renames.remove(self._at_staged(each))
        return decided

    def settle(self, attempt: str = "") -> None:
        """Drop everything that is staged, except one attempt, and complete the decided batches.

        If other processes may publish, it leaves a mark, by which :meth:`publish` sees whether one has settled since.
        """
        renames, at, self._settled = self._renames, self._moving.at, False
        renames.do(lambda files: make_parents(files, renames.outside))
        renames.make_folders(f"{renames.inside}/{OUT}", at("").rstrip("/"))
        names = [entry.name for entry in renames.list(at("").rstrip("/"))]
        self._check_shape(names)
        self._shifts = [each for each in names if each.startswith(layout.SHIFT)]
        renames.make_folders(at(layout.STAGED), at(layout.READY))
        renames.sweep()
        for entry in renames.list(at(layout.STAGED)):
            if entry.name != attempt:  # so that a late rename of it finds nothing
                renames.remove(self._at_staged(entry.name))
        if self._shares:
            renames.make_folders(self._at_staged(self._owner))
        if self._committing:
            self._committing.take_over()  # and then it looks for decided batches
        if decided := self._ids(layout.READY):
            renames.acknowledge()  # a NameNode may forget a decision that it shows
            decided = self._ids(layout.READY)
        if layout.DONE not in names:
            for batch_id in decided:  # by a version that kept no records
                self._moving.record_anew(batch_id)
            renames.make_folders(at(layout.DONE))
        self._moving.keep(at("").rstrip("/"), written(TARGET, self._target))
        if self._committing:
            self._committing.load()
        self._newest = max(self._newest, self._newest_done())
        for batch_id in decided:
            self._counted(lambda batch_id=batch_id: self._moving.finish(batch_id))  # type: ignore[misc]
            self._newest = max(self._newest, batch_id)
        self._settled = True

    @property
    def newest(self) -> int:
        """The newest batch that is known to be decided; -1 if none is."""
        return self._newest

    def id_of(self, batch: int) -> int:
        """Return the id of a batch, by the number that Spark gave to it."""
        return batch + layout.shift(batch, self._shifts)

    def close(self) -> None:
        """Let go of the file system."""
        if not self._shared:
            self._renames.close()

    def _lift(self, batch: int, to: int) -> None:
        """Have a batch that is not decided, and all later ones, go on from a higher id.

        By a rename out of ``staged``: one that is executed late, when the batch has another id, finds nothing.
        """
        made, name = self._at_staged(uuid.uuid4().hex), f"{layout.SHIFT}{batch}~{to - batch}"
        self._renames.do(lambda files: files.make_directory(made))
        self._renames.move(made, self._moving.at(name))
        self._shifts.append(name)
        for each in layout.surplus(self._shifts):
            with suppress(StoreError):  # the next one tries again
                self._renames.remove(self._moving.at(each))
                self._shifts.remove(each)

    def _check_shape(self, names: list[str]) -> None:
        """Refuse files beside the directories of batches: Spark would read one of the two."""
        with suppress(Unreadable):
            known = read(TARGET, Target, names)
            if known is not None and known.flat != self._target.flat:
                is_flat, asked = ("flat", "directories") if known.flat else ("directories", "flat")
                raise InvalidSettings(
                    f"The batches of output {self._name!r} are {is_flat}, and this program would add {asked}: "
                    "`mergeable` is chosen once, so leave it as it was, or give the output another directory."
                )

    def _alone(self, attempt: str) -> bool:
        """Whether nobody has settled or left anything since this journal has settled."""
        names = {entry.name for entry in self._renames.list(self._moving.at(layout.STAGED))}
        return names - {attempt} == {self._owner}

    def _publish(self, attempt: str, batch_id: int, wrote: Record | None, moment: Callable[[], Moment] | None) -> bool:
        newest, renames = self._newest, self._renames
        if batch_id < newest:
            _log.warning(
                "Batch %d of output %s is dropped: it has come to batch %d. If the query has begun anew, give its "
                "output another directory.", batch_id, self._name, newest,
            )  # fmt: skip
        if batch_id <= newest:
            with suppress(StoreError):  # the next driver drops it
                renames.remove(self._at_staged(attempt))
            return False
        with REPORTS.timed(self._name, RECORD):
            staged, record = self._stock(attempt, batch_id, wrote)
            if self._committing:
                self._committing.check(record.partitions)
                if moment:
                    moment()  # what it cannot read is told before anything is decided
        with REPORTS.timed(self._name, DECIDE):
            if not renames.move(staged, self._moving.at(layout.ready(batch_id))):
                raise AlreadyExists(f"Batch {batch_id} of output {self._name!r} was decided meanwhile.")
        self._newest = batch_id
        with REPORTS.timed(self._name, MOVE):
            if self._committing:
                self._committing.open(batch_id, record, moment)
            self._counted(lambda: self._moving.move(batch_id, record))
        return True

    def _stock(self, attempt: str, batch_id: int, wrote: Record | None) -> tuple[str, Record]:
        try:
            staged = self._at_staged(attempt) if wrote is None else self._sealed(attempt, wrote)
            return staged, self._moving.take_stock(staged, wrote)
        except NotFound as error:
            self._renames.check()  # or all of it has gone with the leader directory
            raise NotFound(
                f"What Spark has written of batch {batch_id} of output {self._name!r} is gone: does a clean-up delete "
                "below the leader directory? Nothing was decided, so the query does the batch again."
            ) from error

    def _sealed(self, attempt: str, wrote: Record) -> str:
        """Rename an attempt, so that a task that still runs creates its files where nobody looks; return its path."""
        sealed = self._at_staged(f"{attempt}{SEALED}")
        if wrote.files:
            self._renames.move(self._at_staged(attempt), sealed)
        else:  # no task has created anything
            self._renames.make_folders(sealed, f"{sealed}/{layout.ROWS}")
        return sealed

    def _at_staged(self, name: str) -> str:
        return self._moving.at(f"{layout.STAGED}/{name}")

    def _counted(self, move: Callable[[], Moved]) -> None:
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
        for bucket in reversed(self._ids(layout.DONE)):
            if done := self._ids(f"{layout.DONE}/{bucket}"):
                return done[-1]
        return -1

    def _ids(self, folder: str) -> list[int]:
        return layout.ids([entry.name for entry in self._renames.list(self._moving.at(folder))])


def staged_below(directory: str, uri: str, name: str) -> str:
    """Return the URI of the folder below which attempts of an output are written.

    Args:
        directory: URI of the leader directory.
        uri: directory in which the batches appear.
        name: of the output.

    Raises:
        InvalidSettings: no rename leads there.
    """
    return f"{directory}/{layout.home(name, common_root(directory, uri)[2])}/{layout.STAGED}"
