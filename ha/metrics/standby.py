"""Metrics of what standbys and replicators do: verification and replication of checkpoints."""

import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry, Gauge, write_to_textfile
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from ha.metrics.tables import Table, families
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
        rows = []
        if self._standby():
            with self._lock:
                for query, each in self._found.items():
                    age = max(0.0, self._clock() - self._restorable_at[query])
                    rows.append(([self._job, query], (each, age)))
        yield from families(GaugeMetricFamily, FOUND, LABELS, rows)


FOUND: Table[tuple[QueryVerified, float]] = {
    "ha_checkpoint_damaged_batches": (
        "Retained batches that should be restorable and are not, by a standby's newest verification.",
        lambda row: row[0].damaged,
    ),
    "ha_checkpoint_missing_files": (
        "Files that these batches miss, the first one of each.",
        lambda row: row[0].missing,
    ),
    "ha_checkpoint_restorable_age_seconds": (
        "Time since a verification by this standby found the newest batch of a query restorable.",
        lambda row: row[1],
    ),
}


class ReplicationMetrics:
    """How far the replica of a job is, as its replicator last wrote it down."""

    def __init__(self, registry: CollectorRegistry, job: str) -> None:
        """Show nothing yet; ``job`` is the name of the job that is replicated."""
        self._registry, self._job = registry, job
        # A time, not an age: it says the truth also when its process is gone.
        self._level_at = Gauge(
            "ha_replica_level_timestamp_seconds",
            "When the replica of a query last had all that its job had committed, in seconds since 1970.",
            LABELS,
            registry=registry,
        )
        self._behind = Gauge(
            "ha_replica_behind_batches",
            "Batches that a query had committed and its replica had not, after the newest round.",
            LABELS,
            registry=registry,
        )

    def set(self, query: str, level_at: float, behind: int) -> None:
        """A round has ended; ``level_at`` is 0 if the replica never had all."""
        self._level_at.labels(self._job, query).set(level_at)
        self._behind.labels(self._job, query).set(behind)

    def write(self, path: str) -> None:
        """Replace the file."""
        # OSError: it cannot be written.
        write_to_textfile(path, self._registry)


class ReplicationFile(Collector):
    """Shows what a replicator has written into its file; nothing before its first round."""

    def __init__(self, registry: CollectorRegistry, path: Path) -> None:
        """The file need not be there."""
        self._path = path
        registry.register(self)

    def describe(self) -> Iterable[Metric]:
        """Return nothing: the file says what there is."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        try:
            found = self._path.read_text(encoding="utf-8")
        except OSError:  # no round has ended, or the sidecar ends
            return
        yield from text_string_to_metric_families(found)
