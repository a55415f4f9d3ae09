"""Many jobs, hosts and readers: the counted costs of each part, laid over each other in time.

Discrete, one second a step. Whoever does something by habit does it at a moment of its own, so many of them together
are even; what all are told of at the same moment, or what died together, is laid over each other as it was counted.
Nothing here slows down when a store is overloaded: the figures are what is asked of it.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from benchmarks.scale.costs import NAMENODE, OUTAGE, ZOOKEEPER, Costs, Part, of, rate

BEFORE = 15
"""Seconds shown before something happens."""

POLL = 30.0
"""Seconds in which a reader of the comparison asks HDFS once."""

DYING = 1.0
"""Seconds within which the leaders of a storm die."""

Load = list[float]
"""Requests in each second."""


@dataclass(frozen=True)
class Fleet:
    """How many of each there are.

    Attributes:
        jobs: each has a leader and a standby.
        hosts: those that readers are on; each has an agent.
        readers: processes that ask who leads one job.
        jobs_per_host: different jobs that the readers of a host ask about.
        jobs_per_contender: jobs that one contending process has; 1 is ``ha run``, more is ``ha daemon``.
    """

    jobs: int = 50_000
    hosts: int = 15_000
    readers: int = 1_000_000
    jobs_per_host: int = 20
    jobs_per_contender: int = 1

    @property
    def contenders(self) -> int:
        """Processes that lead, and as many that stand by."""
        return ceil(self.jobs / self.jobs_per_contender)

    @property
    def asked(self) -> int:
        """Pairs of a host and a job that it asks about."""
        return self.hosts * self.jobs_per_host


@dataclass(frozen=True)
class Loads:
    """What is asked of both stores, in each second."""

    namenode: Load
    zookeeper: Load


def steady(fleet: Fleet, costs: Costs) -> tuple[float, float]:
    """Return the requests a second to the NameNode and to ZooKeeper while nothing happens."""
    namenode, zookeeper = (sum(_habits(fleet, costs, store)) / 60 for store in (NAMENODE, ZOOKEEPER))
    return namenode, zookeeper


def _habits(fleet: Fleet, costs: Costs, store: tuple[str, ...]) -> Iterable[float]:
    for part, processes, jobs in _parts(fleet, costs):
        yield processes * rate(store, part.steady[0])
        yield jobs * rate(store, part.steady[1])


def _parts(fleet: Fleet, costs: Costs) -> tuple[tuple[Part, int, int], ...]:
    return (
        (costs.leader, fleet.contenders, fleet.jobs),
        (costs.standby, fleet.contenders, fleet.jobs),
        (costs.agent, fleet.hosts, fleet.asked),
    )


def outage(fleet: Fleet, costs: Costs) -> Loads:
    """ZooKeeper goes away for everybody at once, for :data:`benchmarks.scale.costs.OUTAGE` seconds."""
    loads = []
    for store, before in zip((NAMENODE, ZOOKEEPER), steady(fleet, costs), strict=True):
        longest = max(len(of(store, series)) for part, _, _ in _parts(fleet, costs) for series in part.outage)
        load = [before] * BEFORE + [0.0] * longest
        for part, processes, jobs in _parts(fleet, costs):
            for series, number in zip(part.outage, (processes, jobs), strict=True):
                _lay(load, of(store, series), BEFORE, number)
        loads.append(load)
    return Loads(*loads)


def storm(fleet: Fleet, costs: Costs, share: float, seed: int = 0) -> Loads:
    """A share of all leading processes dies within a second, each at a moment of its own.

    Args:
        fleet: how many there are.
        costs: what each of them costs.
        share: of the leading processes, from 0 to 1.
        seed: of the dice that say when each dies.
    """
    dice = random.Random(seed)  # noqa: S311  # to be drawn again, not secret
    dead = round(fleet.contenders * share)
    deaths = [BEFORE + dice.random() * DYING for _ in range(dead)]
    jobs = fleet.jobs * dead / fleet.contenders
    asked = fleet.asked * jobs / fleet.jobs
    loads = []
    for store, before in zip((NAMENODE, ZOOKEEPER), steady(fleet, costs), strict=True):
        takeovers = [(costs.standby, jobs), (costs.agent, asked)]
        longest = max(len(of(store, part.takeover)) for part, _ in takeovers)
        load = [before] * (BEFORE + longest)
        gone = [(costs.leader.steady[0], dead), (costs.leader.steady[1], jobs)]
        gone += [(part.steady[1], number) for part, number in takeovers]
        habits = sum(rate(store, rates) * number for rates, number in gone) / 60
        for death in deaths:
            # What those do that have nothing to do with it goes on; the habits of the others are in what was counted.
            _lay(load, [-habits / dead] * longest, death, 1)
            for part, number in takeovers:
                _lay(load, of(store, part.takeover), death, number / dead)
        loads.append([max(0.0, each) for each in load])
    return Loads(*loads)


def polling(fleet: Fleet, costs: Costs, every: float = POLL) -> Load:
    """Return what the readers alone ask of the NameNode if each of them polls it while ZooKeeper is away.

    Spread evenly, as with a perfect jitter, which favours it.
    """
    during = fleet.readers * costs.read_same / every
    return [0.0] * BEFORE + [during] * OUTAGE + [0.0] * BEFORE


def on_change(fleet: Fleet, costs: Costs, share: float, seed: int = 0) -> Load:
    """Return what the readers alone ask of the NameNode if each of them reads HDFS when its leader has changed.

    All of them are told when an agent would have been.
    """
    dice = random.Random(seed)  # noqa: S311  # to be drawn again, not secret
    dead = round(fleet.jobs * share)
    load = [0.0] * (BEFORE + ceil(costs.heard) + BEFORE)
    for _ in range(dead):
        told = BEFORE + dice.random() * DYING + costs.heard
        load[int(told)] += fleet.readers / fleet.jobs * costs.read_changed
    return load


def _lay(load: Load, series: list[float], begins: float, number: float) -> None:
    """Add so many of a series that begin then; one that begins between two seconds falls into both."""
    first = int(begins)
    late = begins - first
    for second, value in enumerate(series, first):
        if second < len(load):
            load[second] += number * value * (1 - late)
        if late and second + 1 < len(load):
            load[second + 1] += number * value * late
