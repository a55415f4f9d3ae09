"""Counted costs of each part of a system, in requests to the stores: the table that the model multiplies."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from benchmarks.result import Target, at_most

NAMENODE = ("namenode reads", "namenode writes")
ZOOKEEPER = ("zookeeper reads", "zookeeper syncs", "zookeeper writes", "zookeeper connections")
KINDS = NAMENODE + ZOOKEEPER  # Kinds of requests. A sync is not a write, but goes to the ensemble's leader like one.
HEARTBEATS = "zookeeper heartbeats"
"""What a client sends that has been silent for a third of its session's timeout: no request, but servers count it."""

FILE = Path(__file__).with_name("costs.json")

Series = Mapping[str, tuple[float, ...]]  # Requests in each second, by kind; a kind that never occurs is left out

Rate = Mapping[str, float]  # Requests a minute, by kind


Count = Mapping[str, float]  # Requests each time, by kind


class Part(msgspec.Struct, frozen=True):
    """Requests of one part, for each process of its kind and for each job of that process."""

    steady: tuple[Rate, Rate]  # requests a minute in steady state: of a process, and of each job
    takeover: Series  # requests in each second since a leader died, for each of the jobs that it led
    # requests in each second since ZooKeeper went down: of a process, and of each job. The outage ends after
    # :data:`OUTAGE` seconds; the series includes the recovery.
    outage: tuple[Series, Series]


class Sharing(msgspec.Struct, frozen=True):
    """Requests a minute in steady state where the contenders of a host borrow one session."""

    # of the process that holds the session of a host, however many borrow it. Heartbeats are those of a process
    # with one job.
    holder: Rate
    leader: tuple[Rate, Rate]  # of a process that leads and borrows, and of each job
    standby: tuple[Rate, Rate]  # of a process that stands by and borrows, and of each job


class Rounds(msgspec.Struct, frozen=True):
    """Requests of a round of replication, to the store on one side."""

    idle: Count  # of a round that finds no new batch
    batch: Count  # of a round that moves a new one, without what each directory costs
    directory: Count  # of that round, for each directory of a state store


class WorkCosts(msgspec.Struct, frozen=True):
    """Requests that come with work, beside the steady state."""

    batch: Count  # a completed batch, published as a checkpoint by a driver that hears of it, with its mirror
    look: Count  # a look at the commit logs that finds no new batch, by a sidecar whose program tells nothing
    request: Count  # one by name: of the operator who asks, the leader that answers, and the standby
    heard: Count  # of each host that asks about the job, for such a request
    wait: Count  # a look for the answer
    source: Rounds  # replication, where the job is
    replica: Rounds  # replication, where its replica is
    output: tuple[Count, Count]  # a batch of ``ha.spark.Output``, without its partitions and for each of them
    sink: tuple[Count, Count]  # the same of ``format("ha")``


class Costs(msgspec.Struct, frozen=True):
    """All counted costs."""

    leader: Part  # a process that leads jobs; it dies in a takeover, so it sends nothing then
    standby: Part  # a process that stands by for jobs of one leader
    agent: Part  # a process that answers the lookups of one host; its jobs are those that the host asks about
    shared: Sharing  # the same in steady state, with one session a host
    work: WorkCosts  # what comes with batches, operators' requests, replication and outputs
    heard: float  # seconds from a leader's death until an agent has the next one's address, on average
    read_same: int  # requests to the NameNode for a read that finds the known leader
    read_changed: int  # requests to the NameNode for a read that finds another leader


OUTAGE = 60  # Seconds for which ZooKeeper was down in the counted outage


def load() -> Costs:
    return msgspec.json.decode(FILE.read_bytes(), type=Costs)


def of(store: tuple[str, ...], series: Series) -> list[float]:
    """Return the requests to one store in each second."""
    longest = max((len(each) for each in series.values()), default=0)
    return [sum(series[kind][second] for kind in store if kind in series) for second in range(longest)]


def rate(store: tuple[str, ...], rates: Rate) -> float:
    return sum(rates.get(kind, 0.0) for kind in store)


def budgets(costs: Costs) -> list[Target]:
    """Compare the promises of the NameNode's budget with what was counted."""
    leader, standby, agent = (rate(NAMENODE, part.steady[1]) for part in (costs.leader, costs.standby, costs.agent))
    takeover, followed = (of(NAMENODE, part.takeover) for part in (costs.standby, costs.agent))
    asked = sum(of(NAMENODE, costs.agent.outage[1])[:OUTAGE]) / OUTAGE
    # Some requests after a death are routine: those of the standby until it takes over, and those of the agent.
    extra = sum(takeover) - standby / 60 * costs.heard
    news = sum(followed) - agent / 60 * len(followed)
    # The routine part is a rate, and the count is the mean of ten runs: they agree to within a fiftieth.
    found = {
        "a leader costs the NameNode, a minute": (3, leader),
        "a host costs the NameNode, a minute for each job that it asks about": (2, agent),
        "a failover costs the NameNode": (7, round(extra, 1)),
        "a failover costs the NameNode, for each host that asks about the job": (1, round(news, 1)),
        "while ZooKeeper is away a host costs the NameNode, a second for each job": (0.5, asked),
    }
    return [at_most(what, wanted, counted, "requests") for what, (wanted, counted) in found.items()]
