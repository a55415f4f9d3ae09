"""Settings that last: Spark retains what is listed, and a number of partitions that does not suit is told."""

from types import SimpleNamespace
from typing import Any

import pytest

from ha.doctor.host import _partitions
from ha.spark.session.spark_settings import MIN_BATCHES, PARTITIONS, advise, for_retained


def session(cores: int = 1, **settings: str | None) -> Any:
    names = {"retained": MIN_BATCHES, "partitions": PARTITIONS}
    known = {names[each]: value for each, value in settings.items() if value is not None}
    return SimpleNamespace(conf=known, sparkContext=SimpleNamespace(defaultParallelism=cores))


@pytest.mark.parametrize(
    ("present", "listed", "told"),
    [(None, 10, None), (None, 99, None), (None, 100, "101"), ("10", 10, "11"), ("11", 10, None), ("2", 1, None)],
)
def test_few_are_raised(present: str | None, listed: int, told: str | None, caplog: pytest.LogCaptureFixture) -> None:
    assert for_retained(session(retained=present), "orders", listed) == ({MIN_BATCHES: told} if told else {})
    assert [f"is set to {told}" in each for each in caplog.messages] == ([True] if told else [])


@pytest.mark.parametrize(
    ("partitions", "cores", "fine"),
    [(7, 8, False), (8, 8, True), (16, 8, True), (32, 8, True), (33, 8, False), (200, 2, False)],
)
def test_one_to_four_for_each_core(partitions: int, cores: int, fine: bool, caplog: pytest.LogCaptureFixture) -> None:
    advise(session(cores, partitions=f"{partitions}"), "orders")
    assert [f"Set {PARTITIONS} to {2 * cores}, which" in each for each in caplog.messages] == [True] * (not fine)


def test_the_doctor_says_the_number_for_its_host() -> None:
    assert "8 on the 4 of this host alone" in _partitions(4).found
