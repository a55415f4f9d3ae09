"""Many runs, on all cores; what they found, and what was done to the protocol in them."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from tests.simulation.plan import draw
from tests.simulation.run import simulate

CHUNK = 20
"""Seeds that one process takes at a time."""


@dataclass
class Found:
    """What some seeds have shown.

    Attributes:
        runs: how many there were.
        violations: what was broken first, by seed.
        injected: faults, by kind.
        leaderless: by what was waited for: the longest time in seconds, and the bound that it had.
    """

    runs: int = 0
    grants: int = 0
    lookups: int = 0
    seconds: float = 0.0
    """Simulated."""
    violations: dict[int, str] = field(default_factory=dict)
    injected: Counter[str] = field(default_factory=Counter)
    leaderless: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, other: "Found") -> None:
        """Count another's together with these."""
        self.runs += other.runs
        self.grants += other.grants
        self.lookups += other.lookups
        self.seconds += other.seconds
        self.violations.update(other.violations)
        self.injected += other.injected
        for what, longest in other.leaderless.items():
            self.leaderless[what] = max(longest, self.leaderless.get(what, longest), key=lambda each: each[0] / each[1])


def explore(seeds: range) -> Found:
    """Run these seeds, in this process."""
    found = Found()
    for seed in seeds:
        run = simulate(draw(seed))
        leaderless = {what: (took, bound) for what, took, bound in run.leaderless}
        broken = {seed: f"{run.violations[0].guarantee}: {run.violations[0].sentence}"} if run.violations else {}
        found.add(Found(1, run.grants, run.lookups, run.seconds, broken, run.injected, leaderless))
    return found


def explore_all(seeds: range, told: Callable[[Found], None] = lambda _: None) -> Found:
    """Run these seeds on all cores; ``told`` hears of the sum now and then."""
    total = Found()
    chunks = iter(seeds[begin : begin + CHUNK] for begin in range(0, len(seeds), CHUNK))
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        for found in _bounded(pool, chunks):
            total.add(found)
            told(total)
    return total


def _bounded(pool: ProcessPoolExecutor, chunks: Iterator[range]) -> Iterator[Found]:
    """Keep some chunks under way and not all: a hundred thousand seeds would wait in memory."""
    under_way = [pool.submit(explore, chunk) for chunk in islice(chunks, 8)]
    while under_way:
        yield under_way.pop(0).result()
        under_way += [pool.submit(explore, chunk) for chunk in islice(chunks, 1)]
