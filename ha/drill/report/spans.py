"""Spans of time, as pairs of seconds, and what can be done with many of them."""

from collections.abc import Iterable, Mapping, Sequence

Span = tuple[float, float]


def union(spans: Iterable[Span], gap: float = 0.0) -> list[Span]:
    """Return the times that any of them covers, in order.

    Args:
        spans: in any order.
        gap: seconds; spans that are no further apart become one.
    """
    joined: list[Span] = []
    for begins, ends in sorted(span for span in spans if span[0] <= span[1]):
        if joined and begins <= joined[-1][1] + gap:
            joined[-1] = joined[-1][0], max(joined[-1][1], ends)
        else:
            joined.append((begins, ends))
    return joined


def complement(spans: Iterable[Span], within: Span) -> list[Span]:
    """Return the times of a span that none of them covers, in order."""
    free, at = [], within[0]
    for begins, ends in union(spans):
        if begins >= within[1]:
            break
        if begins > at:
            free.append((at, begins))
        at = max(at, ends)
    if at < within[1]:
        free.append((at, within[1]))
    return free


def shared(spans: Mapping[str, Sequence[Span]]) -> list[Span]:
    """Return the times that at least two of the owners cover, in order."""
    edges = sorted(
        edge for each in spans.values() for begins, ends in union(each) for edge in ((begins, 1), (ends, -1))
    )  # an end comes before a beginning of the same moment, so touching is not sharing
    found: list[Span] = []
    depth, since = 0, 0.0
    for at, step in edges:
        depth += step
        if (depth, step) == (2, 1):
            since = at
        elif (depth, step) == (1, -1) and at > since:
            found.append((since, at))
    return union(found)


def total(spans: Iterable[Span]) -> float:
    """Return how many seconds they cover."""
    return sum(ends - begins for begins, ends in union(spans))
