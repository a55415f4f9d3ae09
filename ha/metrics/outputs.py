"""Metrics of a job's outputs, as its driver reports them to the sidecar: what became of files, and times."""

import threading
from collections.abc import Iterable
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.metrics.query_metrics import ReportFiles
from ha.metrics.tables import Table, families
from ha.program.output_report import BOUNDS, MOST_OUTPUTS, OutputReport, paths_beside, read

LABELS = ["job_name", "output"]

REGION_STATES = ("ERROR", "EXPIRED")

_EDGES = [*(str(bound) for bound in BOUNDS), "+Inf"]

COUNTERS: Table[OutputReport] = {
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

GAUGES: Table[OutputReport] = {
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


class OutputMetrics(Collector):
    """Reads the reports when Prometheus asks. What former runs have counted is kept, so counters never fall."""

    def __init__(self, registry: CollectorRegistry, job: str, reports: ReportFiles) -> None:
        """Show the reports of a job's command."""
        self._lock = threading.Lock()
        self._job, self._reports = job, reports
        self._folded = 0
        self._kept: dict[str, OutputReport] = {}
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics; those of a run that has ended are only counters."""
        newest = self._reports.runs()
        with self._lock:
            for run in range(self._folded + 1, newest):
                for path in paths_beside(self._reports.path(run)):
                    _add(self._kept, read(path))
                    path.unlink(missing_ok=True)
            self._folded = max(self._folded, newest - 1)
            paths = paths_beside(self._reports.path(newest)) if newest else []
            present = [each for path in paths for each in read(path)]
            counted: dict[str, OutputReport] = {}
            _add(counted, self._kept.values())
            _add(counted, present)
            shown: dict[str, OutputReport] = {}
            _add(shown, present)
        rows = [([self._job, name], each) for name, each in counted.items()]
        yield from families(CounterMetricFamily, COUNTERS, LABELS, rows)
        yield from families(CounterMetricFamily, BY_OUTCOME, [*LABELS, "outcome"], rows)
        steps = HistogramMetricFamily(
            "ha_output_step_seconds",
            "Time of each step of an output's batch: write, record, decide by one rename, move.",
            labels=[*LABELS, "step"],
        )
        for key, each in rows:
            for step, timing in each.steps.items():
                buckets = list(zip(_EDGES, map(float, accumulate(timing.counts)), strict=True))
                steps.add_metric([*key, step], buckets, timing.seconds)
        yield steps
        if self._reports.running():
            rows = [([self._job, name], each) for name, each in shown.items()]
            yield from families(GaugeMetricFamily, GAUGES, LABELS, rows)
            yield from families(GaugeMetricFamily, REGIONS, [*LABELS, "state"], rows)


def _add(kept: dict[str, OutputReport], reports: Iterable[OutputReport]) -> None:
    for each in reports:
        if each.name in kept or len(kept) < MOST_OUTPUTS:
            kept.setdefault(each.name, OutputReport(each.name)).add(each)
