"""Ledger: a batch that Spark has committed must be complete in each output of its query; otherwise it is a gap. Pure.

A query that writes by ``foreachBatch(output)`` or by the format ``ha`` gives the output each of its batches, and the
journal keeps the first of these: see :mod:`ha.outputs.lines`. A function may skip some; then each batch's record names
the batch before it. :mod:`ha.spark.stored.ledger` reads the data for this comparison.

Single batches are looked at one at a time, the newest first at a takeover. One list of a thousand batches shows when
each folder was changed last, and batches are complete one after the other: so a folder that was changed after a later
one's comes next. When there is none, the turn goes from the newest batch down to the oldest, and begins again.
"""

from collections.abc import Collection, Mapping

import msgspec

from ha.outputs import layout
from ha.outputs.lines import Lines
from ha.outputs.record import NOBODY_KNOWS


class Gap(msgspec.Struct, frozen=True):
    """What an output lacks, or has too much."""

    output: str  # its name
    batches: int  # how many are concerned
    why: str  # a sentence without the output's name


class LedgerQuery(msgspec.Struct, frozen=True):
    """A query, by its checkpoint."""

    name: str  # of the query
    id: str  # Spark's
    committed: int  # its newest committed batch, read before the batches of the output; -1 without one
    later: int  # the same, read after them


def gaps(output: str, lines: Lines, done: Collection[int], query: LedgerQuery, oldest: int = 0) -> list[Gap]:
    """Return what an output lacks of a query that gives it each batch, or has too much of any query."""
    # done: ids of its complete batches, all of those from `oldest` on; records of older ones may be forgotten.
    # query: with the name of the present line.
    current = lines.current
    if current is None or lines.may_follow or (current.id != query.id and not lines.marks):
        return []
    if current.id != query.id:
        why = (
            f"it has batches of query {query.name!r} ({current.id}), and that query is another one now ({query.id}): "
            "its batches are not published there."
        )
        return [Gap(output, 1, why)]
    found = []
    if missing := lacking(lines, done, query.committed, oldest):
        named = f"batch {missing[0]}"
        if len(missing) > 1:
            named = f"{len(missing)} batches from {missing[0]} to {missing[-1]}"
        why = f"it lacks {named}, committed by query {query.name!r}: the rows are not published."
        found.append(Gap(output, len(missing), why))
    newest = lines.number_of(max(done, default=-1))
    if newest > query.later + 1:
        why = (
            f"it has batches up to {newest} of query {query.name!r}, whose checkpoint has come to batch {query.later}: "
            "the checkpoint was put back, or the output's journal was changed."
        )
        found.append(Gap(output, newest - query.later, why))
    return found


def lacking(lines: Lines, done: Collection[int], committed: int, oldest: int = 0) -> list[int]:
    """Return the numbers of the batches that the output should have by what Spark has committed, and has not, sorted.

    Of ``done``, its complete batches, all from the id ``oldest`` on are given.
    """
    found: list[int] = []
    first = max(lines.known_from, min(lines.marks.values(), default=committed + 1))
    for number in range(committed, first - 1, -1):
        batch = lines.id_of(number)
        if batch < oldest:
            break
        if batch not in done:
            found.append(number)
    return found[::-1]


def touched(changed: Mapping[int, int]) -> list[int]:
    """Return the batches whose folders were changed after a later one's: they are complete one after the other."""
    # changed: of each batch, when its folder was changed last, by the clock of the store.
    # It proves nothing: a copy of a job has all of them anew. But whoever changes a record shows here.
    found: list[int] = []
    earliest = None
    for batch, at in sorted(changed.items(), reverse=True):
        if earliest is not None and at > earliest:
            found.append(batch)
        earliest = at if earliest is None else min(earliest, at)
    return found[::-1]


def broken(output: str, after: Mapping[int, int], whole: Collection[int]) -> list[Gap]:
    """Return the batches that were decided and have left the journal, or were never decided by it."""
    # after: by id of each complete batch the id of the one before it, as its record says.
    # whole: the thousands whose batches are all given.
    found, before = [], -1
    for batch, said in sorted(after.items()):
        if said not in (NOBODY_KNOWS, before) and (said < 0 or said // layout.BUCKET in whole):
            what = f"batch {said} is gone from" if said > before else f"batch {before} was not decided by"
            found.append(Gap(output, 1, f"{what} its journal: batch {batch} was decided right after {said}."))
        before = batch
    return found


class Looks:
    """The looks at one output."""

    def __init__(self) -> None:
        """Know of no batch."""
        self._found: dict[int, list[Gap]] = {}
        self._seen: dict[int, int] = {}  # of each batch that was looked at, when its folder had been changed
        self._last: int | None = None  # whose turn it was
        self._again = False

    @property
    def gaps(self) -> list[Gap]:
        """What was found, by batch."""
        return [gap for _, gaps in sorted(self._found.items()) for gap in gaps]

    def begin_anew(self) -> None:
        """Have the turn begin with the newest batch."""
        self._last = None

    def next(self, changed: Mapping[int, int]) -> tuple[int, bool] | None:
        """Return the next batch of these, and whether somebody may have changed its record; None without any."""
        # changed: of each complete batch, when its folder was changed last.
        self._found = {batch: gaps for batch, gaps in self._found.items() if batch in changed}
        self._seen = {batch: at for batch, at in self._seen.items() if batch in changed}
        if self._last is None and changed:
            self._last = max(changed)
            return self._last, False  # no later one shows that it was changed
        for batch in touched(changed):
            if self._seen.get(batch) != changed[batch]:
                return batch, True
        self._again = not self._again
        if self._found and self._again:  # it may be mended
            batch = next(iter(self._found))
            self._found[batch] = self._found.pop(batch)
            return batch, True
        self._last = max([each for each in changed if each < (self._last or 0)] or changed, default=None)
        return None if self._last is None else (self._last, False)

    def saw(self, batch: int, changed: int, gaps: list[Gap]) -> None:
        """Take note of what a look has found."""
        self._seen[batch] = changed
        self._found.pop(batch, None)
        if gaps:
            self._found[batch] = gaps
