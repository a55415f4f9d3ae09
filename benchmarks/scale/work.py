"""Model of what the jobs of a fleet do beside the steady state: batches, outputs, requests by name and replication."""

from dataclasses import dataclass

from benchmarks.scale.costs import NAMENODE, ZOOKEEPER, Count, Rounds, WorkCosts, rate
from benchmarks.scale.model import Fleet
from ha.cli.requests import POLL_S
from ha.spark.queries.checkpoint_publisher import LATEST_S, SOONEST_S

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
