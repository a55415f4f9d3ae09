"""Model of many jobs, hosts and readers: the counted costs of each part, added up over time.

The model is discrete, with steps of one second. Routine requests happen at independent moments, so many processes
together send them evenly. Reactions to a common event (a notice to all, deaths at the same time) are added up as
counted. The model has no overload: the figures are the requests sent to a store.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from benchmarks.scale.costs import NAMENODE, ZOOKEEPER, Costs, Count, Part, Rounds, WorkCosts, of, rate
from ha.cli.requests import POLL_S
from ha.spark.queries.checkpoint_publisher import LATEST_S, SOONEST_S

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


def storm(fleet: Fleet, costs: Costs, share: float) -> Loads:
    """Return the loads when a share of all leading processes dies within a second, at independent moments."""
    dice = random.Random(0)  # noqa: S311  # to be drawn again, not secret
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


# --- what the jobs do beside the steady state: batches, outputs, requests by name and replication


DAY = 86_400

Asked = tuple[float, float]  # Requests a second to the NameNode and to ZooKeeper


@dataclass(frozen=True)
class Work:
    """What each job does."""

    every: float = 60.0  # seconds between two batches
    partitions: int = 4  # of its output
    requests: float = 1.0  # of operators, in a day
    answered: float = 5.0  # seconds until one is answered
    replicated: float = 0.1  # share of the jobs that are replicated
    directories: int = 8  # of state stores in the checkpoint of each of those
    round: float = 1.0  # seconds between two rounds of a replication


def batches(fleet: Fleet, work: Work, costs: WorkCosts) -> Asked:
    """Return what it costs to publish the checkpoints of all batches, by drivers that hear of them."""
    return _asked((fleet.jobs / work.every, costs.batch))


def looked_for(fleet: Fleet, work: Work, costs: WorkCosts) -> Asked:
    """Return the same if sidecars look at the commit logs, because programs tell nothing: ``ha run --spark``."""
    a_second = fleet.jobs / work.every
    in_vain = a_second * max(0.0, looks(work.every) - 1)
    one_list_more = {"namenode reads": 1.0}  # a look at all queries lists these as well
    return _asked((a_second, costs.batch), (a_second, one_list_more), (in_vain, costs.look))


def outputs(fleet: Fleet, work: Work, of_batch: tuple[Count, Count]) -> Asked:
    """Return what it costs to publish one output a job."""
    a_second = fleet.jobs / work.every
    return _asked((a_second, of_batch[0]), (a_second * work.partitions, of_batch[1]))


def requests(fleet: Fleet, work: Work, costs: WorkCosts) -> Asked:
    """Return what operators' requests by name cost."""
    a_second = fleet.jobs * work.requests / DAY
    return _asked(
        (a_second, costs.request),
        (a_second * fleet.asked / fleet.jobs, costs.heard),
        (a_second * work.answered / POLL_S, costs.wait),
    )


def replication(fleet: Fleet, work: Work, side: Rounds) -> Asked:
    """Return what replication costs the stores on one side; a round that finds a batch is one of all rounds."""
    jobs = fleet.jobs * work.replicated
    news = min(1 / work.every, 1 / work.round)
    return _asked(
        (jobs * (1 / work.round - news), side.idle),
        (jobs * news, side.batch),
        (jobs * news * work.directories, side.directory),
    )


def looks(every: float, batches: int = 100) -> float:
    """Return how many looks of a sidecar come to a batch; the pause doubles after a look that finds none."""
    at, pause, found, made = 0.0, SOONEST_S, 0, 0
    while found < batches:
        at, made = at + pause, made + 1
        completed = int(at / every)
        pause = SOONEST_S if completed > found else min(LATEST_S, 2 * pause)
        found = max(found, completed)
    return made / found


def _asked(*times: tuple[float, Count]) -> Asked:
    """Add up what happens so often in a second, and costs that each time."""
    namenode, zookeeper = (sum(often * rate(store, count) for often, count in times) for store in (NAMENODE, ZOOKEEPER))
    return namenode, zookeeper
