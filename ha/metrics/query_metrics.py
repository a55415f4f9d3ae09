"""Metrics of a job's queries, as its driver reports them to the sidecar: checkpoints, state, input, backlog."""

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.hook.query_rules import FILE, REPEATED, UNGUARDED, noted
from ha.metrics.tables import Table, families
from ha.program.query_report import COUNTERS, GAUGES, MOST_QUERIES, STATES, QueryReport, read
from store.clock import now

LABELS = ["job_name", "query"]

NONE_YET = "(none yet)"
"""The name under which a Spark program ages that has started no query: it may wait for its cluster for ever."""

BY_STATE: Table[QueryReport] = {
    "ha_query_state": (
        "1 for the state of a query, 0 for the others: see ha job queries.",
        lambda each: {state: state == each.state for state in STATES},
    ),
}

TOLD: Table[list[str]] = {
    "ha_queries_unguarded": (
        "Queries of a job that no takeover goes on with.",
        lambda told: sum(each.startswith(UNGUARDED) for each in told),
    ),
    "ha_queries_repeated": (
        "Queries of a job that are not exactly once: a takeover may repeat rows.",
        lambda told: sum(each.startswith(REPEATED) for each in told),
    ),
}
"""Of the sentences that were noted about queries."""


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The reports of one command: a file for each of its runs."""

    path: Callable[[int], Path]  # returns the file of a run, by the number of the run
    runs: Callable[[], int]  # returns the number of the newest run, from 1; 0 before the first one
    running: Callable[[], bool]  # returns whether that run leads the job and has not ended
    # Returns what the sidecar itself has seen of the queries of a program that writes no report.
    seen: Callable[[], list[QueryReport]] = list
    # Returns when a run was started that has to start queries, in seconds of the boot clock; None of another program.
    waits_since: Callable[[], float | None] = lambda: None


class QueryMetrics(Collector):
    """Reads the reports when Prometheus asks. What former runs have counted is kept, so counters never fall."""

    def __init__(
        self, registry: CollectorRegistry, job: str, reports: ReportFiles, clock: Callable[[], float] = now
    ) -> None:
        """Show the reports of a job's command; ``clock`` gives seconds of the boot clock."""
        self._lock = threading.Lock()
        self._job, self._reports = job, reports
        self._ages: Table[QueryReport] = {
            "ha_checkpoint_age_seconds": (
                "Time since the newest batch of a query ended, or Spark had nothing to do, or it first started.",
                lambda each: max(0.0, clock() - each.fresh_at),
            )
        }
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
        if newest and self._reports.running():
            rows = [([self._job, each.name], each) for each in present]
            yield from families(GaugeMetricFamily, GAUGES, LABELS, rows)
            since = self._reports.waits_since()
            none_yet = [] if rows or since is None else [([self._job, NONE_YET], QueryReport(NONE_YET, fresh_at=since))]
            yield from families(GaugeMetricFamily, self._ages, LABELS, rows or none_yet)
            yield from families(GaugeMetricFamily, BY_STATE, [*LABELS, "state"], rows)
            told = noted(Path(f"{self._reports.path(newest)}{FILE}")).values()
            yield from families(GaugeMetricFamily, TOLD, ["job_name"], [([self._job], list(told))])

    def _fold(self, run: int) -> None:
        """Add what a former run has counted, and remove its report."""
        path = self._reports.path(run)
        for each in read(path):
            if each.name in self._kept or len(self._kept) < MOST_QUERIES:
                kept = self._kept.setdefault(each.name, dict.fromkeys(COUNTERS, 0))
                for name, (_, value) in COUNTERS.items():
                    kept[name] += value(each)
        path.unlink(missing_ok=True)
        Path(f"{path}{FILE}").unlink(missing_ok=True)

    def _counters(self, present: list[QueryReport]) -> Iterator[Metric]:
        for name, (meaning, value) in COUNTERS.items():
            family = CounterMetricFamily(name, meaning, labels=LABELS)
            counted = {query: kept[name] for query, kept in self._kept.items()}
            for each in present:
                counted[each.name] = counted.get(each.name, 0) + value(each)
            for query, count in counted.items():
                family.add_metric([self._job, query], count)
            yield family
