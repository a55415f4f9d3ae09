"""Metrics of a process that runs a command."""

from prometheus_client import CollectorRegistry, Counter


class Restarts:
    """How often the command was started again."""

    def __init__(self, registry: CollectorRegistry, job: str) -> None:
        """Begin with 0."""
        self._restarts = Counter(
            "ha_command_restarts",
            "Times that the command was started again after it had failed, within a leadership of this process.",
            ["job_name"],
            registry=registry,
        ).labels(job)

    def count(self) -> None:
        """The command is started once more."""
        self._restarts.inc()
