"""Metrics that every process has, in one registry: of its stores and its lookups."""

import os
import re
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.metrics.lookups import LeaderChanges, LookupMetrics
from store.bounded import BoundedFiles
from store.counting import listen
from store.kerberos import ticket
from store.outcome import Outcome
from store.zookeeper import Connection, ZooKeeper

CALL_SECONDS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""From a list on loopback to the longest time-out that is usual."""

_INNER_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Metrics:
    """Metrics of stores and lookups. A process that contends, or is an agent, adds its own."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        # registry: the program's own; None for one of this process, which then shows its memory and time as well.
        # ValueError: the registry has them already.
        if registry is None:
            registry = CollectorRegistry()
            ProcessCollector(registry=registry)
            # Each counter would have a second series that says when it began to count.
            disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry
        self.changes = LeaderChanges(registry)
        self.stores = StoreMetrics(registry)
        self.lookups = LookupMetrics(registry, self.changes)


class StoreMetrics(Collector):
    """Times every call of a store of this process, for as long as the registry lives.

    That includes what other clients, leaderships, outputs and checkpoint copies of the process do. A forked child
    counts nothing: it serves no metrics, and a metric's lock that was held at the fork would stay locked for ever.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._pid = os.getpid()
        self._shown: tuple[BoundedFiles, ZooKeeper | None] | None = None
        self._calls = Histogram(
            "ha_store_call_seconds",
            "Time of a call in the driver of a store, to its end: done, refused, or unknown (no answer).",
            ["store", "operation", "outcome"],
            buckets=CALL_SECONDS,
            registry=registry,
        )
        self._requests = Counter(
            "ha_namenode_operations",
            "Requests to the NameNode, by the file operation that they belong to.",
            ["operation"],
            registry=registry,
        )
        self._children: dict[tuple[str, str, str], Histogram] = {}
        registry.register(self)
        listen(self)

    def show(self, files: BoundedFiles, zookeeper: ZooKeeper | None) -> None:
        """Show the state of the process's own stores as well."""
        self._shown = files, zookeeper

    def call_ended(self, store: str, operation: str, outcome: Outcome[object]) -> None:
        """See :class:`store.counting.CallListener`."""
        if os.getpid() != self._pid:
            return
        ended = "done" if outcome.done else "refused" if outcome.refused else "unknown"
        child = self._children.get((store, operation, ended))
        if child is None:  # finding one by its labels takes longer than counting
            child = self._calls.labels(store, _INNER_CAPITAL.sub("_", operation).lower(), ended)
            self._children[store, operation, ended] = child
        child.observe(max(0.0, outcome.ended - outcome.started))

    def requests_sent(self, operation: str, requests: int) -> None:
        """See :class:`store.counting.CallListener`."""
        if os.getpid() == self._pid:
            self._requests.labels(operation).inc(requests)

    def collect(self) -> Iterable[Metric]:
        """Return the state of the process's own stores, and of its Kerberos ticket."""
        yield from _ticket()
        if self._shown is None:
            return
        files, zookeeper = self._shown
        stuck = "Calls to the file system that were given up and have not come back; at 32, further calls are refused."
        yield GaugeMetricFamily("ha_files_stuck_calls", stuck, files.stuck)
        late = "Calls to the file system that came back after they were given up."
        yield CounterMetricFamily("ha_files_late_calls", late, files.late)
        if zookeeper is None or not zookeeper.started:
            return
        meaning = "1 for the state of the connection to ZooKeeper, 0 for the others."
        state = GaugeMetricFamily("ha_zookeeper_state", meaning, labels=["state"])
        present = zookeeper.state
        for each in Connection:
            state.add_metric([each.value], each is present)
        meaning = "How often ZooKeeper was there and refused this process, by why."
        refused = CounterMetricFamily("ha_zookeeper_refusals", meaning, labels=["reason"])
        for reason, times in zookeeper.refusals.items():
            refused.add_metric([reason.value], times)
        yield from (state, refused)


def _ticket() -> Iterable[Metric]:
    """Return how long the ticket of this process lasts; nothing if it has none, or none in a file."""
    found = ticket()
    if found is not None:
        left = "Time until the Kerberos ticket of this process ends, below 0 after that; absent without one in a file."
        yield GaugeMetricFamily("ha_kerberos_ticket_seconds", left, found[0])
        whole = "Time for which that ticket lasts altogether, from when it was issued."
        yield GaugeMetricFamily("ha_kerberos_ticket_life_seconds", whole, found[1])
