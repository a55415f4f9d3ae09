"""Plan: which jobs move where, so that no root takes many more requests than the others. Pure.

Greedy: of the most loaded root, the job moves that leaves the pair of it and the least loaded root most even. What has
moved lately, or cannot move, stays; at most a fifth of all jobs moves at once, because a measurement is old by then.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

GOAL = 1.2
"""Requests of the most loaded root, in means of all roots."""

SHARE = 0.2
"""Most jobs that move, of all jobs of the group."""


class JobLoad(msgspec.Struct, frozen=True):
    """One job.

    Attributes:
        job: its name.
        root: where it lies.
        rate: requests a second that it makes, by an estimate.
        stays: why it cannot move now; empty if it can.
    """

    job: str
    root: str
    rate: float
    stays: str = ""


class Move(msgspec.Struct, frozen=True):
    """One job that should move.

    Attributes:
        job: its name.
        source: root that it leaves.
        target: root to which it goes.
        rate: requests a second that it makes.
        source_rate: requests a second at the source before it goes.
        target_rate: requests a second at the target before it comes.
    """

    job: str
    source: str
    target: str
    rate: float
    source_rate: float
    target_rate: float


class Plan(msgspec.Struct, frozen=True):
    """What should move.

    Attributes:
        moves: in this order.
        before: requests of the most loaded root, in means, as measured.
        after: the same after these moves.
        why: why there are no more moves, if the goal is not reached; empty if it is.
        stay: jobs that could not be considered, and why.
    """

    moves: list[Move]
    before: float
    after: float
    why: str
    stay: dict[str, str]


def imbalance(roots: Mapping[str, float]) -> float:
    """Return the requests of the most loaded root, in means of all; 1 if nobody asks anything."""
    mean = sum(roots.values()) / len(roots)
    return max(roots.values()) / mean if mean > 0 else 1.0


def plan(roots: Mapping[str, float], jobs: Sequence[JobLoad], goal: float = GOAL, share: float = SHARE) -> Plan:
    """Say which jobs should move.

    Args:
        roots: requests a second of each.
        jobs: all jobs of the group.
        goal: the imbalance at which nothing moves any more.
        share: most jobs that move, of all of them.
    """
    rates, most = dict(roots), int(len(jobs) * share)
    left = {each.job: each for each in jobs if not each.stays and each.rate > 0}
    moves: list[Move] = []
    why = ""
    while imbalance(rates) > goal:
        if len(moves) == most:
            why = f"at most {share:.0%} of {len(jobs)} jobs move at once"
            break
        best = _best(rates, left.values())
        if best is None:
            why = "no job that may move would make it more even"
            break
        moves.append(best)
        del left[best.job]
        rates[best.source] -= best.rate
        rates[best.target] += best.rate
    stay = {each.job: each.stays for each in jobs if each.stays}
    return Plan(moves, round(imbalance(roots), 3), round(imbalance(rates), 3), why, stay)


def _best(rates: Mapping[str, float], jobs: Collection[JobLoad]) -> Move | None:
    """Return the move that leaves the most and the least loaded root most even; None if each makes it worse."""
    source = max(rates, key=lambda root: (rates[root], root))
    target = min(rates, key=lambda root: (rates[root], root))
    gap = rates[source] - rates[target]
    candidates = [each for each in jobs if each.root == source and each.rate < gap]
    if not candidates:
        return None
    best = min(candidates, key=lambda each: (abs(gap - 2 * each.rate), each.job))
    return Move(best.job, source, target, best.rate, round(rates[source], 3), round(rates[target], 3))
