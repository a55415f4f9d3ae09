"""The three that are compared: this project's sidecar, kazoo's ``Election``, Curator's ``LeaderLatch``.

The guards of the last two are those of the drills (:mod:`ha.drill.peers`). All three run the same command, and write
the same line into a history of the same format at the moment in which they are granted the leadership, on one clock.
"""

import sys
from dataclasses import dataclass

COMMAND = ("sleep", "infinity")
"""What the leader runs. It ends at once when it is told to, so an orderly end takes no longer than the election."""


@dataclass(frozen=True)
class System:
    """One way to guard a job.

    Attributes:
        name: in tables.
        module: run as a program.
        peer: what its election is called in ZooKeeper (:mod:`ha.drill.peers.election`); empty for this project's.
    """

    name: str
    module: str
    peer: str = ""

    def command(self, job: str, contender: str) -> list[str]:
        """Return the command line of one contender."""
        own = ["run", job, "--endpoint", f"jobmaster={contender}:1"] if not self.peer else [job]
        return [sys.executable, "-m", self.module, *own, "--contender", contender, "--", *COMMAND]


HERE = System("Hybrid HA", "ha.cli")
KAZOO = System("kazoo Election", "ha.drill.peers.kazoo_election", "kazoo")
CURATOR = System("Curator LeaderLatch", "ha.drill.peers.curator_latch", "curator")
SYSTEMS = (HERE, KAZOO, CURATOR)
