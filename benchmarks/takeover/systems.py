"""Systems to compare: this project's sidecar, kazoo's ``Election``, Curator's ``LeaderLatch``."""

import sys
from dataclasses import dataclass

COMMAND = ("sleep", "infinity")
"""Command of the leader. It ends at once on SIGTERM, so an orderly end takes no longer than the election."""


@dataclass(frozen=True)
class System:
    """One system that keeps a job available."""

    name: str  # in tables
    module: str  # its program
    # name of its election in ZooKeeper (:mod:`benchmarks.baselines.election`); empty for this project
    baseline: str = ""

    def command(self, job: str, contender: str) -> list[str]:
        """Return the command line of one contender."""
        own = ["run", job, "--endpoint", f"jobmaster={contender}:1"] if not self.baseline else [job]
        return [sys.executable, "-m", self.module, *own, "--contender", contender, "--", *COMMAND]


HERE = System("Hybrid HA", "ha.cli")
KAZOO = System("kazoo Election", "benchmarks.baselines.kazoo_election", "kazoo")
CURATOR = System("Curator LeaderLatch", "benchmarks.baselines.curator_latch", "curator")
WITH_AGENT = "Hybrid HA, reader with an agent"
"""The first of them once more, as a reader on the host of an agent finds its leaders."""

SYSTEMS = (HERE, KAZOO, CURATOR)
