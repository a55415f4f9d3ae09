"""Metrics of a job's queries, as its driver reports them to the sidecar: checkpoints, state, input, backlog."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.metrics.query_report import MOST_QUERIES, STATES, QueryReport, read
from store.clock import now

LABELS = ["job_name", "query"]

GAUGES: dict[str, tuple[str, Callable[[QueryReport], float | None]]] = {
    "ha_checkpoint_duration_seconds": ("Time that the newest batch of a query took.", lambda each: each.batch_seconds),
    "ha_checkpoint_rows": ("Input rows of that batch.", lambda each: each.batch_rows),
    "ha_checkpoint_size_bytes": (
        "Size of the files of a query's states; absent if they are not in RocksDB.",
        lambda each: each.checkpoint_bytes,
    ),
    "ha_query_state_rows": ("Rows in all states of a query; absent without state.", lambda each: each.state_rows),
    "ha_query_state_bytes": ("Memory of all states of a query.", lambda each: each.state_bytes),
    "ha_query_backlog": (
        "Latest offsets of a query's sources less the processed ones, when its newest batch began; absent for files.",
        lambda each: each.backlog,
    ),
    "ha_query_watermark_lag_seconds": (
        "Time from the watermark of a query to the start of its newest batch; absent without a watermark.",
        lambda each: each.watermark_lag,
    ),
}
"""By name: meaning, and value of one query."""

COUNTERS: dict[str, tuple[str, Callable[[QueryReport], int]]] = {
    "ha_checkpoints": ("Batches that a query has completed, and Spark's checkpoints with them.", lambda q: q.batches),
    "ha_query_input_rows": ("Input rows of the completed batches of a query.", lambda q: q.input_rows),
    "ha_query_skipped_offsets": (
        "Offsets of topics that a query passed over without a row: deleted before they were read, compacted, or marks.",
        lambda q: q.skipped,
    ),
    "ha_query_repaired_snapshots": (
        "State snapshots of a query that Spark has repaired as it loaded them.",
        lambda q: q.repaired,
    ),
    "ha_query_failures": (
        "How often a query has ended with an error; a batch, or checkpoint, that fails is such an end.",
        lambda q: q.failures,
    ),
    "ha_query_restarts": ("How often a query was started again by its program.", lambda q: max(0, q.starts - 1)),
}
"""Likewise."""


@dataclass(frozen=True, slots=True)
class Reports:
    """The reports of one command: a file for each of its runs.

    Attributes:
        path: returns the file of a run, by the number of the run.
        runs: returns the number of the newest run, from 1; 0 before the first one.
        running: returns whether that run leads the job and has not ended.
        seen: returns what the sidecar itself has seen of the queries of a program that writes no report.
    """

    path: Callable[[int], Path]
    runs: Callable[[], int]
    running: Callable[[], bool]
    seen: Callable[[], list[QueryReport]] = list


class QueryMetrics(Collector):
    """Reads the reports when Prometheus asks. What former runs have counted is kept, so counters never fall."""

    def __init__(
        self, registry: CollectorRegistry, job: str, reports: Reports, clock: Callable[[], float] = now
    ) -> None:
        """Show the reports of a job's command; ``clock`` gives seconds of the boot clock."""
        self._lock = threading.Lock()
        self._job, self._reports, self._clock = job, reports, clock
        self._folded = 0
        self._kept: dict[str, dict[str, int]] = {}
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; those of a run that has ended are only counters."""
        newest = self._reports.runs()
        with self._lock:
            for run in range(self._folded + 1, newest):
                self._fold(run)
            self._folded = max(self._folded, newest - 1)
        present = (read(self._reports.path(newest)) if newest else []) or self._reports.seen()
        yield from self._counters(present)
        if self._reports.running():
            yield from self._gauges(present)

    def _fold(self, run: int) -> None:
        """Add what a former run has counted, and remove its report."""
        path = self._reports.path(run)
        for each in read(path):
            if each.name in self._kept or len(self._kept) < MOST_QUERIES:
                kept = self._kept.setdefault(each.name, dict.fromkeys(COUNTERS, 0))
                for name, (_, value) in COUNTERS.items():
                    kept[name] += value(each)
        path.unlink(missing_ok=True)

    def _counters(self, present: list[QueryReport]) -> Iterator[Metric]:
        for name, (meaning, value) in COUNTERS.items():
            family = CounterMetricFamily(name, meaning, labels=LABELS)
            counted = {query: kept[name] for query, kept in self._kept.items()}
            for each in present:
                counted[each.name] = counted.get(each.name, 0) + value(each)
            for query, count in counted.items():
                family.add_metric([self._job, query], count)
            yield family

    def _gauges(self, present: list[QueryReport]) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "ha_checkpoint_age_seconds",
            "Time since the newest batch of a query was completed, or Spark said that it had nothing to do, or it "
            "first started.",
            labels=LABELS,
        )
        state = GaugeMetricFamily(
            "ha_query_state", "1 for the state of a query, 0 for the others: see ha queries.", labels=[*LABELS, "state"]
        )
        for each in present:
            age.add_metric([self._job, each.name], max(0.0, self._clock() - each.fresh_at))
            for one in STATES:
                state.add_metric([self._job, each.name, one], one == each.state)
        yield from (age, state)
        for name, (meaning, value) in GAUGES.items():
            gauge = GaugeMetricFamily(name, meaning, labels=LABELS)
            for each in present:
                if (number := value(each)) is not None:
                    gauge.add_metric([self._job, each.name], number)
            yield gauge
