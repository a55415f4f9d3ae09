"""Looks: which single batches of an output its leader looks at, one at a time, and what it found of each. Pure.

The newest batch comes first at a takeover. One list of a thousand batches shows when each folder was changed last, and
batches are complete one after the other: so a folder that was changed after a later one's comes next. When there is
none, the turn goes from the newest batch down to the oldest, and begins again.
"""

from collections.abc import Mapping

from ha.outputs.ledger import Gap, touched


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
