"""Committing: runs the policies of the partitions that are due, once all batches so far are complete.

A marker is made below the leader directory and brought to its place by a rename, as batches are. So a driver that was
replaced makes none. See :mod:`ha.outputs.partitions` for what is remembered, and decision 38.
"""

import logging
from collections.abc import Mapping

from ha.leadership.fenced_rename import ATTEMPTS
from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from ha.outputs.partition_commit import SUCCESS_FILE, CommittedPartition, Moment, PartitionCommit, Policy, values_of
from ha.outputs.partitions import PartitionNote, Partitions
from ha.outputs.record import Record
from ha.program.output_report import REPORTS
from store.errors import NotFound, Unknown

_log = logging.getLogger("ha")


class Committing:
    """The partition commit of one output. After an error the query's next try calls :meth:`load` and repeats it.

    The settings name ``policies``, but for ``success-file``. It is ``alone`` if no other process of this leader
    commits.
    """

    def __init__(
        self, folder: OutputFolder, settings: PartitionCommit, policies: Mapping[str, Policy], *, alone: bool = True
    ) -> None:
        self._renames, self._folder, self._name = folder.renames, folder, folder.name
        self._settings, self._policies = settings, policies
        self._partitions = Partitions(folder, settings.marker, alone=alone)
        self._since: dict[PartitionNote, int] = {}
        self._timeless: set[str] = set()
        self.take_over = self._partitions.take_over
        self.load = self._partitions.load
        self.check = self._partitions.check

    def open(self, batch: int, record: Record, moment: Moment | None = None) -> None:
        """Note the partitions of a decided batch, before a row of it is moved; its moment is None if unknown."""
        self._partitions.hold()
        new = [each for each in record.partitions if each not in self._partitions.pending]
        since = moment.time_ms if new and moment is not None else 0
        late = self._partitions.open(batch, record.partitions, since)
        if late:
            files = sum(len(record.partitions[each]) for each in late)
            REPORTS.add(self._name, late=len(late), late_files=files)
            _log.warning(
                "Batch %d of output %s is late for %d partitions that were committed, %s first: they are committed "
                "again.", batch, self._name, len(late), late[0],
            )  # fmt: skip
        REPORTS.set(self._name, pending=len(self._partitions.pending))

    def commit(self, batch: int, moment: Moment | None) -> int:
        """Commit the partitions that are due, and return their number; all batches up to this one are complete."""
        # Without a moment all are committed, because the input has ended.
        pending = sorted(self._partitions.pending.values())
        due = pending if moment is None else [note for note in pending if self._due(note, moment)]
        committed = sum(self._commit(note, batch) for note in due)
        REPORTS.set(self._name, pending=len(self._partitions.pending))
        return committed

    def _due(self, note: PartitionNote, moment: Moment) -> bool:
        since = note.since_ms or self._since.setdefault(note, moment.time_ms)
        try:
            return self._settings.decides.due(note.partition, since, moment)
        except ValueError as error:
            if note.partition not in self._timeless:
                self._timeless.add(note.partition)
                _log.warning(
                    "Partition %s of output %s is never committed by time, because its values are none: %s",
                    note.partition, self._name, error,
                )  # fmt: skip
            return False

    def _commit(self, note: PartitionNote, batch: int) -> bool:
        place = self._folder.out(note.partition)
        batches = layout.numbers(layout.BATCH, self._renames.names(place))
        self._since.pop(note, None)
        if not batches:  # its decision was undone, or somebody has deleted all of it
            self._partitions.drop(note)
            return False
        uri = f"{self._renames.root.rstrip('/')}/{place}"
        partition = CommittedPartition(note.partition, uri, values_of(note.partition), batches)
        folder = self._partitions.begin(note)
        for policy in self._settings.policy:
            if policy == SUCCESS_FILE:
                self._mark(folder, place)
            else:
                self._renames.check()  # no rename refuses the call of a driver that was replaced
                self._partitions.hold()
                call = self._policies[policy] if isinstance(policy, str) else policy
                call(partition)
        self._partitions.end(note, batch)
        REPORTS.add(self._name, committed=1)
        return True

    def _mark(self, folder: str, place: str) -> None:
        made, marker = f"{folder}/{self._settings.success_file}", f"{place}/{self._settings.success_file}"
        for _ in range(ATTEMPTS):
            try:
                self._renames.do(lambda files: files.write(made, b""))
                if self._renames.move(made, marker):
                    return
            except NotFound:  # a rename that was executed twice says so, too
                self._renames.check()
            self._renames.acknowledge()  # what is seen may be forgotten
            if self._renames.exists(marker):
                return
        raise Unknown(f"It is not known whether {marker!r} was made: the query's next try makes it.")
