"""Plain readers of an output: no row twice, none missing once its batch is complete, no part of a file; ever."""

import threading
from contextlib import suppress
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from ha.leadership.fenced_rename import FencedRename
from ha.leadership.leadership import Leadership
from ha.outputs.journal import Journal
from ha.outputs.moving import Moving
from ha.outputs.record import Record
from ha.spark import Output
from store.errors import AlreadyExists, ConnectionLost, NotFound
from store.files import Files
from store.hdfs import HdfsFiles
from tests.patience import PATIENCE_S
from tests.system.spark.faulty_store import FAULTS
from tests.system.spark.helpers import files_of, leading
from tests.system.spark.plain_reader import Run

SEEDS = 150


pytestmark = pytest.mark.usefixtures("no_pauses")


@pytest.mark.parametrize("seeds", [SEEDS // 3, SEEDS], ids=["some", "all"])
def test_through_crashes_at_every_call_and_all_that_becomes_of_answers(seeds: int) -> None:
    met: set[str] = set()
    for seed in range(seeds):
        run = Run(seed).go()
        assert not run.reader.wrong, (seed, run.reader.wrong[:3])
        assert run.lost is None, f"{seed}: nobody has deleted anything. {run.lost}"
        assert len(run.reader.complete) == run.batches
        met |= set(run.store.met)
    assert met == {*FAULTS, "ok"}


def found(seeds: int = 400, **arguments: float) -> bool:
    for seed in range(seeds):
        try:
            run = Run(seed, **arguments).go()  # type: ignore[arg-type]
        except AssertionError:
            return True
        if run.reader.wrong or (run.lost is not None and not run.injected):
            return True
    return False


def test_what_a_clean_up_deletes_is_always_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    injected = 0
    for seed in range(SEEDS):
        run = _with_pauses(seed, monkeypatch)
        assert not run.reader.wrong, (seed, run.reader.wrong[:3])
        assert (run.lost is not None) == (run.injected > 0), seed
        injected += run.injected
    assert injected > SEEDS // 3


def _with_pauses(seed: int, monkeypatch: pytest.MonkeyPatch) -> Run:
    run = Run(seed, cleaner=0.15, rate=0.05)
    monkeypatch.setattr("ha.outputs.moving.now", lambda: sum(run.pauses))
    return run.go()


def test_a_move_that_is_believed_when_it_is_seen_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FencedRename, "acknowledge", lambda _: None)
    assert found()


def test_a_batch_that_is_complete_whatever_is_missing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Record, "without", lambda *_: Record({}))
    assert any((run := _with_pauses(seed, monkeypatch)).reader.wrong or not run.lost for seed in range(SEEDS)
               if _with_pauses(seed, monkeypatch).injected)  # fmt: skip


def test_a_replay_that_is_published_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    settle = Journal.settle

    def forgetful(journal: Journal, attempt: str = "") -> None:
        settle(journal, attempt)
        journal.newest -= 1

    monkeypatch.setattr(Journal, "settle", forgetful)
    assert found()


def decided_late() -> list[str]:
    """A driver's decision is executed when its successor has published another try of the same batch."""
    run = Run(1, rate=0.0)
    store = run.store
    store.tree.make_parents("out")
    store.tree.make_parents("jobs/orders")
    home = cast("Leadership", run._lead(None))

    rename = store.rename

    def late(source: str, target: str) -> None:
        if "/ready/" not in target:
            rename(source, target)
            return
        store.late.append(lambda: store.tree.rename(source, target))
        raise ConnectionLost("no answer")

    with Output(home, "file:///sim/out/orders") as dead, pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "rename", late)
        store.pace = 0.0
        with pytest.raises(ConnectionLost):
            dead.write(cast("DataFrame", run._batch(0)), 0)
    run._ended(*run.running)
    with Output(home, "file:///sim/out/orders") as second:
        assert second.write(cast("DataFrame", run._batch(0)), 0)
    run._ended(*run.running)
    store.catch_up()
    with Output(home, "file:///sim/out/orders") as third:
        assert third.write(cast("DataFrame", run._batch(1)), 1)
    run._ended(*run.running)
    run.reader.complete |= {0, 1}
    run.reader.check_complete()
    return run.reader.wrong


def test_a_decision_that_is_executed_late_decides_nothing() -> None:
    assert not decided_late()


def test_a_successor_that_takes_nothing_over_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(journal: Journal, _: list[str]) -> str:
        own = journal._folder.at("own=1")
        journal._renames.make_folders(own)
        return own

    monkeypatch.setattr(Journal, "_taken", shared)
    wrong = ["a partition of the late try is in the way"]
    with suppress(AlreadyExists):  # or, if both tries have the same partitions, their rows are mixed
        wrong = decided_late()
    assert wrong


def test_a_batch_that_is_complete_before_its_moves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moving, "_move", lambda *_: True)
    assert found(10)


class Listener(threading.Thread):
    """Lists and reads everything every 10 ms; keeps what should not be."""

    def __init__(self, target: str) -> None:
        super().__init__(name="plain-reader", daemon=True)
        self.target, self.over = target, threading.Event()
        self.polls, self.most = 0, 0
        self.wrong: list[str] = []

    def run(self) -> None:
        with files_of(self.target) as do:
            while not self.over.wait(0.01):
                lines = [line for lines in do(read).values() for line in lines]
                self.polls += 1
                self.most = max(self.most, len(lines))
                if len(set(lines)) != len(lines):
                    self.wrong.append("a row is there twice")
                if any(len(line) != len("row 00 of batch 0") for line in lines):
                    self.wrong.append(f"a part of a row: {lines}")


def read(files: Files) -> dict[str, list[str]]:
    """The lines of each batch; a folder that is not there yet has none."""
    found: dict[str, list[str]] = {}
    with suppress(NotFound):
        for day in files.list(""):
            for each in files.list(day.name):
                for part in files.list(f"{day.name}/{each.name}"):
                    content = files.read(f"{day.name}/{each.name}/{part.name}", 10_000).decode()
                    found.setdefault(each.name, []).extend(content.splitlines())
    return found


@pytest.mark.spark
@pytest.mark.hdfs
def test_beside_spark_on_hdfs(spark: SparkSession, job: str, hdfs_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch's driver dies at another rename, and its successor does the batch again."""
    target = f"{hdfs_uri}-out/{job}"
    with files_of(f"{hdfs_uri}-out") as do:
        do(lambda files: files.make_root())
        do(lambda files: files.make_directory(job))
    reader = Listener(target)
    reader.start()
    rename = HdfsFiles.rename
    for number in range(4):
        rows = [(f"row {each:02d} of batch {number}", str(each % 2)) for each in range(20)]
        frame = spark.createDataFrame(rows, "value string, day string").coalesce(1)
        remaining = [number]

        def then_die(files: HdfsFiles, source: str, destination: str, left: list[int] = remaining) -> None:
            if f"{job}/" in source and "/out/" in source:
                left[0] -= 1
                if left[0] < 0:
                    raise ConnectionLost("the driver does nothing more")
            rename(files, source, destination)

        with leading(job, hdfs_uri) as leadership:
            made = Output(leadership, target, source="text", partition_by=["day"])
            with monkeypatch.context() as patch:
                patch.setattr(HdfsFiles, "rename", then_die)
                with pytest.raises(ConnectionLost):
                    made.write(frame, number)
            made.close()
        with (
            leading(job, hdfs_uri) as leadership,
            Output(leadership, target, source="text", partition_by=["day"]) as it,
        ):
            it.write(frame, number)
        with files_of(target) as do:
            assert sorted(do(read)[f"batch={number}"]) == sorted(line for line, _ in rows)
    reader.over.set()
    reader.join(PATIENCE_S)
    assert not reader.wrong
    assert reader.polls > 10
    assert reader.most == 80
