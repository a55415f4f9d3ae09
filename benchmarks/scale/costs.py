"""Counted costs of each part of a system, in requests to the stores: the table that the model multiplies.

The numbers are in ``costs.json``. ``tests/unit/benchmarks/counting.py`` has counted them with the library's own code.
``tests/unit/benchmarks/test_counting.py`` counts again, and fails when the library's costs have changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

NAMENODE = ("namenode reads", "namenode writes")
ZOOKEEPER = ("zookeeper reads", "zookeeper syncs", "zookeeper writes", "zookeeper connections")
KINDS = NAMENODE + ZOOKEEPER
"""Kinds of requests. A sync is not a write, but goes to the ensemble's leader like one."""

HEARTBEATS = "zookeeper heartbeats"
"""What a client sends that has been silent for a third of its session's timeout: no request, but servers count it."""

FILE = Path(__file__).with_name("costs.json")

Series = Mapping[str, tuple[float, ...]]
"""Requests in each second, by kind; a kind that never occurs is left out."""

Rate = Mapping[str, float]
"""Requests a minute, by kind."""


Count = Mapping[str, float]
"""Requests each time, by kind."""


class Part(msgspec.Struct, frozen=True):
    """Requests of one part, for each process of its kind and for each job of that process.

    Attributes:
        steady: requests a minute in steady state: of a process, and of each job.
        takeover: requests in each second since a leader died, for each of the jobs that it led.
        outage: requests in each second since ZooKeeper went down: of a process, and of each job. The outage ends
            after :data:`OUTAGE` seconds; the series includes the recovery.
    """

    steady: tuple[Rate, Rate]
    takeover: Series
    outage: tuple[Series, Series]


class Sharing(msgspec.Struct, frozen=True):
    """Requests a minute in steady state where the contenders of a host borrow one session.

    Attributes:
        holder: of the process that holds the session of a host, however many borrow it.
            Heartbeats are those of a process with one job.
        leader: of a process that leads and borrows, and of each job.
        standby: of a process that stands by and borrows, and of each job.
    """

    holder: Rate
    leader: tuple[Rate, Rate]
    standby: tuple[Rate, Rate]


class Rounds(msgspec.Struct, frozen=True):
    """Requests of a round of replication, to the store on one side.

    Attributes:
        idle: of a round that finds no new batch.
        batch: of a round that moves a new one, without what each directory costs.
        directory: of that round, for each directory of a state store.
    """

    idle: Count
    batch: Count
    directory: Count


class WorkCosts(msgspec.Struct, frozen=True):
    """Requests that come with work, beside the steady state.

    Attributes:
        batch: a completed batch, published as a checkpoint by a driver that hears of it, with its mirror.
        look: a look at the commit logs that finds no new batch, by a sidecar whose program tells nothing.
        request: one by name: of the operator who asks, the leader that answers, and the standby.
        heard: of each host that asks about the job, for such a request.
        wait: a look for the answer.
        source: replication, where the job is.
        replica: replication, where its replica is.
        output: a batch of ``ha.spark.Output``, without its partitions and for each of them.
        sink: the same of ``format("ha")``.
    """

    batch: Count
    look: Count
    request: Count
    heard: Count
    wait: Count
    source: Rounds
    replica: Rounds
    output: tuple[Count, Count]
    sink: tuple[Count, Count]


class Costs(msgspec.Struct, frozen=True):
    """All counted costs.

    Attributes:
        leader: a process that leads jobs; it dies in a takeover, so it sends nothing then.
        standby: a process that stands by for jobs of one leader.
        agent: a process that answers the lookups of one host; its jobs are those that the host asks about.
        shared: the same in steady state, with one session a host.
        work: what comes with batches, operators' requests, replication and outputs.
        heard: seconds from a leader's death until an agent has the next one's address, on average.
        read_same: requests to the NameNode for a read that finds the known leader.
        read_changed: requests to the NameNode for a read that finds another leader.
    """

    leader: Part
    standby: Part
    agent: Part
    shared: Sharing
    work: WorkCosts
    heard: float
    read_same: int
    read_changed: int


OUTAGE = 60
"""Seconds for which ZooKeeper was down in the counted outage."""


@dataclass(frozen=True)
class Budget:
    """Promised limit of one part.

    Attributes:
        sentence: the promise.
        wanted: the limit.
        counted: the counted number.
        unit: of both.
    """

    sentence: str
    wanted: float
    counted: float
    unit: str


def load() -> Costs:
    """Read the table.

    Raises:
        OSError, msgspec.ValidationError: it is missing or damaged.
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
    # Some requests after a death are routine: those of the standby until it takes over, and those of the agent.
    extra = sum(takeover) - standby / 60 * costs.heard
    return [
        Budget("a leader costs the NameNode, a minute", 3, leader, "requests"),
        Budget("a host costs the NameNode, a minute for each job that it asks about", 2, agent, "requests"),
        # The routine part is a rate, and the count is the mean of ten runs: they agree to within a fiftieth.
        Budget("a failover costs the NameNode", 7, round(extra, 1), "requests"),
        Budget(
            "a failover costs the NameNode, for each host that asks about the job",
            1,
            round(sum(followed) - agent / 60 * len(followed), 1),
            "requests",
        ),
        Budget(
            "while ZooKeeper is away a host costs the NameNode, a second for each job",
            0.5,
            sum(asked) / OUTAGE,
            "requests",
        ),
    ]
