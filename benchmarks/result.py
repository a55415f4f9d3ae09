"""What a benchmark has found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """What was aimed at, and what came of it.

    Attributes:
        sentence: what is wanted, in words.
        wanted: the bound.
        measured: NaN if it could not be measured.
        unit: of both; ``x`` for a ratio.
        at_most: whether the bound is an upper one.
    """

    sentence: str
    wanted: float
    measured: float
    unit: str
    at_most: bool

    @property
    def met(self) -> bool:
        """Whether it is; what could not be measured is not."""
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing.

    Attributes:
        name: of its file, without the benchmark's name and the ending.
        title: what it shows.
        svg: an SVG document.
    """

    name: str
    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that one benchmark has found.

    Attributes:
        name: of the benchmark.
        title: what it measures.
        columns: of the table; with their units.
        rows: of the table, each as long as ``columns``.
        targets: what was aimed at.
        notes: sentences: how it was measured, what the figures do not say, what went otherwise than planned.
        pictures: any number.
        raw: everything that was measured, as JSON can say it; a number that is not finite becomes null.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | int, ...], ...]
    targets: tuple[Target, ...]
    notes: tuple[str, ...]
    pictures: tuple[Picture, ...]
    raw: Mapping[str, Any]

    def __post_init__(self) -> None:
        if crooked := [row for row in self.rows if len(row) != len(self.columns)]:
            raise ValueError(f"{crooked[0]} has {len(crooked[0])} cells, and the table {len(self.columns)} columns.")
