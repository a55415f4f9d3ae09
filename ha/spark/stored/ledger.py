"""Ledger of a job: reads which batches Spark has committed, and which of them its outputs lack.

The leader looks as its queries go on: at everything when it takes over and after its first batch, then by at most one
list a minute and query. ``ha output verify`` and the drills look at everything. A seeming gap is read again before it
is reported: commits first, so that a batch which is published meanwhile is no gap. See decision 83.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ha.checkpoints import contents
from ha.leadership.leadership import Leadership
from ha.outputs import layout, ledger
from ha.outputs.batch import plan_of
from ha.outputs.ledger import Gap, LedgerQuery
from ha.outputs.lines import Lines
from ha.program.output_report import OutputReports, path_beside
from ha.spark.stored.commit_log import is_query, newest_batch
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import OUT, REWINDING, SPARK
from store.clock import now
from store.errors import NotFound, StoreError

PAUSE_S = 60.0  # pause between two lists for one query
MOST_OFFSETS = 64 << 20  # longest file of offsets

_log = logging.getLogger("ha")


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
        lines, name = Lines(self.names(f"{OUT}/{home}")), _name(home)
        return [
            *self.of(home, lines),
            *ledger.broken(name, after, thousands),
            *self.replanned(name, lines, plans),
        ]

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
        gaps = ledger.gaps(_name(home), lines, done, found, min(buckets, default=0) * layout.BUCKET)
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
            with suppress(
                NotFound, contents.Unreadable
            ):  # it is forgotten meanwhile, or `ha checkpoint verify` says so
                data = self._directory.read(f"{folder}/{number}", MOST_OFFSETS)
                if plan_of(contents.offsets(data), data) != plan:
                    why = f"batch {batch} has other input than batch {number} of query {lines.current.name!r}."
                    found.append(Gap(output, 1, why))
        return found

    def id_of(self, query: str) -> str:
        """Return Spark's id of a query; one read."""
        return contents.query_id(self._directory.read(f"{SPARK}/{query}/metadata"))

    def committed(self, query: str) -> int:
        """Return the newest committed batch of a query; -1 if there is none."""
        newest = newest_batch(self.names(f"{SPARK}/{query}/commits"))
        return -1 if newest is None else newest

    def done(self, home: str, bucket: int) -> list[int]:
        """Return the complete batches of one thousand."""
        return layout.ids(self.names(f"{OUT}/{home}/{layout.DONE}/{bucket}"))

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder of the leader directory; none if there is no such folder."""
        return sorted(entry.name for entry in self._directory.list(folder))


@dataclass(slots=True)
class _Look:
    """At the outputs of one query."""

    newest: int = -1  # batch that it has committed
    begun: int = -1  # this batch when the last round began
    whole: int = 2  # rounds that are still made at once: at a takeover, and after the first batch
    due: float = 0.0  # when the next list may be made, in seconds of the clock
    round: Iterator[bool] | None = None  # the present one; None between two
    compared: dict[str, int] = field(default_factory=dict)  # by output, the newest batch up to which it lacks none
    gaps: dict[str, list[Gap]] = field(default_factory=dict)  # by output, what was told last


class LedgerWatch:
    """Looks while the queries of a leader run, and reports gaps; for one thread."""

    def __init__(
        self, leadership: Leadership, file: Callable[[], Path | None], clock: Callable[[], float] = now
    ) -> None:
        """Look at nothing yet; gaps are counted beside the report of the program's present run, if there is one."""
        self._leadership, self._file, self._clock = leadership, file, clock
        self._ledger = Ledger(leadership.own)
        self._lines: dict[str, Lines] = {}
        self._looks: dict[str, _Look] = {}
        self._reports = OutputReports()

    def committed(self, query: str, batch: int) -> None:
        """Take note of a query's newest commit, and look if it is time."""
        look = self._looks.setdefault(query, _Look())
        look.newest = max(batch, look.newest)
        if look.round is None and look.newest == look.begun:
            return
        try:
            if look.whole:
                look.whole -= 1
                for _ in self._round(query, look):
                    pass
            elif self._clock() >= look.due:
                look.round = look.round or self._round(query, look)
                if not next(look.round, False):
                    look.round = None
                    return
            else:
                return
        except (StoreError, contents.Unreadable) as error:
            _log.debug("%s: the outputs of %s are compared later: %s", self._leadership.job, query, error)
            look.round, look.begun = None, -1
        look.due = self._clock() + PAUSE_S

    def _round(self, query: str, look: _Look) -> Iterator[bool]:
        """Compare each output of a query; each step makes one list, unless there seems to be a gap."""
        ledger_, own, look.begun = self._ledger, "", look.newest
        homes = ledger_.names(OUT)
        yield True
        for home in homes:
            lines = self._lines.get(home)
            if lines is None or lines.current is None or (lines.current.name == query and not lines.marks):
                lines = self._lines[home] = Lines(ledger_.names(f"{OUT}/{home}"))
                yield True
            if lines.current is None or lines.current.name != query or not lines.marks:
                continue
            own = own or ledger_.id_of(query)
            newest = look.newest  # known before the list is made
            bucket = lines.id_of(min(newest, look.compared.get(home, newest) + 1)) // layout.BUCKET
            done = ledger_.done(home, bucket)
            first, last = bucket * layout.BUCKET, (bucket + 1) * layout.BUCKET - 1
            come_to = newest if lines.id_of(newest) <= last else lines.number_of(last)
            missed = ledger.lacking(lines, done, come_to, first) or look.gaps.get(
                home
            )  # one is mended by no later batch
            if missed or lines.current.id != own:
                lines = self._lines[home] = Lines(ledger_.names(f"{OUT}/{home}"))
                self._found(query, home, look, ledger_.of(home, lines))
            else:
                self._found(query, home, look, [])
            look.compared[home] = come_to
            yield True

    def _found(self, query: str, home: str, look: _Look, gaps: list[Gap]) -> None:
        told, look.gaps[home] = look.gaps.get(home, []), gaps
        for gap in gaps:
            if gap not in told:
                said = f"Output {gap.output!r} has a gap: {gap.why}"
                _log.error("%s: %s See `ha output verify %s`.", self._leadership.job, said, self._leadership.job)
                self._leadership.keep_failure("OutputGap", said, query=query)
        file = self._file()
        self._reports.path = None if file is None else path_beside(file, "ledger")
        self._reports.set(_name(home), lacking=sum(gap.batches for gap in gaps))
        self._reports.show()


def _name(home: str) -> str:
    return home.rpartition("-")[0] or home
