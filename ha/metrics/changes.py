"""How often a job's leader has changed, as this process saw it."""

import threading

from prometheus_client import CollectorRegistry, Counter


class LeaderChanges:
    """Counts epochs, for each of which there is one grant; several sources may tell of the same."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._changes = Counter(
            "ha_leader_changes",
            "Grants of a job since this process first looked, whoever got them: epochs that HDFS has told of.",
            ["job_name"],
            registry=registry,
        )
        self._highest: dict[str, int] = {}
        self._lock = threading.Lock()

    def saw(self, job: str, epoch: int) -> None:
        """HDFS, and not ZooKeeper alone, has said that this is the job's epoch."""
        if self._highest.get(job, -1) >= epoch:
            return
        with self._lock:
            known = self._highest.get(job, epoch)
            if epoch >= known:
                self._highest[job] = epoch
                self._changes.labels(job).inc(epoch - known)  # by nothing at first, so that it is there
