"""Moving: brings the files of a decided batch to their places, and says what has become of each of them.

A partition is moved by one rename, so a file is either still in ``ready`` or already in its place. A file of the
record that is in neither is lost, for a clean-up job has deleted it, and then the batch does not become complete.
"""

import posixpath
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from ha.leadership.fenced_rename import ATTEMPTS, FencedRename
from ha.outputs import layout
from ha.outputs.record import FILES, LOST, Record
from leader.errors import OutputLost, Unreadable
from leader.layout.packed_names import read, written
from store.clock import now
from store.errors import AlreadyExists, Invalid, NotFound, StoreError, Unknown
from store.files import Entry

LOOK_AGAIN_S = 10.0
"""A batch that takes longer to its place than this is looked at there before it is complete: somebody may have deleted
files of it meanwhile. Up to then only what a rename does not find is noticed, which costs no call."""

KEPT_BUCKETS = 10
"""Thousands of complete batches, beside the newest one, whose records are kept."""

MOST_NAMED = 5
"""Files that a message names; `ha output verify` names all."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The outcomes of the files of one batch: ``created`` is always the sum of the others.

    Attributes:
        created: files that the batch consists of.
        renamed: those that were moved to their places now.
        ignored: those that were there already, moved before a crash.
        failed: those that are neither here nor there.
    """

    created: int
    renamed: int
    ignored: int
    failed: int = 0


class Moving:
    """The journal of one output, for the leader that owns it. Its methods raise what those of the renames do."""

    def __init__(
        self,
        renames: FencedRename,
        home: str,
        name: str,
        opening: Callable[[int, Record], object] | None = None,
        *,
        flat: bool = False,
    ) -> None:
        """Connect to nothing yet.

        Args:
            renames: lead to the target.
            home: the output's folder, below the root of the renames.
            name: of the output, for messages.
            opening: called with a batch that :meth:`finish` has found, before it moves anything.
            flat: whether each partition of what is decided has to be one file; files without content are deleted then.
        """
        self._renames, self._home, self._name, self._opening = renames, home, name, opening
        self._is_flat = flat
        self._looked_at = float("-inf")

    def at(self, path: str) -> str:
        """Return the path of something in the output's folder."""
        return f"{self._home}/{path}"

    # --- records

    def take_stock(self, attempt: str, wrote: Record | None = None) -> Record:
        """Return what an attempt consists of, and keep it beside its rows.

        Args:
            attempt: its folder.
            wrote: what it has to consist of; other files are deleted. None if whatever is there belongs to it.

        Raises:
            Invalid: a partition has several files.
            NotFound: its rows are gone, or some of what was written.
        """
        self._looked_at = now()
        rows = f"{attempt}/{layout.ROWS}"
        record = self.look(rows)
        if self._is_flat:
            record = self._flat(rows, record)
        if wrote is not None:
            if missing := wrote.without(record).paths():
                raise NotFound(f"{len(missing)} of the {wrote.files} files written are gone: {missing[:MOST_NAMED]}")
            for path in record.without(wrote).paths():  # by tasks that were repeated, and may go on
                self._renames.remove(f"{rows}/{path}")
            record = wrote
        self.keep(attempt, written(FILES, record))
        return record

    def keep(self, folder: str, names: list[str]) -> None:
        """Make the folders whose names hold a value."""
        for name in names:
            self._renames.do(lambda files, name=name: files.make_directory(f"{folder}/{name}"))  # type: ignore[misc]

    def record(self, batch: int) -> Record:
        """Return what a decided batch consists of.

        Raises:
            OutputLost: its record is damaged.
        """
        names = [entry.name for entry in self._renames.list(self.at(layout.ready(batch)))]
        try:
            found = read(FILES, Record, names)
        except Unreadable as error:
            raise self._lost(batch, f"what it consists of is not known. {error}") from error
        if found is None:
            raise self._lost(batch, "what it consists of is not known, because its record was deleted.")
        return found

    def record_anew(self, batch: int) -> None:
        """Take what is left of a decided batch for all of it: an older version has kept no record, or it is damaged."""
        folder = self.at(layout.ready(batch))
        for entry in self._renames.list(folder):
            if entry.name.startswith(f"{FILES}="):
                self._renames.remove(f"{folder}/{entry.name}")
        self.keep(folder, written(FILES, self._here(batch)))

    def look(self, rows: str) -> Record:
        """Return the files below a folder of rows that readers would see; the folders that contain some are partitions.

        Raises:
            NotFound: there is no such folder.
        """
        found: dict[str, dict[str, int]] = {}
        partitions = [""]
        while partitions:
            partition = partitions.pop()
            entries = self._list(f"{rows}/{partition}".rstrip("/"))
            if files := {entry.name: entry.size for entry in entries if not entry.is_directory}:
                found[partition] = files
            else:
                partitions.extend(f"{partition}/{entry.name}".lstrip("/") for entry in entries)
        return Record(dict(sorted(found.items())))

    def _flat(self, rows: str, record: Record) -> Record:
        found = {}
        for partition, files in record.partitions.items():
            for name in [name for name, size in files.items() if not size]:
                self._renames.remove(f"{rows}/{partition}/{name}".replace("//", "/"))
            if full := {name: size for name, size in files.items() if size}:
                found[partition] = full
            if len(full) > 1:
                raise Invalid(
                    f"Partition {partition!r} of a batch of output {self._name!r} has {len(full)} files, and an output "
                    "that can be merged needs one: leave maxRecordsPerFile out of the options."
                )
        return Record(found, flat=True)

    # --- moves

    def move(self, batch: int, record: Record) -> Moved:
        """Move a batch that was decided just now, and complete it.

        Args:
            batch: its id.
            record: what it consists of, as :meth:`take_stock` has found it just now.

        Raises:
            AlreadyExists: the target has such a batch, and this job did not put it there.
            OutputLost: files of it are gone.
        """
        try:
            for partition, files in record.partitions.items():
                self._move(batch, partition, next(iter(files)) if record.flat else "")
        except NotFound:
            return self.finish(batch)
        if now() - self._looked_at > LOOK_AGAIN_S:
            lost = record.without(self._there(batch, record))
            if lost.files:
                raise self._gone(batch, record, lost)
        self._complete(batch)
        return Moved(record.files, record.files, 0)

    def finish(self, batch: int, *, accept_loss: bool = False) -> Moved:
        """Move what is left of a decided batch, and complete it. Nothing is moved if something is lost.

        A NameNode may forget what it shows. So the batch is complete when it looks complete before a change that the
        store has acknowledged, and after it.

        Args:
            batch: its id.
            accept_loss: complete it without the files that are gone, and note which they are.

        Raises:
            AlreadyExists: the target has such a batch, and this job did not put it there.
            OutputLost: files of it are gone.
        """
        try:
            record = self.record(batch)
        except OutputLost:
            if (moved := self._finished(batch)) is None:
                raise
            return moved
        return self._finish(batch, record, accept_loss=accept_loss)

    def _finish(self, batch: int, record: Record, *, accept_loss: bool) -> Moved:
        renamed, proven, opening = 0, False, self._opening
        for _ in range(ATTEMPTS):
            here, there = self._here(batch), self._there(batch, record)
            lost = record.without(here).without(there)
            if lost.files and not accept_loss:
                raise self._gone(batch, record, lost)
            if here.partitions:
                if opening is not None:
                    opening(batch, record)
                    opening = None
                proven = True  # a rename that is acknowledged is such a change
                for partition, files in here.partitions.items():
                    try:
                        self._move(batch, partition, next(iter(files)) if record.flat else "")
                        renamed += len(files)
                    except NotFound:  # moved just now by a rename of a dead driver, which is executed late
                        proven = False
            elif proven:
                if lost.files:
                    self.keep(self.at(layout.ready(batch)), written(LOST, lost))
                self._complete(batch)
                placed = record.files - lost.files
                return Moved(record.files, min(renamed, placed), placed - min(renamed, placed), lost.files)
            else:
                self._renames.acknowledge()
                proven = True
        raise Unknown(f"Batch {batch} of output {self._name!r} could not be moved to its place: write it again.")

    def withdraw(self, batch: int) -> None:
        """Undo the decision of a batch of which nothing is in its place: the query's next try of it decides anew.

        Raises:
            AlreadyExists: some of its files are in their places.
            OutputLost: its record is damaged.
        """
        record = self.record(batch)
        there = self._there(batch, record)
        if there.partitions:
            raise AlreadyExists(
                f"{there.files} of the {record.files} files of batch {batch} are in their places, where readers have "
                "seen them: another try of it could have other rows."
            )
        self._renames.move(self.at(layout.ready(batch)), self.at(f"{layout.STAGED}/{uuid.uuid4().hex}"))

    def _move(self, batch: int, partition: str, name: str = "") -> None:
        """Move one partition, of a flat batch its only file.

        Raises:
            NotFound: it is gone, or in its place already.
        """
        source = posixpath.join(self.at(layout.ready(batch)), layout.ROWS, partition, name).rstrip("/")
        target = self._place(partition, batch, name)
        if not self._renames.move(source, target):
            raise AlreadyExists(
                f"{target!r} exists already, and this job has not put it there: "
                "give the output a directory of its own, or move that one away."
            )

    def _complete(self, batch: int) -> None:
        """Say that a batch is complete, and forget the oldest thousand of those that are kept too long."""
        source, target = self.at(layout.ready(batch)), self.at(layout.done(batch))
        try:
            self._renames.move(source, target)
        except NotFound:  # the first of a thousand
            self._renames.make_folders(posixpath.dirname(target))
            self._renames.move(source, target)
            self._forget(batch)

    def _finished(self, batch: int) -> Moved | None:
        """Return the outcomes of a batch that a dead driver's last rename, executed late, has completed just now."""
        folder = self.at(layout.done(batch))
        if not self._renames.exists(folder):
            return None
        self._renames.acknowledge()
        try:
            record = read(FILES, Record, [entry.name for entry in self._renames.list(folder)])
        except Unreadable:
            return None
        if record is None:
            raise Unknown(f"Batch {batch} of output {self._name!r} was complete, and is not: write it again.")
        return Moved(record.files, 0, record.files)

    def _forget(self, batch: int) -> None:
        buckets = layout.ids([entry.name for entry in self._renames.list(self.at(layout.DONE))])
        for bucket in buckets:
            if bucket < batch // layout.BUCKET - KEPT_BUCKETS:
                with suppress(StoreError):  # the first batch of the next thousand tries again
                    self._renames.remove(self.at(f"{layout.MERGED}/{bucket}"))
                    self._renames.remove(self.at(f"{layout.DONE}/{bucket}"))

    def _here(self, batch: int) -> Record:
        try:
            return self.look(f"{self.at(layout.ready(batch))}/{layout.ROWS}")
        except NotFound:
            self._renames.check()
            return Record({})

    def _there(self, batch: int, record: Record) -> Record:
        found = {}
        for partition in record.partitions:
            with suppress(NotFound):
                folder = layout.folder(partition, batch, flat=record.flat)
                entries = self._list(posixpath.join(self._renames.outside, folder).rstrip("/"))
                found[partition] = {entry.name: entry.size for entry in entries if not entry.is_directory}
        return record.standing(batch, found)

    def _list(self, path: str) -> list[Entry]:
        entries = self._renames.do(lambda files: files.list(path))
        return sorted((each for each in entries if not layout.hidden(each.name)), key=lambda each: each.name)

    def _place(self, partition: str, batch: int, name: str = "") -> str:
        """Return where readers find a partition; with a name, that file of a flat one."""
        if name:
            return posixpath.join(self._renames.outside, partition, layout.file(batch, name, flat=True))
        return f"{self._renames.outside}/{layout.place(partition, batch)}"

    def _gone(self, batch: int, record: Record, lost: Record) -> OutputLost:
        named = lost.paths()
        more = f", and {len(named) - MOST_NAMED} more" if len(named) > MOST_NAMED else ""
        at_place = sum(
            len(files)
            for partition, files in lost.partitions.items()
            if self._renames.exists(self._place(partition, batch, next(iter(files)) if record.flat else ""))
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
            f"see `ha output repair`.",
            files,
            lost,
        )
