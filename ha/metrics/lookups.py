"""Metrics of lookups: where answers come from, how long they take, why HDFS was asked, and leader changes."""

import os
import threading
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from leader.lookup.answers import Answer, Look, Source
from leader.lookup.observed import LookupEnded
from leader.lookup.reader import Reader
from store.clock import now

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
