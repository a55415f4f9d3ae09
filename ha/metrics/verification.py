"""Metrics of verification: what a standby has found in the checkpoints of its job."""

import threading
from collections.abc import Callable, Iterable, Mapping

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from store.clock import now

LABELS = ["job_name", "query"]


class QueryVerified(msgspec.Struct, frozen=True):
    """The result of one verification of one query."""

    damaged: int  # number of batches that should be restorable and are not
    missing: int  # number of files that are missing or damaged, the first one of each such batch
    restorable: bool  # whether the newest batch can be continued


class VerificationMetrics(Collector):
    """Shows what the newest verification has found, for as long as this process does not lead."""

    def __init__(
        self, registry: CollectorRegistry, job: str, standby: Callable[[], bool], clock: Callable[[], float] = now
    ) -> None:
        """Show nothing yet; ``standby`` says whether the process does not lead the job."""
        self._job, self._standby, self._clock = job, standby, clock
        self._lock = threading.Lock()
        self._found: Mapping[str, QueryVerified] = {}
        self._restorable_at: dict[str, float] = {}
        registry.register(self)

    def found(self, queries: Mapping[str, QueryVerified]) -> None:
        """A verification has come to its end."""
        at = self._clock()
        with self._lock:
            self._found = queries
            self._restorable_at = {
                query: at if each.restorable else self._restorable_at.get(query, at) for query, each in queries.items()
            }

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        damaged = GaugeMetricFamily(
            "ha_checkpoint_damaged_batches",
            "Retained batches that should be restorable and are not, by a standby's newest verification.",
            labels=LABELS,
        )
        missing = GaugeMetricFamily(
            "ha_checkpoint_missing_files", "Files that these batches miss, the first one of each.", labels=LABELS
        )
        age = GaugeMetricFamily(
            "ha_checkpoint_restorable_age_seconds",
            "Time since a verification by this standby found the newest batch of a query restorable.",
            labels=LABELS,
        )
        if self._standby():
            with self._lock:
                for query, each in self._found.items():
                    labels = [self._job, query]
                    damaged.add_metric(labels, each.damaged)
                    missing.add_metric(labels, each.missing)
                    age.add_metric(labels, max(0.0, self._clock() - self._restorable_at[query]))
        yield from (damaged, missing, age)
