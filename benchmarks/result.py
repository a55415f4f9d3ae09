"""Result of a benchmark: its table, targets, notes, pictures and raw data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """A goal, and the measured value.

    Attributes:
        sentence: the goal in words.
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
        """Whether the target is met; without a measurement it is not."""
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing.

    Attributes:
        name: of its file, without the benchmark's name and the extension.
        title: what it shows.
        svg: an SVG document.
    """

    name: str
    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class Result:
    """All findings of one benchmark.

    Attributes:
        name: of the benchmark.
        title: what it measures.
        columns: of the table, with their units.
        rows: of the table, each as long as ``columns``.
        targets: goals with their measured values.
        notes: sentences on the method, on the limits of the figures, and on deviations from the plan.
        pictures: any number.
        raw: all measurements as JSON data; a number that is not finite becomes null.
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
            raise ValueError(f"{crooked[0]} has {len(crooked[0])} cells, the table has {len(self.columns)} columns.")
