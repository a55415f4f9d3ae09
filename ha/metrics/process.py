"""The metrics of one process, in one registry."""

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics

from ha.metrics.changes import LeaderChanges
from ha.metrics.lookups import LookupMetrics
from ha.metrics.stores import StoreMetrics


class Metrics:
    """What every process has: stores and lookups. Who contends, or is an agent, adds to it."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        """Register them.

        Args:
            registry: the program's own; None for one of this process, which then tells of its memory and time as well.

        Raises:
            ValueError: the registry has them already.
        """
        if registry is None:
            registry = CollectorRegistry()
            ProcessCollector(registry=registry)
            # For each counter there would be a second series that says when it began to count.
            disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry
        self.changes = LeaderChanges(registry)
        self.stores = StoreMetrics(registry)
        self.lookups = LookupMetrics(registry, self.changes)
