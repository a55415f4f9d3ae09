"""Moving: brings the files of a decided batch to their places, and says what has become of each of them.

A partition is moved by one rename, so a file is either still in ``ready`` or already in its place. A file of the
record that is in neither is lost, for a clean-up job has deleted it, and then the batch does not become complete.
"""

import posixpath
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from ha.leadership.fenced_rename import ATTEMPTS
from ha.outputs import layout
from ha.outputs.folder import OutputFolder, look, make_room
from ha.outputs.record import FILES, LOST, NOBODY_KNOWS, Record
from leader.errors import OutputLost, Unreadable
from leader.layout.packed_names import written
from store.clock import now
from store.errors import AlreadyExists, Invalid, NotFound, StoreError, Unknown
from store.files import Entry

LOOK_AGAIN_S = 10.0
"""A batch that takes longer to its place than this is looked at there before it is complete: somebody may have deleted
files of it meanwhile. Up to then only what a rename does not find is noticed, which costs no call."""

MOST_ROOMY = 1000  # partitions that are known to have room for a merge
KEPT_BUCKETS = 10  # thousands of complete batches, beside the newest one, whose records are kept
MOST_NAMED = 5  # files that a message names; `ha output verify` names all


@dataclass(frozen=True, slots=True)
class MovedFiles:
    """The outcomes of the files of one batch: ``created`` is always the sum of the others."""

    created: int  # files that the batch consists of
    renamed: int  # those that were moved to their places now
    ignored: int  # those that were there already, moved before a crash
    failed: int = 0  # those that are neither here nor there


class Moving:
    """The journal of one output, for the leader that owns it. Its methods raise what those of the renames do."""

    def __init__(
        self, folder: OutputFolder, opening: Callable[[int, Record], object] | None = None, *, flat: bool = False
    ) -> None:
        # opening: called with a batch that `finish` has found, before it moves anything.
        # flat: whether each partition of what is decided has to be one file; files without content are deleted then.
        self._folder, self._renames, self._name, self._opening = folder, folder.renames, folder.name, opening
        self._is_flat = flat
        self._looked_at = float("-inf")
        self._roomy: set[str] = set()  # partitions with room for a merge; this process has seen to it

    # --- records

    def take_stock(self, attempt: str, wrote: Record) -> Record:
        """Keep a record of an attempt beside its rows, and delete the files that do not belong to it."""
        # No task can add a file to its folder any more. Other files are of tasks that were repeated, and may go on.
        # Invalid: a partition has several files.
        # NotFound: its rows are gone, or some of what was written.
        self._looked_at = now()
        wrote = self._flat(wrote) if self._is_flat else wrote
        if wrote.files or self._is_flat:
            self._keep_only(f"{attempt}/{layout.ROWS}", wrote)
        self._folder.keep(attempt, written(FILES, wrote))
        return wrote

    def _keep_only(self, rows: str, wrote: Record) -> None:
        """Delete all other files. A file that is gone both before and after an acknowledged change stays gone."""
        for _ in range(ATTEMPTS):
            found = self.look(rows)
            if missing := wrote.without(found).paths():
                raise NotFound(f"{len(missing)} of the {wrote.files} files written are gone: {missing[:MOST_NAMED]}")
            if not (others := found.without(wrote).paths()):
                return
            for path in others:
                self._renames.remove(f"{rows}/{path}")
            self._renames.acknowledge()
        raise Unknown(f"Tasks go on writing to {rows}: the query does the batch again.")

    def record(self, batch: int) -> Record:
        """Return what a decided batch consists of; ``OutputLost`` if its record is damaged."""
        try:
            found = self._folder.record(layout.ready(batch))
        except Unreadable as error:
            raise self._lost(batch, f"what it consists of is not known. {error}") from error
        if found is None:
            raise self._lost(batch, "what it consists of is not known, because its record was deleted.")
        return found

    def record_anew(self, batch: int) -> None:
        """Take what is left of a decided batch for all of it, because its record is damaged."""
        ready = layout.ready(batch)
        for name in self._folder.names(ready):
            if name.startswith(f"{FILES}="):
                self._renames.remove(self._folder.at(ready, name))
        left = msgspec.structs.replace(self._here(batch, flat=self._is_flat), after=NOBODY_KNOWS)
        self._folder.keep(self._folder.at(ready), written(FILES, left))

    def look(self, rows: str) -> Record:
        """Return the files below a folder of rows that readers would see; the folders that have some are partitions."""
        found: dict[str, dict[str, int]] = {}
        partitions = [""]
        while partitions:
            partition = partitions.pop()
            entries = self._list(f"{rows}/{partition}".rstrip("/"))
            if files := {entry.name: entry.size for entry in entries if not entry.is_directory}:
                found[partition] = files
            partitions.extend(f"{partition}/{entry.name}".lstrip("/") for entry in entries if entry.is_directory)
        return Record(dict(sorted(found.items())))

    def _flat(self, record: Record) -> Record:
        """Return the record of a flat batch: files without content do not belong to it."""
        found = {}
        for partition, files in record.partitions.items():
            if full := {name: size for name, size in files.items() if size}:
                found[partition] = full
            if len(full) > 1:
                raise Invalid(
                    f"Partition {partition!r} of a batch of output {self._name!r} has {len(full)} files, and an output "
                    "that can be merged needs one: leave maxRecordsPerFile out of the options."
                )
        return msgspec.structs.replace(record, partitions=found, flat=True)

    # --- moves

    def move(self, batch: int, record: Record) -> MovedFiles:
        """Move a batch that was decided just now, and complete it. :meth:`take_stock` has found its record just now."""
        # AlreadyExists: the target has such a batch, and this job did not put it there.
        # OutputLost: files of it are gone.
        try:
            for partition in record.partitions:
                self._move(batch, record, partition)
        except NotFound:
            return self.finish(batch)
        if now() - self._looked_at > LOOK_AGAIN_S:
            lost = record.without(self._there(batch, record))
            if lost.files:
                raise self._gone(batch, record, lost)
        self._complete(batch, record)
        return MovedFiles(record.files, record.files, 0)

    def finish(self, batch: int, *, accept_loss: bool = False) -> MovedFiles:
        """Move what is left of a decided batch, and complete it. Nothing is moved if something is lost."""
        # A NameNode may forget what it shows. So the batch must look complete before and after an acknowledged change.
        # accept_loss: complete it without the files that are gone, and note which they are.
        # AlreadyExists: the target has such a batch, and this job did not put it there.
        # OutputLost: files of it are gone.
        try:
            record = self.record(batch)
        except OutputLost:
            if (moved := self._finished(batch)) is None:
                raise
            return moved
        renamed, proven, opened = 0, False, self._opening is None
        for _ in range(ATTEMPTS):
            here, there = self._here(batch, flat=record.flat), self._there(batch, record)
            lost = record.without(here).without(there)
            if lost.files and not accept_loss:
                raise self._gone(batch, record, lost)
            if not here.files and proven:
                return self._completed(batch, record, lost, renamed)
            if not here.files:
                self._renames.acknowledge()
                proven = True
                continue
            if self._opening is not None and not opened:
                self._opening(batch, record)
                opened = True
            count = self._move_all(batch, here)
            renamed, proven = renamed + count, count == here.files  # an acknowledged rename is such a change
        raise Unknown(f"Batch {batch} of output {self._name!r} could not be moved to its place: write it again.")

    def _move_all(self, batch: int, here: Record) -> int:
        """Move these partitions; return how many files that were. A dead driver's late rename may move some as well."""
        moved = 0
        for partition, files in here.partitions.items():
            with suppress(NotFound):
                self._move(batch, here, partition)
                moved += len(files)
        return moved

    def _completed(self, batch: int, record: Record, lost: Record, renamed: int) -> MovedFiles:
        if lost.files:
            self._folder.keep(self._folder.at(layout.ready(batch)), written(LOST, lost))
        self._complete(batch, record)
        placed = record.files - lost.files
        return MovedFiles(record.files, min(renamed, placed), placed - min(renamed, placed), lost.files)

    def withdraw(self, batch: int) -> None:
        """Undo the decision of a batch that has nothing in its place: the query's next try of it decides again."""
        record = self.record(batch)
        there = self._there(batch, record)
        if there.partitions:
            raise AlreadyExists(
                f"{there.files} of the {record.files} files of batch {batch} are in their places, where readers have "
                "seen them: another try of it could have other rows."
            )
        self._renames.move(self._folder.at(layout.ready(batch)), self._folder.at(layout.STAGED, uuid.uuid4().hex))

    def _move(self, batch: int, record: Record, partition: str) -> None:
        """Move one partition, of a flat batch its only file; ``NotFound`` if it is gone, or in its place already."""
        source = self._folder.at(layout.ready(batch), layout.ROWS, record.source(partition)).rstrip("/")
        target = self._folder.out(record.place(partition, batch))
        if not self._renames.move(source, target):
            raise AlreadyExists(
                f"{target!r} exists already, and this job has not put it there: "
                "give the output a directory of its own, or move that one away."
            )
        if record.flat and partition not in self._roomy:
            make_room(self._renames, self._folder.out(partition))
            self._roomy = {partition, *(self._roomy if len(self._roomy) < MOST_ROOMY else ())}

    def _complete(self, batch: int, record: Record) -> None:
        """Mark a batch as complete; once in a thousand forget the oldest ones, and look whether there is room."""
        source, target = self._folder.at(layout.ready(batch)), self._folder.at(layout.done(batch))
        try:
            self._renames.move(source, target)
        except NotFound:  # the first of a thousand
            self._renames.make_folders(posixpath.dirname(target))
            self._renames.move(source, target)
            self._forget(batch)
            parents = {posixpath.dirname(record.place(each, batch)) for each in record.partitions}
            look(self._renames, self._name, batch, parents)

    def _finished(self, batch: int) -> MovedFiles | None:
        """Return the outcomes of a batch that a dead driver's last rename, executed late, has completed just now."""
        done = layout.done(batch)
        if not self._renames.exists(self._folder.at(done)):
            return None
        self._renames.acknowledge()
        try:
            record = self._folder.record(done)
        except Unreadable:
            return None
        if record is None:
            raise Unknown(f"Batch {batch} of output {self._name!r} was complete, and is not: write it again.")
        return MovedFiles(record.files, 0, record.files)

    def _forget(self, batch: int) -> None:
        for bucket in self._folder.ids(layout.DONE):
            if bucket < batch // layout.BUCKET - KEPT_BUCKETS:
                with suppress(StoreError):  # the first batch of the next thousand tries again
                    for state in (layout.MERGED, layout.DONE):
                        self._renames.remove(self._folder.at(state, f"{bucket}"))

    def _here(self, batch: int, *, flat: bool) -> Record:
        try:
            found = self.look(self._folder.at(layout.ready(batch), layout.ROWS))
        except NotFound:
            self._renames.check()
            found = Record({})
        return msgspec.structs.replace(found, flat=flat)

    def _there(self, batch: int, record: Record) -> Record:
        found = {}
        for partition in record.partitions:
            with suppress(NotFound):
                entries = self._list(self._folder.out(record.folder(partition, batch)))
                found[partition] = {entry.name: entry.size for entry in entries if not entry.is_directory}
        return record.standing(batch, found)

    def _list(self, path: str) -> list[Entry]:
        entries = self._renames.do(lambda files: files.list(path))
        return sorted((each for each in entries if not layout.hidden(each.name)), key=lambda each: each.name)

    def _gone(self, batch: int, record: Record, lost: Record) -> OutputLost:
        named = lost.paths()
        more = f", and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        at_place = sum(
            len(files)
            for partition, files in lost.partitions.items()
            if self._renames.exists(self._folder.out(lost.place(partition, batch)))
        )
        where = {
            0: "on their way, below the leader directory: does a clean-up delete there, with a time to live that is "
            "shorter than a pause of this job?",
            len(named): f"below {self._renames.outside}, where they were moved to, or on their way there.",
        }.get(at_place, f"{at_place} of them below {self._renames.outside}, the others on their way.")
        why = (
            f"{lost.files} of its {record.files} files were deleted or changed before it was: "
            f"{', '.join(named[:MOST_NAMED])}{more}. That happened {where}"
        )
        return self._lost(batch, why, record.files, lost.files)

    def _lost(self, batch: int, why: str, files: int = 0, lost: int = 0) -> OutputLost:
        return OutputLost(
            f"Batch {batch} of output {self._name!r} is not complete: {why} Restore them and start the job again, or "
            f"see `ha output repair {self._renames.job} {self._name}`.",
            files,
            lost,
        )
