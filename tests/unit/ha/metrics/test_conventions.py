"""Names, units and help follow Prometheus's conventions; and the lint that checks them can fail."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ha.config.sources import load
from tests.unit.ha.led import Led
from tests.unit.ha.metrics.complete import complete
from tests.unit.ha.metrics.exposition import Exposition, faults


@pytest.fixture(scope="module")
def registry(quick_module: Path) -> Iterator[CollectorRegistry]:
    Led(quick_module).claim("orders", "a:1")
    with complete(load({"zookeeper": "127.0.0.1:1"}), "orders") as made:
        yield made


def test_every_metric_follows_the_conventions(registry: CollectorRegistry) -> None:
    shown = Exposition(registry)
    assert len(shown.families) >= 20
    assert not list(faults(shown.families))


def test_every_metric_has_a_sample_here(registry: CollectorRegistry) -> None:
    """Otherwise its labels would not have been checked."""
    assert not [family.name for family in Exposition(registry).families if not family.samples]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
def test_prometheus_own_lint_finds_nothing(registry: CollectorRegistry) -> None:
    command = ["promtool", "check", "metrics"]
    ended = subprocess.run(command, input=generate_latest(registry), capture_output=True, check=False, timeout=120)
    ours = [line for line in (ended.stdout + ended.stderr).decode().splitlines() if line.startswith("ha_")]
    assert not ours


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (lambda registry: Gauge("ha_repairs_total", "Repairs.", registry=registry), "suffix of something else"),
        (lambda registry: Gauge("ha_wait_ms", "Waiting.", registry=registry), "no base unit"),
        (lambda registry: Gauge("ha_wait", "Seconds that it waits.", registry=registry), "time without its unit"),
        (lambda registry: Histogram("ha_wait", "Waiting.", registry=registry), "has no unit"),
        (lambda registry: Counter("ha_repairs", "", registry=registry), "does not say"),
        (lambda registry: Counter("ha_Repairs", "Repairs.", registry=registry), "no snake case"),
        (lambda registry: Counter("ha_x", "Repairs.", ["job"], registry=registry).labels("a"), "label job, which Prom"),
        (lambda registry: Counter("ha_x", "Repairs.", ["Why"], registry=registry).labels("a"), "label Why, which"),
        (lambda registry: Counter("ha_x", "Repairs.", ["why"], registry=registry).labels(""), "empty label"),
    ],
)
def test_the_lint_finds(made: Callable[[CollectorRegistry], object], fault: str) -> None:
    registry = CollectorRegistry()
    made(registry)
    found = list(faults(Exposition(registry).families))
    assert any(fault.replace("no base unit", "not in a base unit") in each for each in found), found
