"""Result of a benchmark: its table, targets, notes, pictures and raw data."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

Item = TypeVar("Item")
Cell = str | float | int


@dataclass(frozen=True, slots=True)
class Target:
    """A goal, and the measured value."""

    sentence: str  # the goal in words
    wanted: float  # the bound
    measured: float  # NaN if it could not be measured
    unit: str  # of both; ``x`` for a ratio
    at_most: bool  # whether the bound is an upper one

    @property
    def met(self) -> bool:
        """Whether the target is met; without a measurement it is not."""
        return self.measured <= self.wanted if self.at_most else self.measured >= self.wanted


def at_most(sentence: str, wanted: float, measured: float, unit: str = "") -> Target:
    """Return the goal that it is no more."""
    return Target(sentence, wanted, measured, unit, at_most=True)


def at_least(sentence: str, wanted: float, measured: float, unit: str = "") -> Target:
    """Return the goal that it is no less."""
    return Target(sentence, wanted, measured, unit, at_most=False)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing."""

    name: str  # of its file, without the benchmark's name and the extension
    title: str  # what it shows
    svg: str  # an SVG document


@dataclass(frozen=True, slots=True)
class Result:
    """All findings of one benchmark."""

    columns: tuple[str, ...]  # of the table, with their units
    rows: tuple[tuple[Cell, ...], ...]  # of the table, each as long as ``columns``
    targets: tuple[Target, ...]  # goals with their measured values
    notes: tuple[str, ...]  # sentences on the method, on the limits of the figures, and on deviations from the plan
    pictures: tuple[Picture, ...] = ()  # any number
    # all measurements as JSON data; a number that is not finite becomes null
    raw: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if crooked := [row for row in self.rows if len(row) != len(self.columns)]:
            raise ValueError(f"{crooked[0]} has {len(crooked[0])} cells, the table has {len(self.columns)} columns.")


def table(
    columns: Mapping[str, Callable[[Item], Cell]], items: Iterable[Item]
) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Return the columns and the rows of a table: a row for each item, and in it what each column says of it."""
    return tuple(columns), tuple(tuple(cell(item) for cell in columns.values()) for item in items)
