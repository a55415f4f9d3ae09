"""How a process's leaderships stand: read from its contender when somebody asks."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Statuses = Callable[[], Mapping[str, Mapping[str, Any]]]


class Standing(Collector):
    """Shows what :meth:`ha.node.Node.statuses` says; raises what that raises."""

    def __init__(self, statuses: Statuses) -> None:
        self._statuses = statuses

    def collect(self) -> Iterable[Metric]:
        """See :class:`prometheus_client.registry.Collector`."""
        statuses = self._statuses()
        leads = _by_job("ha_is_leader", "1 if this process leads the job, by its own clock; else 0.")
        epoch = _by_job("ha_epoch", "Epoch of the job as this process last saw it in HDFS, whoever leads.")
        belief = _by_job(
            "ha_belief_remaining_seconds",
            "Time for which this process leads for certain even if no store answers any more; 0 if it does not lead.",
        )
        repairs = CounterMetricFamily(
            "ha_copy_repairs",
            "Times this process wrote its record in ZooKeeper again because it was gone or changed, by whatever.",
            labels=["job_name"],
        )
        lag = _by_job(
            "ha_copy_lag_epochs",
            "Epoch in HDFS less that of ZooKeeper's record, both as this process last saw them; below 0 if ZooKeeper "
            "is ahead; nothing if it holds no record.",
        )
        attests = GaugeMetricFamily(
            "ha_zookeeper_attests", "1 if ZooKeeper now attests this process's session, so that a lease may rely on it."
        )
        memory = _by_job(
            "ha_command_memory_bytes",
            "Memory of the command and of all that it has started on this host, shared pages divided; 0 if it does not "
            "run.",
        )
        for job, status in statuses.items():
            if (command := status["command"]) is not None:
                memory.add_metric([job], command["memory_bytes"])
            leads.add_metric([job], status["is_leader"])
            belief.add_metric([job], status["belief_seconds"])
            repairs.add_metric([job], status["copy_repairs"])
            if status["epoch"] is not None:
                epoch.add_metric([job], status["epoch"])
                if status["copy_epoch"] is not None:
                    lag.add_metric([job], status["epoch"] - status["copy_epoch"])
        if statuses:  # one session serves all jobs
            attests.add_metric([], next(iter(statuses.values()))["zookeeper"])
        return leads, epoch, belief, repairs, lag, attests, memory


def _by_job(name: str, meaning: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=["job_name"])
