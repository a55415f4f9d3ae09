"""Metrics of a job's outputs, as its driver reports them to the sidecar: what became of files, and times."""

import threading
from collections.abc import Iterable
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from ha.metrics.output_report import BOUNDS, MOST_OUTPUTS, OutputReport, paths_beside, read
from ha.metrics.queries import Reports

LABELS = ["job_name", "output"]

REGION_STATES = ("ERROR", "EXPIRED")

_EDGES = [*(str(bound) for bound in BOUNDS), "+Inf"]


class OutputMetrics(Collector):
    """Reads the reports when Prometheus asks. What former runs have counted is kept, so counters never fall."""

    def __init__(self, registry: CollectorRegistry, job: str, reports: Reports) -> None:
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
        files = CounterMetricFamily(
            "ha_output_files",
            "Files of an output's batches: created by the query; renamed to their places; ignored, in their places "
            "already, because a batch is finished after a crash; failed, neither here nor there.",
            labels=[*LABELS, "outcome"],
        )
        steps = HistogramMetricFamily(
            "ha_output_step_seconds",
            "Time of each step of an output's batch: write, by Spark; record, of what it has written; decide, by one "
            "rename; move, of all partitions to their places.",
            labels=[*LABELS, "step"],
        )
        for each in counted.values():
            for outcome, count in each.files.items():
                files.add_metric([self._job, each.name, outcome], count)
            for step, timing in each.steps.items():
                buckets = list(zip(_EDGES, map(float, accumulate(timing.counts)), strict=True))
                steps.add_metric([self._job, each.name, step], buckets, timing.seconds)
        yield from (files, steps, *self._partitions(counted))
        if self._reports.running():
            lost = GaugeMetricFamily(
                "ha_output_lost_files",
                "Files of an output's newest batch that were deleted on their way, so that it cannot become complete.",
                labels=LABELS,
            )
            pending = GaugeMetricFamily(
                "ha_output_pending_partitions",
                "Partitions of an output with a partition commit that have rows and are not committed.",
                labels=LABELS,
            )
            yield from self._regions(present)
            for each in present:
                lost.add_metric([self._job, each.name], each.lost)
                if each.pending is not None:
                    pending.add_metric([self._job, each.name], each.pending)
            yield from (lost, pending)

    def _partitions(self, counted: dict[str, OutputReport]) -> Iterable[Metric]:
        partitions = CounterMetricFamily(
            "ha_output_partitions",
            "Partitions of an output with a partition commit: committed, each time; late, in a batch that came after "
            "they were committed, so that they are committed again.",
            labels=[*LABELS, "outcome"],
        )
        late = CounterMetricFamily(
            "ha_output_late_files",
            "Files of an output in partitions that were committed before their batch came.",
            labels=LABELS,
        )
        dead = CounterMetricFamily(
            "ha_output_dead_letters",
            "Records of an output's batches that could not be processed, and were published apart.",
            labels=LABELS,
        )
        for each in counted.values():
            dead.add_metric([self._job, each.name], each.dead_letters)
            if each.pending is not None:
                partitions.add_metric([self._job, each.name, "committed"], each.committed)
                partitions.add_metric([self._job, each.name, "late"], each.late)
                late.add_metric([self._job, each.name], each.late_files)
        return partitions, late, dead

    def _regions(self, present: Iterable[OutputReport]) -> Iterable[Metric]:
        mark = GaugeMetricFamily(
            "ha_output_complete_up_to", "The batch up to which all regions of an output are complete; -1 for none.",
            labels=LABELS,
        )  # fmt: skip
        apart = GaugeMetricFamily(
            "ha_output_region_lag_batches",
            "Batches from the one up to which all regions of an output are complete to the newest one of any region.",
            labels=LABELS,
        )
        behind = GaugeMetricFamily(
            "ha_output_regions_behind",
            "Regions of an output that hold up what is complete: ERROR if their last try has failed, EXPIRED if they "
            "are only late.",
            labels=[*LABELS, "state"],
        )
        for each in present:
            if each.complete_up_to is not None:
                mark.add_metric([self._job, each.name], each.complete_up_to)
                apart.add_metric([self._job, each.name], each.apart)
                for state in REGION_STATES:
                    behind.add_metric([self._job, each.name, state], each.behind.get(state, 0))
        return mark, apart, behind


def _add(kept: dict[str, OutputReport], reports: Iterable[OutputReport]) -> None:
    for each in reports:
        if each.name in kept or len(kept) < MOST_OUTPUTS:
            kept.setdefault(each.name, OutputReport(each.name)).add(each)
