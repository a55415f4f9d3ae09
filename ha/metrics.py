"""Metrics of one process, in its own registry."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from store.outcome import Outcome

OUTCOMES = ("done", "refused", "unknown")


class Metrics:
    """What a daemon or sidecar tells Prometheus. Names and units follow its conventions."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.is_leader = Gauge("ha_is_leader", "Whether this process leads the job.", ["job"], registry=self.registry)
        self.epoch = Gauge("ha_epoch", "Epoch of this process's last grant.", ["job"], registry=self.registry)
        self.belief = Gauge(
            "ha_belief_seconds", "Seconds for which the leadership is certain.", ["job"], registry=self.registry
        )
        self.grants = Counter("ha_grants_total", "Leaderships begun.", ["job", "reason"], registry=self.registry)
        self.revocations = Counter("ha_revocations_total", "Leaderships ended.", ["job"], registry=self.registry)
        self.repairs = Gauge("ha_copy_repairs", "Repairs of the copy in ZooKeeper.", ["job"], registry=self.registry)
        self.zookeeper = Gauge(
            "ha_zookeeper_attests", "Whether ZooKeeper attests this process's session.", registry=self.registry
        )
        self.calls = Histogram(
            "ha_files_call_seconds",
            "Calls to the file system.",
            ["operation", "outcome"],
            buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0),
            registry=self.registry,
        )

    def called(self, operation: str, outcome: Outcome[object]) -> None:
        """Count one call to the file system."""
        kind = "done" if outcome.done else "refused" if outcome.refused else "unknown"
        self.calls.labels(operation, kind).observe(max(0.0, outcome.ended - outcome.started))
