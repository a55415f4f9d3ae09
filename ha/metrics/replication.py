"""Metrics of replication, in a file: a replicator is no server, and Prometheus's node exporter reads such files.

A sidecar whose replicator writes one shows it as its own.
"""

from collections.abc import Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, write_to_textfile
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

LABELS = ["job_name", "query"]


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
