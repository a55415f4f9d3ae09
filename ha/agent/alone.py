"""What a process needs to be its host's agent: stores, a reader of them, metrics; and no contender."""

from collections.abc import Iterable
from typing import Any

from ha.agent.agent import Agent
from ha.metrics import Metrics
from ha.settings import Settings
from ha.stores import Stores
from leader.reader import Reader


def reader_of(stores: Stores) -> Reader:
    """Return a reader that asks the stores itself."""
    return Reader(stores.files, stores.zookeeper, stores.timing, audit=stores.settings.audit)


def agent_of(stores: Stores, reader: Reader, jobs: Iterable[str]) -> Agent:
    """Return the agent of a process with these stores; ``jobs`` are kept warm whether anybody asks or not."""
    settings = stores.settings
    return Agent(reader, stores.snapshots, jobs, audit=settings.audit, fresh=settings.fresh)


class Alone:
    """The process of ``ha agent``, as the HTTP API shows it."""

    def __init__(self, settings: Settings) -> None:
        """Connect to nothing yet.

        Raises:
            InvalidSettings: an address is not one.
        """
        self.metrics = Metrics()
        self.stores = Stores(settings, on_call=self.metrics.called)
        self.own_reader = reader_of(self.stores)
        self.reader = self.stores.history.lookups(self.own_reader)

    def statuses(self) -> dict[str, dict[str, Any]]:
        """It contends for nothing."""
        return {}

    def exposition(self) -> Metrics:
        """Return the metrics."""
        return self.metrics

    def close(self) -> None:
        """Let go of the stores."""
        self.stores.close()
