"""Figures: summaries of many numbers, and the formatting of one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import median

DIGITS = 3  # Significant digits of a figure; more would be noise


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of the durations of many calls."""

    p50: float  # seconds; the median
    p99: float  # seconds
    p999: float  # seconds
    per_second: float  # calls in a second, one after the other


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the value that ``share`` of all numbers do not exceed, by the nearest rank: always a measured one."""
    if not ordered:
        raise ValueError("There is no percentile of no numbers.")
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def summary(durations: Sequence[float]) -> Summary:
    """Summarise the durations, in seconds, of calls that were made one after the other."""
    ordered = sorted(durations)
    p50, p99, p999 = (percentile(ordered, share) for share in (0.5, 0.99, 0.999))
    return Summary(p50, p99, p999, per_second=len(ordered) / sum(ordered))


def middle(rounds: Sequence[Summary]) -> Summary:
    """Return the median of each figure over all rounds."""
    return Summary(*(median(getattr(each, field.name) for each in rounds) for field in fields(Summary)))


def ratio(rounds: Sequence[Summary], others: Sequence[Summary]) -> float:
    """Return how many times as long as the other's the median duration is: the median of the rounds' ratios."""
    return median(one.p50 / other.p50 for one, other in zip(rounds, others, strict=True))


def text(value: float) -> str:
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "never"
    if value == 0:
        return "0"
    decimals = max(0, DIGITS - 1 - math.floor(math.log10(abs(value))))
    written = f"{value:,.{decimals}f}"
    return written.rstrip("0").rstrip(".") if "." in written else written
