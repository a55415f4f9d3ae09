"""Measures of a replication: what the loss of the cluster would cost at each moment, and what had to be moved."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

STEP_S = 0.01  # Between two moments at which the loss is looked at


def losses(
    committed: Mapping[int, float], arrived: Sequence[tuple[float, int]], begin: float, end: float
) -> list[float]:
    """Return how old the newest batch at the other side is, at many moments: that much would be lost."""
    times = [at for at, _ in arrived]
    found, steps = [], int((end - begin) / STEP_S)
    for step in range(steps):
        moment = begin + step * STEP_S
        place = bisect_right(times, moment)
        if place:
            found.append(moment - committed[arrived[place - 1][1]])
    return found


def newly_referenced(closures: Mapping[int, Mapping[str, int]], moved: Iterable[int]) -> int:
    """Return the bytes that the closures of these batches have, of files that are in none of those before."""
    known: set[str] = set()
    total = 0
    for batch in moved:
        files = closures[batch]
        total += sum(size for path, size in files.items() if path not in known)
        known |= files.keys()
    return total


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which that share of all values is; NaN without any."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")
