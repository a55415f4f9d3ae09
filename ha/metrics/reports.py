"""Metrics of a job's queries and outputs, as its driver reports them to the sidecar."""

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.hook.query_rules import FILE, REPEATED, UNGUARDED, fault, noted
from ha.hook.query_watch import FAILED as FAILED_FILE
from ha.metrics.tables import Table, families
from ha.program import files, output_report, query_report
from ha.program.output_report import BOUNDS, MOST_OUTPUTS, OutputReport, paths_beside
from ha.program.query_report import COUNTERS, FAILED, GAUGES, MOST_QUERIES, STATES, QueryReport
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


class _ReportMetrics(Collector):
    """Reads the reports when Prometheus asks. What former runs have counted is kept, so counters never fall."""

    def __init__(self, registry: CollectorRegistry, job: str, reports: ReportFiles) -> None:
        """Show the reports of a job's command."""
        self._lock = threading.Lock()
        self._job, self._reports = job, reports
        self._folded = 0
        self._kept: dict[str, Any] = {}
        registry.register(self)

    def _fold_former(self) -> int:
        """Add what runs that have ended have counted, and return the number of the newest run; the lock is held."""
        newest = self._reports.runs()
        for run in range(self._folded + 1, newest):
            self._fold(self._reports.path(run))
        self._folded = max(self._folded, newest - 1)
        return newest

    @abstractmethod
    def _fold(self, path: Path) -> None:
        """Add what a former run has counted, and remove its report."""


class QueryMetrics(_ReportMetrics):
    """Metrics of queries; those of a run that has ended are only counters."""

    def __init__(
        self, registry: CollectorRegistry, job: str, reports: ReportFiles, clock: Callable[[], float] = now
    ) -> None:
        """Show the reports of a job's command; ``clock`` gives seconds of the boot clock."""
        self._ages: Table[QueryReport] = {
            "ha_checkpoint_age_seconds": (
                "Time since the newest batch of a query ended, or Spark had nothing to do, or it first started.",
                lambda each: max(0.0, clock() - each.fresh_at),
            )
        }
        super().__init__(registry, job, reports)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        with self._lock:
            newest = self._fold_former()
        present = (query_report.read(self._reports.path(newest)) if newest else []) or self._seen(newest)
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

    def _seen(self, run: int) -> list[QueryReport]:
        """Return the queries of a program that writes no report, with those that stand failed."""
        failed = (files.read(Path(f"{self._reports.path(run)}{FAILED_FILE}"), dict[str, str]) or {}) if run else {}
        known = {each.name: each for each in self._reports.seen()}
        told = [replace(known.get(name, QueryReport(name)), state=FAILED) for name in failed if not fault(name)]
        return [*(each for name, each in known.items() if name not in failed), *told][:MOST_QUERIES]

    def _fold(self, path: Path) -> None:
        for each in query_report.read(path):
            if each.name in self._kept or len(self._kept) < MOST_QUERIES:
                kept = self._kept.setdefault(each.name, dict.fromkeys(COUNTERS, 0))
                for name, (_, value) in COUNTERS.items():
                    kept[name] += value(each)
        for ending in ("", FILE, FAILED_FILE):
            Path(f"{path}{ending}").unlink(missing_ok=True)

    def _counters(self, present: list[QueryReport]) -> Iterator[Metric]:
        for name, (meaning, value) in COUNTERS.items():
            family = CounterMetricFamily(name, meaning, labels=LABELS)
            counted = {query: kept[name] for query, kept in self._kept.items()}
            for each in present:
                counted[each.name] = counted.get(each.name, 0) + value(each)
            for query, count in counted.items():
                family.add_metric([self._job, query], count)
            yield family


OUTPUT_LABELS = ["job_name", "output"]

REGION_STATES = ("ERROR", "EXPIRED")

_EDGES = [*(str(bound) for bound in BOUNDS), "+Inf"]

OUTPUT_COUNTERS: Table[OutputReport] = {
    "ha_output_late_files": (
        "Files of an output in partitions that were committed before their batch came.",
        lambda each: each.late_files if each.pending is not None else None,
    ),
    "ha_output_dead_letters": (
        "Records of an output's batches that could not be processed, and were published apart.",
        lambda each: each.dead_letters,
    ),
    "ha_output_replayed_batches": (
        "Batches of an output that were done again and dropped: they were published before.",
        lambda each: each.replayed,
    ),
    "ha_output_differing_batches": (
        "Batches of a table that were done again with another number of rows than were published.",
        lambda each: each.differing,
    ),
    "ha_output_gone_files": (
        "Published files of an output that were gone when its leader looked at their batch.",
        lambda each: each.gone,
    ),
}

BY_OUTCOME: Table[OutputReport] = {
    "ha_output_files": (
        "Files of an output's batches: created, renamed to their places, there already, or lost.",
        lambda each: each.files,
    ),
    "ha_output_partitions": (
        "Partitions of an output that were committed, or got rows late and are committed again.",
        lambda each: {"committed": each.committed, "late": each.late} if each.pending is not None else None,
    ),
}

OUTPUT_GAUGES: Table[OutputReport] = {
    "ha_output_lost_files": (
        "Files of an output's newest batch that were deleted on their way: it cannot become complete.",
        lambda each: each.lost,
    ),
    "ha_output_pending_partitions": (
        "Partitions of an output with a partition commit that have rows and are not committed.",
        lambda each: each.pending,
    ),
    "ha_output_gap_batches": (
        "Batches that Spark has committed and an output lacks, though its query gives it each one.",
        lambda each: each.lacking,
    ),
    "ha_output_directory_fullness": (
        "Entries of an output's fullest directory, as a share of what HDFS allows in one.",
        lambda each: each.fullness,
    ),
    "ha_output_complete_up_to": (
        "The batch up to which all regions of an output are complete; -1 for none.",
        lambda each: each.complete_up_to,
    ),
    "ha_output_region_lag_batches": (
        "Batches from the one up to which all regions are complete to the newest one of any.",
        lambda each: each.apart if each.complete_up_to is not None else None,
    ),
}

REGIONS: Table[OutputReport] = {
    "ha_output_regions_behind": (
        "Regions of an output that hold it up: ERROR, their last try has failed; EXPIRED, only late.",
        lambda each: (
            {state: each.behind.get(state, 0) for state in REGION_STATES} if each.complete_up_to is not None else None
        ),
    ),
}


class OutputMetrics(_ReportMetrics):
    """Metrics of outputs; those of a run that has ended are only counters."""

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        with self._lock:
            newest = self._fold_former()
            paths = paths_beside(self._reports.path(newest)) if newest else []
            present = [each for path in paths for each in output_report.read(path)]
            counted: dict[str, OutputReport] = {}
            _add(counted, self._kept.values())
            _add(counted, present)
            shown: dict[str, OutputReport] = {}
            _add(shown, present)
        rows = [([self._job, name], each) for name, each in counted.items()]
        yield from families(CounterMetricFamily, OUTPUT_COUNTERS, OUTPUT_LABELS, rows)
        yield from families(CounterMetricFamily, BY_OUTCOME, [*OUTPUT_LABELS, "outcome"], rows)
        steps = HistogramMetricFamily(
            "ha_output_step_seconds",
            "Time of each step of an output's batch: write, record, decide by one rename, move.",
            labels=[*OUTPUT_LABELS, "step"],
        )
        for key, each in rows:
            for step, timing in each.steps.items():
                buckets = list(zip(_EDGES, map(float, accumulate(timing.counts)), strict=True))
                steps.add_metric([*key, step], buckets, timing.seconds)
        yield steps
        if self._reports.running():
            rows = [([self._job, name], each) for name, each in shown.items()]
            yield from families(GaugeMetricFamily, OUTPUT_GAUGES, OUTPUT_LABELS, rows)
            yield from families(GaugeMetricFamily, REGIONS, [*OUTPUT_LABELS, "state"], rows)

    def _fold(self, path: Path) -> None:
        for beside in paths_beside(path):
            _add(self._kept, output_report.read(beside))
            beside.unlink(missing_ok=True)


def _add(kept: dict[str, OutputReport], reports: Iterable[OutputReport]) -> None:
    for each in reports:
        if each.name in kept or len(kept) < MOST_OUTPUTS:
            kept.setdefault(each.name, OutputReport(each.name)).add(each)
