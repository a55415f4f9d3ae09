"""Many runs, on all cores: their violations, and the faults that were injected."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.pools import pool_in_background, results
from tests.system.simulation.drawing import draw
from tests.system.simulation.run import simulate

CHUNK = 20
"""Seeds that one process takes at a time."""


@dataclass
class Found:
    """The findings of some seeds.

    Attributes:
        runs: number of runs.
        violations: first violation, by seed.
        injected: faults, by kind.
        leaderless: longest time without a leader in seconds, and its bound, by the reason of the wait.
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
        """Add another one's findings."""
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
    """Run these seeds on all cores; ``told`` gets the sum from time to time."""
    total = Found()
    chunks = iter(seeds[begin : begin + CHUNK] for begin in range(0, len(seeds), CHUNK))
    with pool_in_background() as pool:
        for found in results(pool, explore, chunks):
            total.add(found)
            told(total)
    return total
