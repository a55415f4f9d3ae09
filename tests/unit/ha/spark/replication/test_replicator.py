"""Replicator: a round reads of a job what the one before did not know, and no faster than is allowed."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import ha
from ha.checkpoints.trees import Tree
from ha.spark.replication.replicator import Budget, QueryRound, ReplicaSource, Replicator
from ha.spark.replication.report import replica_of
from leader.job.admin import JobAdmin
from store.open import open_files
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, SimulatedSpark
from tests.unit.ha.clocks import At

pytestmark = pytest.mark.usefixtures("quick")

Opened = list[str]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """The paths of the source that are opened, which is below ``here``."""
    paths: Opened = []
    really = Tree._opened

    def seen(tree: Tree, path: str) -> object:
        if "/spark/" in tree.path and replica_of("orders") not in tree.path:
            paths.append(path)
        return really(tree, path)

    monkeypatch.setattr(Tree, "_opened", seen)
    return paths


@pytest.fixture
def spark() -> SimulatedSpark:
    return SimulatedSpark(FORMATS[0], Random(0), compaction=10)  # noqa: S311


def beside(place: Path, spark: SimulatedSpark) -> Callable[[], dict[str, bytes]]:
    """Return what does one batch more, and brings the directory up to date; it returns what it has written."""
    run = spark.run()
    seen: dict[str, bytes] = {}

    def batch() -> dict[str, bytes]:
        before = spark.newest()
        while spark.newest() == before:
            next(run)
        written = {path: data for path, data in spark.files.items() if seen.get(path) is not data}
        for path, data in written.items():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(data)
        seen.update(spark.files)
        return written

    return batch


def test_a_round_reads_only_what_is_new(tmp_path: Path, spark: SimulatedSpark, opened: Opened) -> None:
    with (
        ha.lead("orders") as led,
        ha.lead(replica_of("orders"), files=(tmp_path / "there").as_uri(), zookeeper="") as leadership,
        open_files((tmp_path / "there").as_uri()) as there,
        open_files((tmp_path / "jobs").as_uri()) as here,
    ):
        place = Path(here.at(led.own.at("spark/daily")).removeprefix("file://"))
        replicator = Replicator(
            ReplicaSource(JobAdmin(here, None, 10.0), here, "orders", Budget()),
            there,
            leadership,
            JobAdmin(there, None, 10.0).directory(replica_of("orders"), leadership.own.leader),
            retained=3,
        )

        def moved() -> QueryRound:
            opened.clear()
            (found,) = replicator.round()
            assert not found.problem
            return found

        batch = beside(place, spark)
        for _ in range(4):
            batch()
        moved()
        for _ in range(3):
            written = batch()
            assert moved().batch == spark.newest()
            assert set(opened) <= written.keys(), "older ones are known"
            assert len(opened) == len(written) + 1, "each once, and the offsets again before the commit is shown"
        metadata = place / "metadata"
        metadata.write_bytes(b'{"id":"b1-b1-b1-b1-b1"}')
        batch()
        moved()
        assert "metadata" in opened, "it is another one, of the same length"
        path = next(each for each in sorted(batch()) if each.startswith("state/") and each.endswith((".delta", "log")))
        data = (place / path).read_bytes()
        (place / path).write_bytes(data[:-30] + bytes([data[-30] ^ 1]) + data[-29:])
        before = Tree(there, leadership.own.at("spark/daily")).listing("commits")
        (found,) = replicator.round()
        assert f"{path} is damaged, and is not copied" in found.problem
        assert Tree(there, leadership.own.at("spark/daily")).listing("commits") == before


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
