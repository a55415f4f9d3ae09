"""Metrics that every process has, in one registry: of its stores, its lookups, and the leader changes that they see."""

import os
import re
import threading
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from leader.lookup.answers import Answer, Look, Source
from leader.lookup.observed import LookupEnded
from leader.lookup.reader import Reader
from store.bounded import BoundedFiles
from store.clock import now
from store.counting import listen
from store.kerberos import ticket
from store.outcome import Outcome
from store.zookeeper import Connection, ZooKeeper

LOOKUP_SECONDS = (0.00001, 0.00002, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0)
"""From a snapshot in memory to beyond the usual time-out; the guarantees speak of 0.1 s and 2 s."""

FALLBACKS = ("error", "no_node", "mismatch", "unverified", "undecodable", "none")
"""Why a reader asked HDFS; see ``Reader.fallbacks``."""

NOWHERE = "none"  # the source of a lookup that had no answer

USUAL = (*((source.value, "answered") for source in Source), (NOWHERE, "no_leader"), (NOWHERE, "unreachable"))
"""Sources with the outcomes that everybody sees sooner or later."""


class LeaderChanges:
    """Counts epochs of jobs, and each is one grant; several sources may report the same one."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._changes = Counter(
            "ha_leader_changes",
            "Grants of a job to any process since this one first looked.",
            ["job_name"],
            registry=registry,
        )
        self._highest: dict[str, int] = {}
        self._lock = threading.Lock()

    def saw(self, job: str, epoch: int) -> None:
        """Take note that HDFS, and not ZooKeeper alone, has said that this is the job's epoch."""
        if self._highest.get(job, -1) >= epoch:
            return
        with self._lock:
            known = self._highest.get(job, epoch)
            if epoch >= known:
                self._highest[job] = epoch
                self._changes.labels(job).inc(epoch - known)  # 0 at first, so that the series is there


class LookupMetrics:
    """Counts lookups; in a forked child nothing, as in :class:`ha.metrics.process_metrics.StoreMetrics`."""

    def __init__(self, registry: CollectorRegistry, changes: LeaderChanges) -> None:
        self._registry = registry
        self._changes = changes
        self._pid = os.getpid()
        self._lookups = Counter(
            "ha_lookups",
            "Lookups of a leader by this process and its agent, by source of the answer and outcome.",
            ["source", "outcome"],
            registry=registry,
        )
        for source, outcome in USUAL:  # shown from the start, so that ``increase`` sees the first
            self._lookups.labels(source, outcome)
        self._seconds = Histogram(
            "ha_lookup_seconds",
            "Duration of such a lookup. A watch, which waits for changes, is not timed.",
            ["source"],
            buckets=LOOKUP_SECONDS,
            registry=registry,
        )

    def observe(self, job: str, happened: object) -> None:
        """Count a lookup that has ended, or a look of the agent: a :data:`leader.observer.Observer`."""
        if os.getpid() != self._pid:
            return
        match happened:
            case LookupEnded(started, ended, timeout, answer, reached):
                seconds = ended - started if timeout is not None else None  # a watch waits for changes
                self._ended(answer, seconds, reached=reached)
            case Look(started, answer, reached, known):
                self._ended(answer, now() - started, reached=reached)
                if known is not None and known.verified:
                    self._changes.saw(job, known.epoch)

    def show_fallbacks(self, reader: Reader) -> None:
        """Show why this reader asked HDFS."""
        self._registry.register(_Fallbacks(reader))

    def _ended(self, answer: Answer | None, seconds: float | None, *, reached: bool) -> None:
        if answer is None:
            source, outcome = NOWHERE, "no_leader" if reached else "unreachable"
        else:
            source, outcome = answer.source.value, "stale" if answer.stale else "answered"
        self._lookups.labels(source, outcome).inc()
        if seconds is not None:
            self._seconds.labels(source).observe(seconds)
        if answer is not None and answer.verified:
            self._changes.saw(answer.job, answer.epoch)


class _Fallbacks(Collector):
    """Shows what a reader has counted itself."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def collect(self) -> Iterable[Metric]:
        meaning = "Lookups that asked HDFS, by what was wrong with ZooKeeper's record."
        shown = CounterMetricFamily("ha_lookup_fallbacks", meaning, labels=["reason"])
        for reason, count in {**dict.fromkeys(FALLBACKS, 0), **self._reader.fallbacks}.items():
            shown.add_metric([reason], count)
        yield shown


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
