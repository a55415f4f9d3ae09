"""Metrics of lookups: where answers come from, how long they take, and why ZooKeeper would not do."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.agent.warm import Looks
from ha.history.opening import Lookups
from ha.metrics.changes import LeaderChanges
from leader.answers import Answer, Look
from leader.errors import NoLeader, Unreachable
from leader.reader import Reader
from leader.retrieval import Source
from store.clock import now

LOOKUP_SECONDS = (0.00001, 0.00002, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0)
"""From a snapshot in memory to beyond the usual time-out; what is promised is promised within 0.1 s and 2 s."""

FALLBACKS = ("error", "no_node", "mismatch", "undecodable", "none")
"""Why a reader asked HDFS; see ``Reader.fallbacks``."""

NOWHERE = "none"
"""The source of an answer that there was not."""

USUAL = (*((source.value, "answered") for source in Source), (NOWHERE, "no_leader"), (NOWHERE, "unreachable"))
"""Sources with the outcomes that everybody sees sooner or later."""


class LookupMetrics:
    """Stands before readers; a forked child counts nothing, as in :class:`ha.metrics.stores.StoreMetrics`."""

    def __init__(self, registry: CollectorRegistry, changes: LeaderChanges) -> None:
        self._registry = registry
        self._changes = changes
        self._pid = os.getpid()
        self._lookups = Counter(
            "ha_lookups",
            "Lookups of a leader by this process and its agent, by who told (snapshot, zookeeper, hdfs; none if there "
            "is no leader or nobody answered) and outcome: answered, stale, no_leader, unreachable.",
            ["source", "outcome"],
            registry=registry,
        )
        for source, outcome in USUAL:  # from the start, so that the first is one to ``increase``
            self._lookups.labels(source, outcome)
        self._seconds = Histogram(
            "ha_lookup_seconds",
            "Time that such a lookup took. A watch, which waits for changes, has none.",
            ["source"],
            buckets=LOOKUP_SECONDS,
            registry=registry,
        )

    def lookups(self, lookups: Lookups) -> Lookups:
        """Return the same lookups, counted."""
        return _Lookups(lookups, self._ended)

    def looks(self, reader: Looks) -> Looks:
        """Return the same looks, counted."""
        return _Looks(reader, self._looked)

    def fallbacks(self, reader: Reader) -> None:
        """Show why this reader asked HDFS."""
        self._registry.register(_Fallbacks(reader))

    def _looked(self, job: str, look: Look, seconds: float) -> None:
        outcome = "answered" if look.answer else "no_leader" if look.reached else "unreachable"
        self._ended(look.answer, outcome, seconds)
        if look.known is not None and look.known.verified and os.getpid() == self._pid:
            self._changes.saw(job, look.known.epoch)

    def _ended(self, answer: Answer | None, outcome: str, seconds: float | None) -> None:
        if os.getpid() != self._pid:
            return
        source = answer.source.value if answer is not None else NOWHERE
        self._lookups.labels(source, "stale" if answer is not None and answer.stale else outcome).inc()
        if seconds is not None:
            self._seconds.labels(source).observe(seconds)
        if answer is not None and answer.verified:
            self._changes.saw(answer.job, answer.epoch)


class _Lookups:
    """Stands before a reader that somebody asks."""

    def __init__(self, lookups: Lookups, ended: Callable[[Answer | None, str, float | None], None]) -> None:
        self._lookups = lookups
        self._ended = ended

    def leader(self, job: str, timeout: float = 2.0, *, stale: bool = False) -> Answer:
        return self._measured(lambda: self._lookups.leader(job, timeout, stale=stale))

    def report(self, job: str, session_id: str, timeout: float = 2.0) -> Answer:
        return self._measured(lambda: self._lookups.report(job, session_id, timeout))

    def watch(self, job: str, stop: threading.Event, timeout: float = 2.0) -> Iterator[Answer | None]:
        for answer in self._lookups.watch(job, stop, timeout):
            self._ended(answer, "no_leader" if answer is None else "answered", None)
            yield answer

    def _measured(self, look: Callable[[], Answer]) -> Answer:
        started = now()
        try:
            answer = look()
        except (NoLeader, Unreachable) as error:
            self._ended(None, "no_leader" if isinstance(error, NoLeader) else "unreachable", now() - started)
            raise
        self._ended(answer, "answered", now() - started)
        return answer


class _Looks:
    """Stands before a reader that an agent asks."""

    def __init__(self, reader: Looks, looked: Callable[[str, Look, float], None]) -> None:
        self._reader = reader
        self._looked = looked

    def looks(
        self, job: str, stop: threading.Event, timeout: float = 2.0, *, every: float = float("inf")
    ) -> Iterator[Look]:
        for look in self._reader.looks(job, stop, timeout, every=every):
            self._looked(job, look, now() - look.started)
            yield look


class _Fallbacks(Collector):
    """What a reader has counted itself."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def collect(self) -> Iterable[Metric]:
        counted = dict(self._reader.fallbacks)
        shown = CounterMetricFamily(
            "ha_lookup_fallbacks",
            "Looks that asked HDFS, by why ZooKeeper would not do: error, or no answer in time; no_node, no record; "
            "mismatch, older than what is known or of another session; undecodable; none, not configured.",
            labels=["reason"],
        )
        for reason in sorted({*FALLBACKS, *counted}):
            shown.add_metric([reason], counted.get(reason, 0))
        yield shown
