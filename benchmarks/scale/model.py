"""Model of many jobs, hosts and readers: the counted costs of each part, added up over time.

The model is discrete, with steps of one second. Routine requests happen at independent moments, so many processes
together send them evenly. Reactions to a common event (a notice to all, deaths at the same time) are added up as
counted. The model has no overload: the figures are the requests sent to a store.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from benchmarks.scale.costs import NAMENODE, ZOOKEEPER, Costs, Part, of, rate

BEFORE = 15  # Seconds shown before the event
DYING = 1.0  # Seconds within which the leaders of a storm die

Load = list[float]  # Requests in each second


@dataclass(frozen=True)
class Fleet:
    """Numbers of jobs, hosts and readers."""

    jobs: int = 50_000  # each has a leader and a standby
    hosts: int = 15_000  # hosts with readers; each has an agent
    readers: int = 1_000_000  # processes that ask for the leader of one job each
    jobs_per_host: int = 20  # different jobs that the readers of a host ask about
    jobs_per_contender: int = 1  # jobs of one contending process; 1 is ``ha run``, more is ``ha host daemon``
    # whether the contenders of a host borrow one session. They are spread over all hosts.
    shares_sessions: bool = False

    @property
    def contenders(self) -> int:
        """Number of leading processes; equally many stand by."""
        return ceil(self.jobs / self.jobs_per_contender)

    @property
    def asked(self) -> int:
        """Number of pairs of a host and a job that it asks about."""
        return self.hosts * self.jobs_per_host


@dataclass(frozen=True)
class Loads:
    """Requests to both stores, in each second."""

    namenode: Load
    zookeeper: Load


def steady(fleet: Fleet, costs: Costs) -> tuple[float, float]:
    """Return the requests a second to the NameNode and to ZooKeeper in steady state."""
    namenode, zookeeper = (sum(_habits(fleet, costs, store)) / 60 for store in (NAMENODE, ZOOKEEPER))
    return namenode, zookeeper


def _habits(fleet: Fleet, costs: Costs, store: tuple[str, ...]) -> Iterable[float]:
    steady = [(part.steady, processes, jobs) for part, processes, jobs in _parts(fleet, costs)]
    if fleet.shares_sessions:
        holders = min(fleet.hosts, 2 * fleet.contenders)
        steady[:2] = [(each, fleet.contenders, fleet.jobs) for each in (costs.shared.leader, costs.shared.standby)]
        steady.append(((costs.shared.holder, {}), holders, 0))
    for (of_process, of_job), processes, jobs in steady:
        yield processes * rate(store, of_process)
        yield jobs * rate(store, of_job)


def _parts(fleet: Fleet, costs: Costs) -> tuple[tuple[Part, int, int], ...]:
    return (
        (costs.leader, fleet.contenders, fleet.jobs),
        (costs.standby, fleet.contenders, fleet.jobs),
        (costs.agent, fleet.hosts, fleet.asked),
    )


def outage(fleet: Fleet, costs: Costs) -> Loads:
    """Return the loads if ZooKeeper is down for everybody for :data:`benchmarks.scale.costs.OUTAGE` seconds."""
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
    """Return the loads when a share of all leading processes dies within a second, at independent moments."""
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
        # Unaffected processes go on as before; a takeover's counts include routine requests of the affected ones.
        each_brings = [-habits / max(dead, 1)] * longest
        for part, number in takeovers:
            for second, value in enumerate(of(store, part.takeover)):
                each_brings[second] += value * number / max(dead, 1)
        for death in deaths:
            _lay(load, each_brings, death, 1)
        loads.append([max(0.0, each) for each in load])
    return Loads(*loads)


def _lay(load: Load, series: list[float], begins: float, number: float) -> None:
    """Add a series that begins at a time, a number of times; a begin between two seconds is split between both."""
    first = int(begins)
    late = begins - first
    for second, value in enumerate(series, first):
        if second < len(load):
            load[second] += number * value * (1 - late)
        if late and second + 1 < len(load):
            load[second + 1] += number * value * late
