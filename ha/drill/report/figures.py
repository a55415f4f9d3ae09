"""Figures as people read them: the label of a measure, its unit, and whether less of it is better."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

BOUND = "_bound_seconds"
"""Suffix of a measure that is the upper bound of another one: ``x_bound_seconds`` belongs to ``x_seconds``."""

_LABELS = {
    "leader_changes": "leader changes",
    "leaderless_seconds": "time without a leader",
    "takeover_seconds": "recovery: fault to the next leader",
    "takeover_bound_seconds": "recovery, at most",
    "first_batch_seconds": "fault to the next leader's first batch",
    "longest_without_batch_seconds": "longest time without a batch",
    "files": "files of input",
    "words_expected": "words expected",
    "words_counted": "words counted",
    "words_wrong": "words counted wrong",
    "batches": "batches",
    "batches_twice": "batches written twice",
    "overlap_seconds": "two drivers at once",
    "lookups": "lookups",
    "lookups_failed": "lookups failed",
    "lookups_without_leader": "lookups told that there is no leader",
    "slowest_lookup_seconds": "slowest lookup",
    "lookups_snapshot": "lookups answered by the snapshot",
    "lookups_zookeeper": "lookups answered by ZooKeeper",
    "lookups_hdfs": "lookups answered by HDFS",
}
"""Known measures, in the order in which they are shown; others follow by name."""

LESS_IS_BETTER = frozenset(
    {
        "leader_changes",
        "leaderless_seconds",
        "takeover_seconds",
        "first_batch_seconds",
        "longest_without_batch_seconds",
        "words_wrong",
        "batches_twice",
        "overlap_seconds",
        "lookups_failed",
        "slowest_lookup_seconds",
    }
)
"""Measures by which providers are compared; there is none of which more is better."""

_DURATIONS: Sequence[tuple[float, float, str, str]] = (
    (0.001, 1000, ".1g", "ms"),
    (0.0995, 1000, ".0f", "ms"),
    (9.995, 1, ".2f", "s"),
    (99.95, 1, ".1f", "s"),
    (math.inf, 1, ",.0f", "s"),
)
"""Below how many seconds a duration is written how: factor, digits and unit."""

_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn"}
"""Categories of characters that XML forbids, that are invisible or that turn the direction of what follows."""

_ORDER = {name: number for number, name in enumerate(_LABELS)}


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure to be shown.

    Attributes:
        name: of the measure.
        label: what people call it.
        value: with its unit.
        bound: what it may be at most, with its unit; empty if nothing is said.
        exceeds: whether it is more than that.
    """

    name: str
    label: str
    value: str
    bound: str = ""
    exceeds: bool = False


def ordered(names: Iterable[str]) -> list[str]:
    """Return the names of measures, each once, in the order in which they are always shown."""
    return sorted(set(names), key=lambda name: (_ORDER.get(name, len(_ORDER)), name))


def figures(measures: Mapping[str, float]) -> list[Figure]:
    """Return everything that was measured; a bound is shown with what it bounds, if that was measured."""
    shown = []
    for name in ordered(measures):
        if name.endswith(BOUND) and f"{name.removesuffix(BOUND)}_seconds" in measures:
            continue
        value, bound = measures[name], measures.get(f"{name.removesuffix('_seconds')}{BOUND}")
        if bound is None or not name.endswith("_seconds"):
            shown.append(Figure(name, label(name), figure(name, value)))
        else:
            shown.append(Figure(name, label(name), seconds(value), seconds(bound), not value <= bound))
    return shown


def label(name: str) -> str:
    """Return what people call a measure."""
    return _LABELS.get(name) or name.removesuffix("_seconds").replace("_", " ") or name


def figure(name: str, value: float) -> str:
    """Return a measure's value with its unit, which the measure's name says."""
    return seconds(value) if name.endswith("_seconds") else count(value)


def count(value: float) -> str:
    """Return a number of things."""
    if not math.isfinite(value):
        return _endless(value)
    return f"{value:,.0f}" if value == round(value) else f"{value:,.2f}"


def seconds(value: float) -> str:
    """Return a duration in three digits or so: milliseconds while they are few."""
    if not math.isfinite(value):
        return _endless(value)
    if value == 0:
        return "0 s"
    factor, digits, unit = next(form[1:] for form in _DURATIONS if abs(value) < form[0])
    return f"{value * factor:{digits}} {unit}"


def _endless(value: float) -> str:
    """The awaited event did not come, or could not be measured."""
    return "unknown" if math.isnan(value) else "never" if value > 0 else "at once"


def printable(text: str) -> str:
    """Return a text as one line that can be shown: a mark replaces each character that cannot."""
    return "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isspace():
        return " "
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in _UNSAFE else character
