"""Lines: the owners of an output's batches, and the id that each batch gets. Pure.

A line is a query with one checkpoint. Its name is Spark's id of the query, which the checkpoint keeps through restarts,
copies and rewinds. Only a line can repeat a batch: the same number from another line is another batch.

The journal keeps its lines in names, ``line=<tenure>~<since>~<by>~<id>~<name>``: in that tenure, from batch ``since``
of the query on, the output's ids are higher than Spark's numbers by so many. The highest tenure is the present one. A
name ``follow=<tenure>`` allows another line to go on after that tenure, and ``every=<tenure>~<since>`` says that the
query gives the output each batch from that one on: see :mod:`ha.outputs.ledger`.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from leader.errors import ForeignBatch, InvalidName
from leader.layout.names import escape, unescape

LINE, FOLLOW, EVERY = "line=", "follow=", "every="

MOST_SHIFTS = 1000  # shifts that are kept of one output: a region that is often away gets many

_NUMBER = r"(0|[1-9][0-9]{0,18})"

_ENTRY = re.compile(rf"line={_NUMBER}~{_NUMBER}~(-?{_NUMBER})~([0-9a-f-]{{1,36}})~([A-Za-z0-9._-]*)")


@dataclass(frozen=True, slots=True)
class Line:
    """A query with one checkpoint."""

    id: str  # Spark's, from the checkpoint's `metadata`; `NO_QUERY` for a program that numbers batches itself
    name: str  # of the query

    def __str__(self) -> str:
        return f"query {self.name!r} ({self.id})" if self.id != NO_QUERY else "a program without a query"


NO_QUERY = "-"  # id of the line of a program that has no streaming query and gives its batches numbers of its own


@dataclass(frozen=True, slots=True, order=True)
class _Entry:
    tenure: int
    since: int
    by: int
    id: str
    name: str

    @property
    def text(self) -> str:
        return f"{LINE}{self.tenure}~{self.since}~{self.by}~{self.id}~{escape(self.name)}"


class Lines:
    """The lines of one output, by the names in its journal."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """Read them; other names are skipped."""
        names = list(names)
        self._entries = sorted(filter(None, map(_entry, names)))
        self._marks = {each for each in names if each.startswith((FOLLOW, EVERY))}

    def having(self, *added: str, without: Iterable[str] = ()) -> "Lines":
        """Return the lines with these names more, and without others."""
        return Lines({*self.names, *self._marks, *added} - set(without))

    @property
    def names(self) -> list[str]:
        """The names of all entries."""
        return [each.text for each in self._entries]

    @property
    def tenure(self) -> int:
        """The present tenure; -1 if there is none."""
        return self._entries[-1].tenure if self._entries else -1

    @property
    def current(self) -> Line | None:
        """The line whose batches the output takes; None if it has none yet."""
        return Line(self._entries[-1].id, self._entries[-1].name) if self._entries else None

    def number_of(self, batch: int) -> int:
        """Return the number that Spark gave to the batch of the present line with an id: that of its last part."""
        number, since = -1, None
        for each in reversed(self._present()):
            if each.since + each.by <= batch:
                number = batch - each.by
                return number if since is None else min(number, since - 1)
            since = each.since
        return number

    def id_of(self, number: int) -> int:
        """Return the id of a batch of the present line, by the number that Spark gave to it."""
        return number + self.shift(number)

    def shift(self, number: int) -> int:
        """Return by how much the id of a batch of the present line is higher than Spark's number."""
        present = self._present()
        return next((each.by for each in reversed(present) if each.since <= number), present[0].by if present else 0)

    def admitting(self, line: Line, number: int, newest: int) -> str | None:
        """Return the name that has to be made so that the output takes a batch; None if it takes it as it is."""
        # `newest` is the id of the newest batch that is decided; -1 if there is none.
        # ForeignBatch: the output has batches of another line, and this one was not allowed to follow.
        if self.current is not None and self.current.id == line.id:
            return None
        if self.current is None and newest < 0:
            return _Entry(0, 0, 0, line.id, line.name).text
        if not self.may_follow:
            owner = self.current or "a query that is not known"
            has = f"has batches up to {newest} of {owner}" if newest >= 0 else f"belongs to {owner}"
            raise ForeignBatch(f"{has}, and batch {number} of {line} is not one of them")
        return self.following(line, number, newest)

    @property
    def may_follow(self) -> bool:
        """Whether another line may follow the present one."""
        return f"{FOLLOW}{self.tenure}" in self._marks

    @property
    def marks(self) -> dict[str, int]:
        """By name, from which batch on the present line gives the output each one; none if it may skip some."""
        start = f"{EVERY}{self.tenure}~"
        since = {each: each.removeprefix(start) for each in self._marks if each.startswith(start)}
        return {each: int(number) for each, number in since.items() if re.fullmatch(_NUMBER, number)}

    def marking(self, number: int) -> str:
        """Return the name that says so."""
        return f"{EVERY}{self.tenure}~{number}"

    @property
    def known_from(self) -> int:
        """The lowest number whose id is certain: some shifts before it may have been dropped."""
        present = self._present()
        return present[1 if len(present) > MOST_SHIFTS else 0].since if present else 0

    def following(self, line: Line, number: int, newest: int) -> str:
        """Return the name with which a line goes on after all that was decided, from a batch on."""
        first = max([newest, *(each.since + each.by for each in self._entries)], default=-1) + 1
        return _Entry(self.tenure + 1, number, first - number, line.id, line.name).text

    def lifting(self, number: int, to: int) -> str:
        """Return the name with which the present line goes on from a higher id, from a batch on."""
        last = self._entries[-1]
        return _Entry(last.tenure, number, to - number, last.id, last.name).text

    def rewound(self, number: int, by: int) -> list[str]:
        """Return the names after the present line was put back to a batch: the next one has an id higher by so many."""
        present = self._present()
        kept = [each for each in present if each.since <= number] or present[:1]
        if present and self.shift(number) != by:
            last = present[-1]
            kept = [*kept, _Entry(last.tenure, number + 1, by, last.id, last.name)]
        return [each.text for each in self._entries if each.tenure < self.tenure] + [each.text for each in kept]

    def surplus(self) -> list[str]:
        """Return the outdated shifts: all but the newest of the tenure."""
        return [each.text for each in self._present()[1:-MOST_SHIFTS]]

    def _present(self) -> list[_Entry]:
        return [each for each in self._entries if each.tenure == self.tenure]


def _entry(text: str) -> _Entry | None:
    found = _ENTRY.fullmatch(text)
    if found is None:
        return None
    with suppress(InvalidName):
        return _Entry(int(found[1]), int(found[2]), int(found[3]), found[5], unescape(found[6]))
    return None
