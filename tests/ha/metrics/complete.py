"""A registry in which every metric of the project has samples, with all of its labels; made by what makes them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from ha.agent.alone import agent_of, reader_of
from ha.metrics.contending import ContendingMetrics
from ha.metrics.process import Metrics
from ha.metrics.standing import Standing
from ha.metrics.supervising import Restarts
from ha.settings import Settings
from leader.environment import FilesAnswer, Line, NodeAnswer, Sign, Timer
from leader.events import FilesCommand, Grant, Rename
from leader.lease import Lease, Mode
from leader.names import LeaderDirectory
from leader.nodes import NodeCommand
from leader.whereabouts import Whereabouts
from store.clock import now
from tests.ha.led import session
from tests.ha.waiting import wait_until

LEADS: dict[str, Any] = {
    "is_leader": True,
    "belief_seconds": 12.5,
    "epoch": 7,
    "copy_epoch": 6,
    "copy_repairs": 3,
    "zookeeper": True,
    "command": {"memory_bytes": 512_000_000},
}
"""What a node says of a job that it leads, and whose record in ZooKeeper is one epoch behind."""


class _Nothing:
    """An environment in which nothing is ever answered."""

    def now(self) -> float:
        return now()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        raise NotImplementedError

    def run_files(self, job: str, command: FilesCommand, answer: FilesAnswer) -> None:
        """Not answered."""

    def run_node(self, command: NodeCommand, answer: NodeAnswer, changed: Callable[[], None]) -> None:
        """Not answered."""

    def call(self, where: Whereabouts, heard: Callable[[Sign], None]) -> Line:
        raise NotImplementedError


@contextmanager
def complete(settings: Settings, led: str) -> Iterator[CollectorRegistry]:
    """Such a registry; ``led`` is a job that has a leader, below the settings' root."""
    metrics = Metrics()
    contending = ContendingMetrics(metrics.registry, metrics.changes)
    environment = contending.environment(_Nothing(), "a")
    before, after = (Lease(number, Mode.HDFS, 6000, session(number), "", "a") for number in (1, 2))
    record = f"{LeaderDirectory(6, session(6)).name}/record"
    environment.run_files(led, Rename(f"{record}/{before.name}", f"{record}/{after.name}"), lambda _: None)
    contending.granted(led, Grant(7, session(7), "released"), now())
    metrics.registry.register(Standing(lambda: {led: LEADS}))
    Restarts(metrics.registry, led).count()
    metrics.stores.requested("list", 1)  # by a driver of HDFS
    stores = metrics.stores.open(settings)
    reader = reader_of(stores)
    metrics.lookups.fallbacks(reader)
    agent = agent_of(stores, reader, [], metrics)
    try:
        agent.warm.want(led)
        wait_until(lambda: agent.warm.latest(led), what="the agent has looked")
        yield metrics.registry
    finally:
        agent.close()
        stores.close()
