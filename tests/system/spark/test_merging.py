"""Merging files of an output: whoever lists sees each row once, through crashes at every call; and on real HDFS."""

import json
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from ha.cli.commands import exit_code
from ha.leadership.fenced_rename import FencedRename
from ha.outputs.merging import Merge, Merging
from ha.spark import Output
from store.errors import NotFound
from store.files import Files
from store.open import driver_of
from store.webhdfs import WebHdfsFiles
from tests.patience import PATIENCE_S
from tests.system.spark.flat_reader import MergedRun
from tests.system.spark.helpers import files_of, leading

SEEDS = 120


pytestmark = pytest.mark.usefixtures("no_pauses")


def mistakes(run: MergedRun) -> list[str]:
    run.go()
    wrong = list(run.reader.wrong[:3])
    wrong += [f"lost: {run.lost}"] if run.lost else []
    wrong += [f"{row.batch} {row.condition} {row.missing}" for row in run.verified() if row.missing]
    wrong += [f"left: {each}" for each in run.clean()]
    wrong += [f"{row.batch} {row.condition} {row.missing}" for row in run.verified() if row.missing]
    return wrong + run.reader.wrong[:3]


def test_through_crashes_at_every_call_and_all_that_becomes_of_answers() -> None:
    merges = in_full = 0
    for seed in range(SEEDS):
        run = MergedRun(seed)
        assert not mistakes(run), (seed, mistakes(MergedRun(seed)))
        assert len(run.reader.complete) == run.batches
        merges, in_full = merges + run.merges, in_full + run.in_full
    assert merges > SEEDS
    assert in_full > SEEDS / 2


def found(seeds: int = 300, beyond: int = 0) -> bool:
    for seed in range(seeds):
        run = MergedRun(seed)
        run.beyond = beyond
        try:
            if mistakes(run):
                return True
        except AssertionError:
            return True
    return False


def test_a_merge_that_is_not_known_to_be_done_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be dropped, with all its rows."""
    monkeypatch.setattr(Merge, "done", lambda *_: False)
    assert found(20)


def test_a_merge_that_counts_as_done_when_its_file_is_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Merge, "done", lambda merge, listed: merge.target in listed)
    assert found()


def test_a_plan_that_is_given_up_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is executed late would fill a file that nobody knows."""
    monkeypatch.setattr(Merge, "possible", lambda *_: False)
    monkeypatch.setattr(
        Merging, "_drop", lambda merging, merge: merging._renames.remove(merging._at("merging", merge.target))
    )
    concat = Merging.finish

    def first_asked(merging: Merging, merge: Merge) -> bool:
        merging._make(merge, merging._out(merge.partition, merge.target))
        merging._concat(merging._out(merge.partition, merge.target),
                        [merging._out(merge.partition, name) for name in merge.files])  # fmt: skip
        return concat(merging, merge)

    monkeypatch.setattr(Merging, "finish", first_asked)
    assert found()


def test_a_merge_without_a_plan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Merging.begin

    def forgetful(merging: Merging, merge: Merge) -> None:
        begin(merging, merge)
        names = merging._at("merging", merge.target)
        for entry in merging._renames.list(names):
            merging._renames.remove(f"{names}/{entry.name}")

    monkeypatch.setattr(Merging, "begin", forgetful)
    assert found(20)


def test_batches_that_are_merged_before_they_are_complete_are_found() -> None:
    assert found(beyond=1)


def test_a_plan_that_is_not_finished_by_the_next_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    pending: Callable[..., Any] = Merging.pending
    monkeypatch.setattr(Merging, "pending", lambda merging: pending(merging)[:0])
    assert found()


def test_a_directory_that_was_claimed_since_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merger that would bring the old leader directory back to life is found by what it leaves."""
    checked: list[str] = []
    check = FencedRename.check

    def told(renames: FencedRename) -> None:
        checked.append(renames.inside)
        check(renames)

    monkeypatch.setattr(FencedRename, "check", told)
    run = MergedRun(3)
    assert not mistakes(run)
    directories = {f"{each.name}" for each in run.store.tree.list("jobs/orders")}
    assert directories == {run.homes[-1].name}
    assert checked


class Listener(threading.Thread):
    """Lists and reads everything, again and again; what vanishes between the two makes it begin anew."""

    def __init__(self, target: str) -> None:
        super().__init__(name="plain-reader", daemon=True)
        self.target, self.over = target, threading.Event()
        self.polls = self.begun_anew = self.most = 0
        self.fewest_files = 1 << 30
        self.wrong: list[str] = []

    def run(self) -> None:
        with files_of(self.target) as do:
            while not self.over.wait(0.002):
                try:
                    files = do(read)
                except NotFound:
                    self.begun_anew += 1
                    continue
                lines = [line for each in files.values() for line in each]
                self.polls += 1
                if len(set(lines)) != len(lines):
                    self.wrong.append(f"a row is there twice, of {len(lines)}")
                if len(lines) < self.most:
                    self.wrong.append(f"{len(lines)} rows after {self.most}")
                self.most, self.fewest_files = max(self.most, len(lines)), min(self.fewest_files, len(files))


def read(files: Files) -> dict[str, list[str]]:
    found = {}
    for day in files.list(""):
        for each in files.list(day.name):
            if each.size:
                path = f"{day.name}/{each.name}"
                found[path] = files.read(path, 1_000_000).decode().splitlines()
    return found


def blocks(web: WebHdfsFiles, path: str) -> list[int]:
    """The blocks of a file: who writes a row anew writes another block."""
    found = web._json("GET", web._at(path), "GET_BLOCK_LOCATIONS")["LocatedBlocks"]["locatedBlocks"]
    return [each["block"]["blockId"] for each in found]


BATCHES = 6


@pytest.mark.spark
@pytest.mark.hdfs
def test_beside_real_spark_on_real_hdfs(
    spark: SparkSession,
    job: str,
    hdfs_uri: str,
    webhdfs_uri: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = f"{hdfs_uri}-out/{job}"
    with files_of(f"{hdfs_uri}-out") as do:
        do(lambda files: files.make_root())
        do(lambda files: files.make_directory(job))
    web = cast("WebHdfsFiles", driver_of(f"{webhdfs_uri}-out/{job}")())

    def merge(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
        capsys.readouterr()
        code = exit_code(["output", "merge", job, "--files", hdfs_uri, "--json", *arguments])
        return code, json.loads(capsys.readouterr().out or "[]")

    def verify() -> tuple[int, str]:
        capsys.readouterr()
        code = exit_code(["output", "verify", job, "--files", hdfs_uri])
        return code, capsys.readouterr().out

    reader = Listener(target)
    with (
        leading(job, hdfs_uri) as leadership,
        Output(leadership, target, source="text", partition_by=["day"], mergeable=True) as output,
    ):
        for number in range(BATCHES):
            rows = [(f"row {each} of batch {number}", each % 2) for each in range(4)]
            output.write(spark.createDataFrame(rows, "value string, day int"), number)
            if not number:
                reader.start()
        before = {f"day=0/batch-{each}.txt": blocks(web, f"day=0/batch-{each}.txt") for each in range(3)}
        code, rows_told = merge("--files-each", "3", "--dry-run", "--older-than", "1 ms")
        assert (code, len(rows_told), {each["result"] for each in rows_told}) == (0, 4, {"would be merged"})
        assert merge("--files-each", "3")[1] == []  # nothing is an hour old

        with monkeypatch.context() as patch:  # it dies when the first merge has happened
            patch.setattr(Merging, "_keep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            assert merge("--files-each", "3", "--older-than", "1 ms")[0] == 130
        assert verify() == (0, f"output: {BATCHES} complete\n")
        code, rows_told = merge("--files-each", "3", "--older-than", "1 ms")
        assert (code, [each["result"] for each in rows_told]) == (0, ["merged"] * 4)
        assert merge("--files-each", "3", "--older-than", "1 ms") == (0, [])
        assert verify() == (0, f"output: {BATCHES} complete\n")

        name = next(each.name for each in web.list("day=0") if each.name.startswith("merged-0-2-"))
        assert blocks(web, f"day=0/{name}") == [block for each in before.values() for block in each]
        assert not output.write(spark.createDataFrame([("again", 0)], "value string, day int"), 1)
    with (
        leading(job, hdfs_uri) as leadership,
        Output(leadership, target, source="text", partition_by=["day"], mergeable=True) as output,
    ):  # a checkpoint before the merge: the replay is dropped
        assert not output.write(spark.createDataFrame([("again", 0)], "value string, day int"), BATCHES - 1)
        with files_of(target) as do:
            assert len(do(read)) == 4
        assert spark.read.text(target).select("value").distinct().count() == spark.read.text(target).count() == 24
        reader.over.set()
        reader.join(PATIENCE_S)
        with files_of(target) as do:
            do(lambda files: files.delete(f"day=0/{name}"))
        code, text = verify()
        assert (code, "3 complete, 3 gone since" in text, "day=0/batch-2.txt is not there" in text) == (1, True, True)
    assert not reader.wrong
    assert (reader.most, reader.fewest_files >= 1) == (24, True)
    assert reader.polls > 10
