"""Metrics of the two stores: how long operations take and how they end, what they cost, whether ZooKeeper is there."""

import os
import re
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.settings import Settings
from ha.stores import Stores
from store.outcome import Outcome
from store.zookeeper import Connection

CALL_SECONDS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""From a list on loopback to the longest time-out that anybody sets."""

_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class StoreMetrics:
    """Listens to the stores of one process; a forked child counts nothing: nobody could ask it.

    And a lock of a metric that another thread held at the fork would be held in the child for ever.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._pid = os.getpid()
        self._calls = Histogram(
            "ha_store_call_seconds",
            "Time from when a call was given to the file system's driver, or to ZooKeeper's client, to its end: done, "
            "refused, or unknown, which is no answer in time. Waiting for a thread is not in it.",
            ["store", "operation", "outcome"],
            buckets=CALL_SECONDS,
            registry=registry,
        )
        self._requests = Counter(
            "ha_namenode_operations",
            "Requests to the NameNode, by the file operation that they were for. A call may need several operations, "
            "and an operation several requests; without a NameNode (file://) there is none.",
            ["operation"],
            registry=registry,
        )
        self._children: dict[tuple[str, str, str], Histogram] = {}

    def open(self, settings: Settings) -> Stores:
        """Open the stores, and show what happens to them.

        Raises:
            InvalidSettings: as for :class:`ha.stores.Stores`.
        """
        stores = Stores(settings, on_call=self.files_called, on_node=self.zookeeper_called, on_requests=self.requested)
        self._registry.register(_Now(stores))
        return stores

    def files_called(self, operation: str, outcome: Outcome[object]) -> None:
        """A call to the file system has ended."""
        self._called("files", operation, outcome)

    def zookeeper_called(self, operation: str, outcome: Outcome[object]) -> None:
        """An operation on ZooKeeper has ended."""
        self._called("zookeeper", operation, outcome)

    def requested(self, operation: str, requests: int) -> None:
        """An operation is about to cost the NameNode that many requests."""
        if os.getpid() == self._pid:
            self._requests.labels(operation).inc(requests)

    def _called(self, store: str, operation: str, outcome: Outcome[object]) -> None:
        if os.getpid() != self._pid:
            return
        ended = "done" if outcome.done else "refused" if outcome.refused else "unknown"
        child = self._children.get((store, operation, ended))
        if child is None:  # to find one by its labels takes longer than to count
            child = self._calls.labels(store, _INNER_CAPITAL.sub("_", operation).lower(), ended)
            self._children[store, operation, ended] = child
        child.observe(max(0.0, outcome.ended - outcome.started))


class _Now(Collector):
    """What can be seen of the stores at any time."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def collect(self) -> Iterable[Metric]:
        files, zookeeper = self._stores.files, self._stores.zookeeper
        stuck = "Calls to the file system that were given up and have not come back; from 32 on, none is sent any more."
        yield GaugeMetricFamily("ha_files_stuck_calls", stuck, files.stuck)
        late = "Calls to the file system that came back after they were given up."
        yield CounterMetricFamily("ha_files_late_calls", late, files.late)
        if zookeeper is None or not zookeeper.started:
            return
        present = zookeeper.state
        state = GaugeMetricFamily(
            "ha_zookeeper_state",
            "1 for the state of the connection to ZooKeeper, 0 for the others: connected; read-only, to a server "
            "without a quorum; suspended, the session may live on; lost. Nothing if it was not asked yet, or is not "
            "configured.",
            labels=["state"],
        )
        for each in Connection:
            state.add_metric([each.value], each is present)
        yield state
