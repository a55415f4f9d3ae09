"""Partition advice: a line at the first start if Spark is going to freeze a number that does not suit."""

from types import SimpleNamespace
from typing import Any

import pytest

from ha.doctor.host import _partitions
from ha.spark.stored.partition_advice import PARTITIONS, advise, advised, suits


def session(partitions: str, cores: int) -> Any:
    known = {PARTITIONS: partitions}
    return SimpleNamespace(conf=known, sparkContext=SimpleNamespace(defaultParallelism=cores))


@pytest.mark.parametrize(
    ("partitions", "cores", "fine"), [(7, 8, False), (8, 8, True), (32, 8, True), (33, 8, False), (200, 2, False)]
)
def test_one_to_four_for_each_core(partitions: int, cores: int, fine: bool, caplog: pytest.LogCaptureFixture) -> None:
    assert suits(partitions, cores) is fine
    assert suits(advised(cores), cores)
    advise(session(f"{partitions}", cores), "orders")
    assert [f"Set {PARTITIONS} to {2 * cores}, which" in each for each in caplog.messages] == [True] * (not fine)


def test_the_doctor_says_the_number_for_its_host() -> None:
    assert "8 on the 4 of this host alone" in _partitions(4).found
