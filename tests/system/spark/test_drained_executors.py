"""Workers of a real standalone cluster are decommissioned by host; others stay."""

from pathlib import Path

import pytest

from ha.drain.executors import Master
from ha.sandbox.ports import LOOPBACK, free_ports
from tests.system.spark.cluster import standalone

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_the_workers_of_a_host_are_decommissioned(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    master = Master(f"http://{LOOPBACK}:{port}")
    with standalone(tmp_path, port):
        assert master.decommission("elsewhere", 30.0) == []
        assert [each.state for each in master.workers(LOOPBACK)] == ["ALIVE"]
        assert master.decommission(LOOPBACK, 30.0) == []
        assert not any(each.busy for each in master.workers(LOOPBACK))
