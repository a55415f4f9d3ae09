"""Metrics of verification: what was found, for how long no newest batch was restorable, and only of a standby."""

from prometheus_client import CollectorRegistry

from ha.metrics.standby import QueryVerified, VerificationMetrics


def value(registry: CollectorRegistry, name: str, query: str = "sums") -> float | None:
    return registry.get_sample_value(name, {"job_name": "orders", "query": query})


def test_what_was_found_is_shown() -> None:
    registry, at = CollectorRegistry(), [100.0]
    metrics = VerificationMetrics(registry, "orders", lambda: True, lambda: at[0])
    assert value(registry, "ha_checkpoint_damaged_batches") is None
    metrics.found({"sums": QueryVerified(0, 0, restorable=True)})
    at[0] = 110.0
    assert value(registry, "ha_checkpoint_damaged_batches") == 0
    assert value(registry, "ha_checkpoint_restorable_age_seconds") == 10
    metrics.found({"sums": QueryVerified(3, 2, restorable=False)})
    at[0] = 130.0
    assert value(registry, "ha_checkpoint_damaged_batches") == 3
    assert value(registry, "ha_checkpoint_missing_files") == 2
    assert value(registry, "ha_checkpoint_restorable_age_seconds") == 30
    metrics.found({"sums": QueryVerified(3, 2, restorable=True)})
    assert value(registry, "ha_checkpoint_restorable_age_seconds") == 0


def test_a_query_that_is_gone_is_shown_no_more() -> None:
    registry = CollectorRegistry()
    metrics = VerificationMetrics(registry, "orders", lambda: True)
    metrics.found({"sums": QueryVerified(0, 0, restorable=True)})
    metrics.found({"totals": QueryVerified(1, 1, restorable=False)})
    assert value(registry, "ha_checkpoint_damaged_batches") is None
    assert value(registry, "ha_checkpoint_damaged_batches", "totals") == 1
    assert value(registry, "ha_checkpoint_restorable_age_seconds", "totals") is not None


def test_a_leader_shows_nothing() -> None:
    registry, standby = CollectorRegistry(), [True]
    metrics = VerificationMetrics(registry, "orders", lambda: standby[0])
    metrics.found({"sums": QueryVerified(0, 0, restorable=True)})
    standby[0] = False
    assert value(registry, "ha_checkpoint_damaged_batches") is None
