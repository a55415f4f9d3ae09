"""What a process needs to be its host's agent: stores, a reader of them, metrics; and no contender."""

from collections.abc import Iterable
from typing import Any

from ha.agent.agent import Agent
from ha.metrics.answering import Answering
from ha.metrics.process import Metrics
from ha.settings import Settings
from ha.stores import Stores
from leader.reader import Reader


def reader_of(stores: Stores) -> Reader:
    """Return a reader that asks the stores itself."""
    return Reader(stores.files, stores.zookeeper, stores.timing, audit=stores.settings.audit)


def agent_of(stores: Stores, reader: Reader, jobs: Iterable[str], metrics: Metrics | None = None) -> Agent:
    """Return the agent of a process with these stores.

    Args:
        stores: of the process.
        reader: asks them.
        jobs: kept warm whether anybody asks or not.
        metrics: tell of the agent; None for nobody.
    """
    settings = stores.settings
    looks = metrics.lookups.looks(reader) if metrics is not None else reader
    agent = Agent(looks, stores.snapshots, jobs, audit=settings.audit, fresh=settings.fresh)
    if metrics is not None:
        metrics.registry.register(Answering(agent))
    return agent


class Alone:
    """The process of ``ha agent``, as the HTTP API shows it."""

    def __init__(self, settings: Settings) -> None:
        """Connect to nothing yet.

        Raises:
            InvalidSettings: an address is not one.
        """
        self.metrics = Metrics()
        self.stores = self.metrics.stores.open(settings)
        self.own_reader = reader_of(self.stores)
        self.reader = self.metrics.lookups.lookups(self.stores.history.lookups(self.own_reader))
        self.metrics.lookups.fallbacks(self.own_reader)

    def statuses(self) -> dict[str, dict[str, Any]]:
        """It contends for nothing."""
        return {}

    def close(self) -> None:
        """Let go of the stores."""
        self.stores.close()
