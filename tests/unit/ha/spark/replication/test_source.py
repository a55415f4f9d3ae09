"""Source: what it costs is counted, and calls and bytes begin no faster than allowed."""

from ha.spark.replication.source import Budget
from tests.unit.ha.clocks import At


def test_calls_and_bytes_are_counted_and_paced() -> None:
    time = At(100.0)
    budget = Budget(2, 100, time)
    budget.call()
    budget.file(300)  # half a second after the call
    assert time.now() == 100.5
    budget.file(10)  # when the bytes before it are due
    assert time.now() == 103.5
    assert (budget.calls, budget.bytes) == (3, 310)


def test_without_limits_nothing_waits() -> None:
    time = At(100.0)
    budget = Budget(clock=time)
    budget.call()
    budget.file(1 << 40)
    assert time.now() == 100.0
    assert (budget.calls, budget.bytes) == (2, 1 << 40)
