"""What each part of a system costs the stores, as counted: the table that the model multiplies.

The numbers are in ``costs.json``. ``tests/benchmarks/counting.py`` has counted them with the library's own code, and
``tests/benchmarks/test_counting.py`` counts again and fails when the library costs something else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

NAMENODE = ("namenode reads", "namenode writes")
ZOOKEEPER = ("zookeeper reads", "zookeeper syncs", "zookeeper writes", "zookeeper connections")
KINDS = NAMENODE + ZOOKEEPER
"""Of requests. A sync is no write, but goes to the ensemble's leader as one does. Heartbeats are not counted."""

FILE = Path(__file__).with_name("costs.json")

Series = Mapping[str, tuple[float, ...]]
"""Requests in each second, by kind; a kind that never occurs is left out."""

Rate = Mapping[str, float]
"""Requests a minute, by kind."""


class Part(msgspec.Struct, frozen=True):
    """What one part does, for each process of its kind and for each of the jobs that this process has.

    Attributes:
        steady: requests a minute while nothing happens: of a process, and of each job.
        takeover: requests in each second since a leader died, for each of the jobs that it led.
        outage: requests in each second since ZooKeeper went away: of a process, and of each job. The outage ends
            after :data:`OUTAGE` seconds, and what follows is in it.
    """

    steady: tuple[Rate, Rate]
    takeover: Series
    outage: tuple[Series, Series]


class Costs(msgspec.Struct, frozen=True):
    """All that was counted.

    Attributes:
        leader: a process that leads jobs; it dies in a takeover, so that costs it nothing.
        standby: a process that stands by for jobs of one leader.
        agent: a process that answers lookups of one host; its jobs are those that the host asks about.
        heard: seconds from a leader's death until an agent has the next one's address, on average.
        read_same: requests to the NameNode for a look at a leader who is the one known.
        read_changed: requests to the NameNode for a look at a leader who is another one.
    """

    leader: Part
    standby: Part
    agent: Part
    heard: float
    read_same: int
    read_changed: int


OUTAGE = 60
"""Seconds for which ZooKeeper was away when that was counted."""


@dataclass(frozen=True)
class Budget:
    """What was promised of one part.

    Attributes:
        sentence: the promise.
        wanted: at most so many.
        counted: so many are they.
        unit: of both.
    """

    sentence: str
    wanted: float
    counted: float
    unit: str


def load() -> Costs:
    """Read the table.

    Raises:
        OSError, msgspec.ValidationError: it is not there, or damaged.
    """
    return msgspec.json.decode(FILE.read_bytes(), type=Costs)


def of(store: tuple[str, ...], series: Series) -> list[float]:
    """Return the requests to one store in each second."""
    longest = max((len(each) for each in series.values()), default=0)
    return [sum(series[kind][second] for kind in store if kind in series) for second in range(longest)]


def rate(store: tuple[str, ...], rates: Rate) -> float:
    """Return the requests to one store in a minute."""
    return sum(rates.get(kind, 0.0) for kind in store)


def budgets(costs: Costs) -> list[Budget]:
    """Compare the promises of the NameNode's budget with what was counted."""
    leader, standby, agent = (rate(NAMENODE, part.steady[1]) for part in (costs.leader, costs.standby, costs.agent))
    takeover, followed = (of(NAMENODE, part.takeover) for part in (costs.standby, costs.agent))
    asked = of(NAMENODE, costs.agent.outage[1])[:OUTAGE]
    # Of what comes after a death, a part would have come anyhow: the standby's habits until it takes over, the agent's.
    extra = sum(takeover) - standby / 60 * costs.heard
    return [
        Budget("a leader costs the NameNode, a minute", 3, leader, "requests"),
        Budget("a host costs the NameNode, a minute for each job that it asks about", 2, agent, "requests"),
        # What would have come anyhow is a rate, and what came is the mean of ten runs: they fit to within a fiftieth.
        Budget("a failover costs the NameNode", 6, round(extra, 1), "requests"),
        Budget(
            "a failover costs the NameNode, for each host that asks about the job",
            0,
            sum(followed) - agent / 60 * len(followed),
            "requests",
        ),
        Budget(
            "while ZooKeeper is away a host costs the NameNode, a second for each job",
            0.5,
            sum(asked) / OUTAGE,
            "requests",
        ),
    ]
