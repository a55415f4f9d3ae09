"""Ledger of a job: reads which batches Spark has committed, and which of them its outputs lack.

``ha output verify`` and the drills look at everything, and the leader as its queries go on:
:mod:`ha.spark.stored.ledger_watch`. See decision 83.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress

from ha.checkpoints import contents
from ha.outputs import layout, ledger
from ha.outputs.batch import plan_of
from ha.outputs.ledger import Gap, LedgerQuery
from ha.outputs.lines import Lines
from ha.outputs.reading import BatchCondition, JournalBatch
from ha.outputs.record import NOBODY_KNOWS
from ha.spark.stored.commit_log import is_query, newest_batch
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import OUT, REWINDING, SPARK
from store.errors import NotFound

MOST_OFFSETS = 64 << 20  # longest file of offsets


class Ledger:
    """The books of one job. Its methods raise ``Fenced`` and ``StoreError``."""

    def __init__(self, directory: FencedDirectory) -> None:
        self._directory = directory

    def gaps(self) -> list[Gap]:
        """Return all gaps of all outputs, but for those that only the records of batches show."""
        return [gap for home in self.names(OUT) for gap in self.of(home, Lines(self.names(f"{OUT}/{home}")))]

    def whole(
        self, home: str, after: Mapping[int, int], plans: Mapping[int, str], thousands: Collection[int]
    ) -> list[Gap]:
        """Return all gaps of one output, by the name of its folder."""
        # Of each complete batch `after` has the one before it, and `plans` the digest of its input, as its record says.
        # `thousands` are those whose batches are all given.
        lines, name = Lines(self.names(f"{OUT}/{home}")), name_of(home)
        return [*self.of(home, lines), *ledger.broken(name, after, thousands), *self.replanned(name, lines, plans)]

    def of(self, home: str, lines: Lines) -> list[Gap]:
        """Return the gaps of one output, by its folder and its present lines; none while its query is put back."""
        if lines.current is None or not is_query(lines.current.name):
            return []
        query = lines.current.name
        try:
            own = self.id_of(query)
        except (NotFound, contents.Unreadable):
            return []  # it has no checkpoint that a query could begin with
        committed = self.committed(query)
        buckets = layout.ids(self.names(f"{OUT}/{home}/{layout.DONE}"))
        done = {each for bucket in buckets for each in self.done(home, bucket)}
        found = LedgerQuery(query, own, committed, self.committed(query))
        gaps = ledger.gaps(name_of(home), lines, done, found, min(buckets, default=0) * layout.BUCKET)
        return gaps if gaps and REWINDING not in self.names("") else []

    def replanned(self, output: str, lines: Lines, plans: Mapping[int, str]) -> list[Gap]:
        """Return the complete batches whose input is not what the checkpoint says it was, as far as it says so."""
        if lines.current is None or not is_query(lines.current.name):
            return []
        folder, found = f"{SPARK}/{lines.current.name}/offsets", []
        known = {int(name) for name in self.names(folder) if name.isdecimal()}
        for batch, plan in plans.items():
            number = lines.number_of(batch)
            if not plan or number not in known:
                continue
            with suppress(NotFound, contents.Unreadable):  # it is forgotten, or `ha checkpoint verify` says so
                data = self._directory.read(f"{folder}/{number}", MOST_OFFSETS)
                if plan_of(contents.offsets(data), data) != plan:
                    why = f"batch {batch} has other input than batch {number} of query {lines.current.name!r}."
                    found.append(Gap(output, 1, why))
        return found

    def of_batch(self, row: JournalBatch, lines: Lines, done: Collection[int], *, changed: bool) -> list[Gap]:
        """Return what is wrong with one complete batch; files that are gone since may be taken away by readers."""
        # row: what it consists of, and what of it is there.
        # lines: of its output.
        # done: the complete batches, all of its thousand.
        # changed: whether somebody may have changed its record. Then its input is read, and each file has to be there
        # if one is.
        output, batch = row.output, row.batch
        if row.condition == BatchCondition.UNKNOWN:
            return [Gap(output, 1, f"what batch {batch} consists of is not known: its record was deleted or changed.")]
        before, found = max((each for each in done if each < batch), default=-1), list[Gap]()
        if not (lines.marks and before < row.after < batch):  # a batch in between is told as lacking
            chain = {batch: row.after} if before < 0 else {before: NOBODY_KNOWS, batch: row.after}
            found += ledger.broken(output, chain, {each // layout.BUCKET for each in done})
        if row.surplus and not row.missing:
            why = f"batch {batch} has files that were not decided, such as {row.surplus[0]}."
            found.append(Gap(output, 1, why))
        if changed and row.missing and (row.surplus or len(row.missing) < row.files):
            why = f"the record of batch {batch} was changed: it names {row.missing[0]}, which is not there."
            found.append(Gap(output, 1, why))
        return [*found, *(self.replanned(output, lines, {batch: row.plan}) if changed else ())]

    def id_of(self, query: str) -> str:
        """Return Spark's id of a query; one read."""
        return contents.query_id(self._directory.read(f"{SPARK}/{query}/metadata"))

    def committed(self, query: str) -> int:
        """Return the newest committed batch of a query; -1 if there is none."""
        newest = newest_batch(self.names(f"{SPARK}/{query}/commits"))
        return -1 if newest is None else newest

    def done(self, home: str, bucket: int) -> dict[int, int]:
        """Return the complete batches of one thousand, and when the folder of each was changed last."""
        found = {each.name: each.modified_ms for each in self._directory.list(f"{OUT}/{home}/{layout.DONE}/{bucket}")}
        return {batch: found[f"{batch}"] for batch in layout.ids(list(found))}

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder of the leader directory; none if there is no such folder."""
        return sorted(entry.name for entry in self._directory.list(folder))


def name_of(home: str) -> str:
    """Return the name of an output, by the one of its journal's folder."""
    return home.rpartition("-")[0] or home
