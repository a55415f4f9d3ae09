"""LedgerWatch: the leader compares what Spark has committed with what its outputs have, as its queries go on.

When it takes over and after its first batch it lists all batches and looks at some. Then it makes at most one list a
minute and query: of the outputs, of the newest thousand batches of each, and of one batch. The list of a thousand shows
which of their records may have been changed (:mod:`ha.outputs.ledger`). A seeming gap is read again before it is
reported: commits first, so that a batch which is published meanwhile is no gap. See decision 83.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from ha.checkpoints import contents
from ha.leadership.leadership import Leadership
from ha.outputs import layout, ledger
from ha.outputs.ledger import Gap, Looks
from ha.outputs.lines import Lines
from ha.outputs.reading import JournalBatch, JournalReader, output_of
from ha.program.output_report import OutputReports, path_beside
from ha.spark.stored.ledger import Ledger, name_of
from leader.layout.names import OUT, REWINDING
from store.clock import now
from store.errors import StoreError

PAUSE_S = 60.0  # for each list that is made for one query
AT_ONCE = 3  # batches that are looked at when it lists all

_log = logging.getLogger("ha")


@dataclass(slots=True)
class _Look:
    """At the outputs of one query."""

    newest: int = -1  # batch that it has committed
    begun: int = -1  # this batch when the last round began
    whole: int = 2  # rounds that are still made at once: at a takeover, and after the first batch
    due: float = 0.0  # when the next list may be made, in seconds of the clock
    round: Iterator[int] | None = None  # the present one; None between two
    compared: dict[str, int] = field(default_factory=dict)  # by output, the newest batch up to which it lacks none
    lacking: dict[str, list[Gap]] = field(default_factory=dict)  # by output, what its lines and its batches have shown
    told: dict[str, list[Gap]] = field(default_factory=dict)  # by output, what was told last


class LedgerWatch:
    """Looks while the queries of a leader run, and reports gaps; for one thread."""

    def __init__(
        self, leadership: Leadership, file: Callable[[], Path | None], clock: Callable[[], float] = now
    ) -> None:
        """Look at nothing yet; gaps are counted beside the report of the program's present run, if there is one."""
        self._leadership, self._file, self._clock = leadership, file, clock
        self._ledger, self._reader = Ledger(leadership.own), JournalReader(lambda: leadership.own)
        self._homes: dict[str, list[str]] = {}  # by output, the names in its journal's folder
        self._single: dict[str, Looks] = {}  # by output
        self._queries: dict[str, _Look] = {}
        self._gone: set[str] = set()  # outputs of which it was told that files are gone
        self._reports = OutputReports()

    def committed(self, query: str, batch: int) -> None:
        """Take note of a query's newest commit, and look if it is time."""
        look = self._queries.setdefault(query, _Look())
        look.newest = max(batch, look.newest)
        if look.round is None and look.newest == look.begun:
            self._show()
            return
        made = 1
        try:
            if look.whole:
                look.whole -= 1
                for _ in self._round(query, look, whole=True):
                    pass
            elif self._clock() >= look.due:
                look.round = look.round or self._round(query, look, whole=False)
                made = next(look.round, 0)
                if not made:
                    look.round = None
                    return
            else:
                return
        except (StoreError, contents.Unreadable) as error:
            _log.debug("%s: the outputs of %s are compared later: %s", self._leadership.job, query, error)
            look.round, look.begun = None, -1
        look.due = self._clock() + made * PAUSE_S

    def _round(self, query: str, look: _Look, *, whole: bool) -> Iterator[int]:
        """Compare each output of a query; each step yields how many lists it has made, unless there seems to be a gap.

        A whole round goes through all thousands that are kept.
        """
        look.begun = look.newest
        homes = self._ledger.names(OUT)
        yield 1
        for home in homes:
            lines = Lines(self._homes.get(home, ()))
            if lines.current is None or (lines.current.name == query and not lines.marks):
                lines = self._read(home)
                yield 1
            if lines.current is None or lines.current.name != query:
                continue
            changed = self._compare(query, home, look, lines, whole=whole)
            yield 1
            single = self._single.setdefault(home, Looks())
            if whole:
                single.begin_anew()
            for _ in range(min(AT_ONCE if whole else 1, len(changed))):
                if made := self._look_at(home, single, changed):
                    self._tell(query, home, look)
                    yield made

    def _read(self, home: str) -> Lines:
        names = self._homes[home] = self._ledger.names(f"{OUT}/{home}")
        return Lines(names)

    def _compare(self, query: str, home: str, look: _Look, lines: Lines, *, whole: bool) -> dict[int, int]:
        """Compare an output's batches with the commits; return them, with the time of the last change of each."""
        books, newest = self._ledger, look.newest  # known before the list is made
        bucket = lines.id_of(min(newest, look.compared.get(home, newest) + 1)) // layout.BUCKET
        kept = layout.ids(books.names(f"{OUT}/{home}/{layout.DONE}")) if whole else [bucket]
        done = {batch: at for each in kept for batch, at in books.done(home, each).items()}
        first = min(kept, default=bucket) * layout.BUCKET
        last = (max([bucket, *kept]) + 1) * layout.BUCKET - 1
        come_to = newest if lines.id_of(newest) <= last else lines.number_of(last)
        missed = bool(lines.marks) and ledger.lacking(lines, done, come_to, first)
        ahead = lines.number_of(max(done, default=-1)) > newest + 1
        stranger = lines.current is None or lines.current.id != books.id_of(query)
        if missed or ahead or stranger or look.lacking.get(home):  # no later batch mends a gap
            look.lacking[home] = books.of(home, self._read(home))
        look.compared[home] = come_to
        self._tell(query, home, look)
        return done

    # --- single batches

    def _look_at(self, home: str, single: Looks, changed: dict[int, int]) -> int:
        """Look at the next batch of an output; return how many lists that took."""
        chosen = single.next(changed)
        if chosen is None:
            return 0
        batch, suspect = chosen
        row = self._row(home, batch, suspect=suspect)
        gaps = self._ledger.of_batch(row, Lines(self._homes[home]), changed, changed=suspect)
        if gaps:
            lines, row = self._read(home), self._row(home, batch, suspect=suspect)
            done = self._ledger.done(home, batch // layout.BUCKET)
            is_there = batch in done and REWINDING not in self._ledger.names("")
            gaps = self._ledger.of_batch(row, lines, done, changed=suspect) if is_there else []
        single.saw(batch, changed[batch], gaps)
        if row.missing and not gaps:
            self._count_gone(row)
        return 2

    def _row(self, home: str, batch: int, *, suspect: bool) -> JournalBatch:
        """Read the record of a batch, and look for its files: in one partition, unless it is a suspect."""
        # The folders of a flat output have the files of all batches, so their lists are long.
        output = output_of(f"{OUT}/{home}", self._homes[home], [], [])
        parts, most = urlsplit(self._leadership.directory), 0 if output.flat else 1
        with self._leadership.open_files(f"{parts.scheme}://{parts.netloc}{output.target or parts.path}") as target:
            return self._reader.look(output, batch, target, most=None if suspect and output.target else most)

    def _count_gone(self, row: JournalBatch) -> None:
        """Count files that are gone: perhaps readers have taken them away, so it is said once and is no gap."""
        self._reports.add(row.output, gone=len(row.missing))
        if row.output not in self._gone:
            self._gone.add(row.output)
            _log.warning(
                "%s: Output %r: %s of batch %d is gone since it was published. If no reader takes files away, see "
                "`ha output verify %s`.", self._leadership.job, row.output, row.missing[0], row.batch,
                self._leadership.job,
            )  # fmt: skip

    # --- what is told

    def _tell(self, query: str, home: str, look: _Look) -> None:
        single = self._single.get(home)
        gaps = [*look.lacking.get(home, ()), *(single.gaps if single else ())]
        told, look.told[home] = look.told.get(home, []), gaps
        for gap in gaps:
            if gap not in told:
                said = f"Output {gap.output!r} has a gap: {gap.why}"
                _log.error("%s: %s See `ha output verify %s`.", self._leadership.job, said, self._leadership.job)
                self._leadership.keep_failure("OutputGap", said, query=query)
        self._reports.set(name_of(home), lacking=sum(gap.batches for gap in gaps))
        self._show(anew=True)

    def _show(self, *, anew: bool = False) -> None:
        """Write the report of the present run, unless that has it; what was counted is in those of earlier runs."""
        file, reports = self._file(), self._reports
        path = None if file is None else path_beside(file, "ledger")
        if path != reports.path and reports.path is not None:
            for each in reports.all():
                reports.set(each.name, gone=0)
        if anew or path != reports.path:
            reports.path = path
            reports.show()
