"""Replica: at every instant, wherever it is killed, the newest closure in it is complete and was true at the source."""

from pathlib import Path
from random import Random

import pytest

from ha.spark.replication import replica as replica_module
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, HDFS
from tests.unit.ha.spark.replication.beside import RETAINED, Beside, one_thread

__all__ = ["one_thread"]

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]


@pytest.mark.parametrize("kind", FORMATS)
def test_it_is_promotable_wherever_the_replicator_is_killed(kind: str, tmp_path: Path) -> None:
    random = Random(kind)  # noqa: S311
    beside = Beside(tmp_path, kind, random)
    replica = None
    for _ in range(12):
        beside.step(random.randrange(60))
        kill_at = random.randrange(150) if random.random() < 0.5 else None
        replica = beside.round(replica, kill_at, random.choice([0, 0, 0, 1]))
    assert beside.deaths > 1
    assert beside.rounds > 2
    assert beside.checked > 30
    level(beside)
    assert len(beside.names().batches) <= RETAINED
    assert not list((tmp_path / "replicas").glob("*/*/copying/*/parts/*")), "a killed round has left nothing"


@pytest.mark.parametrize(("at_once", "most"), [(0, 1), (replica_module.AT_ONCE, 10)])
def test_a_short_round_is_copied_beside_the_replica_and_a_long_one_file_by_file(
    at_once: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_module, "AT_ONCE", at_once)
    found = []
    for kill_at in range(62, 220, 5):
        (place := tmp_path / f"{kill_at}").mkdir()
        beside = Beside(place, HDFS, Random(2))  # noqa: S311
        beside.step(60)
        beside.round(None, kill_at, 0)
        found.append(len(list((place / "replicas").glob("*/*/copying/*/parts/*"))))
        level(beside)
    assert max(found) == most


@pytest.mark.parametrize("kind", FORMATS)
def test_a_query_that_was_put_back_is_another_line(kind: str, tmp_path: Path) -> None:
    random = Random(kind)  # noqa: S311
    beside = Beside(tmp_path, kind, random)
    for _ in range(3):
        beside.step(random.randrange(20, 60))
        beside.save()
        beside.step(random.randrange(20, 100))
        level(beside)
        beside.rewind()
        beside.step(random.randrange(20, 60))
        replica = beside.round(None, random.randrange(200), 0)
        beside.step(random.randrange(100))
        beside.round(replica, None, 0)
    level(beside)
    assert beside.newest == (3, beside.spark.newest())


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_there_is_not_moved_again_after_the_source_has_forgotten_it(kind: str, tmp_path: Path) -> None:
    beside = Beside(tmp_path, kind, Random(0))  # noqa: S311
    beside.step(40)
    level(beside)
    beside.step(400)
    level(beside)
    assert beside.newest[0] == 0
    assert not list((tmp_path / "replicas").rglob("trash"))


def test_a_file_that_is_gone_ends_the_round_and_a_new_one_begins(tmp_path: Path) -> None:
    beside = Beside(tmp_path, HDFS, Random(1))  # noqa: S311
    beside.step(50)
    level(beside)
    beside.step(50)
    beside.leap = 200  # as soon as the round has begun to move, Spark forgets all of it
    replica = beside.round(None, None, 0)
    assert beside.lost == 1
    assert replica is not None
    level(beside)


def level(beside: Beside) -> None:
    replica = None
    for _ in range(3):
        replica = beside.round(replica, None, 0)
    beside.check()
    assert beside.newest[1] == beside.spark.newest()
