"""Regional outputs: on a local directory, and with queries of real Spark on real HDFS of which one is stuck."""

import json
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner
from pyspark.sql import DataFrame, SparkSession

import ha.spark
from ha.cli.commands import app
from ha.leadership.leadership import Leadership
from ha.outputs import lines
from ha.program import output_report
from ha.program.output_report import OutputReports
from ha.spark import RegionalOutput
from leader.errors import Fenced, InvalidSettings, OutputLost, RegionBehind
from store.bounded import BoundedFiles
from tests.patience import PATIENCE_S
from tests.system.spark.batches import Batch, batch, own_folder
from tests.system.spark.helpers import eventually, fence, files_of
from tests.system.spark.test_job import feed, running

REGIONS = ["a", "b", "c"]


def output(leadership: Leadership, tmp_path: Path, regions: list[str] = REGIONS, most: int = 100) -> RegionalOutput:
    return RegionalOutput(
        cast("SparkSession", None), leadership, (tmp_path / "out").as_uri(), regions, max_region_lag=most
    )


def found(tmp_path: Path) -> dict[str, str]:
    out = tmp_path / "out"
    return {str(path.parent.relative_to(out)): path.read_text() for path in sorted(out.rglob("part-*"))}


def listed(tmp_path: Path, *arguments: str) -> str:
    root = (tmp_path / "jobs").as_uri()
    return CliRunner().invoke(app, ["output", "list", "orders", "output", *arguments, "--files", root]).output


def test_regions_at_different_paces(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        for number in range(3):
            made.write("a", batch(f"a{number}"), number)
            made.write("b", batch(f"b{number}"), number)
        assert made.complete_up_to == -1
        assert [(each.checkpoint_id, each.scope, each.state) for each in made.behind] == [(0, "c", "EXPIRED")]
        assert "lacks batch 0: No batch of it has begun" in listed(tmp_path)
        assert made.write("c", batch("c0"), 0)
        assert made.complete_up_to == 2
        assert made.behind == []
        assert not made.write("c", batch("c0 again"), 0)
        assert made.write("c", batch("c1"), 1)
    expected = {f"region={region}/batch={number}": f"{region}{number}" for region in "ab" for number in range(3)}
    assert found(tmp_path) == expected | {"region=c/batch=2": "c0", "region=c/batch=3": "c1"}
    assert "complete up to batch 2 in all 3 regions" in listed(tmp_path)
    (told,) = json.loads(listed(tmp_path, "--json"))
    assert (told["complete_up_to"], told["regions"], told["behind"]) == (2, REGIONS, [])


def test_a_restart_goes_on_above_all_and_keeps_what_was_decided(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        for region, count in (("b", 1), ("c", 1), ("a", 3)):
            for number in range(count):
                made.write(region, batch(f"{region}{number}"), number)
    with output(leadership, tmp_path) as made:
        assert made.complete_up_to == 0
        assert not made.write("a", batch("a2 again"), 2)
        for region in "bc":
            assert made.write(region, batch(f"{region}1"), 1)
        assert made.complete_up_to == 2
    assert sorted(found(tmp_path)) == sorted(
        ["region=a/batch=0", "region=a/batch=1", "region=a/batch=2", "region=b/batch=0", "region=b/batch=3",
         "region=c/batch=0", "region=c/batch=3"]
    )  # fmt: skip


class Poison(Batch):
    def save(self, uri: str) -> dict[str, dict[str, int]]:
        raise ArithmeticError(f"Job aborted: Task 3 in stage 7.0 failed 1 times at {uri}")


def test_a_region_that_fails_holds_up_nobody_until_it_is_too_far_behind(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = OutputReports()
    for module in ("ha.spark.outputs.regional_output", "ha.outputs.journal"):
        monkeypatch.setattr(f"{module}.REPORTS", reports)
    with output(leadership, tmp_path, ["a", "b"], most=3) as made:
        with pytest.raises(ArithmeticError):
            made.write("b", cast("DataFrame", Poison("")), 0)
        for number in range(3):
            assert made.write("a", batch("rows"), number)
        with pytest.raises(RegionBehind, match=r"Region 'a' does not begin batch 3: region 'b' .* Task 3 in stage 7.0"):
            made.write("a", batch("rows"), 3)
        (behind,) = made.behind
        assert (behind.checkpoint_id, behind.scope, behind.state, behind.tasks) == (0, "b", "ERROR", ["7.0/3"])
        assert "region b is behind (ERROR): lacks batch 0, tasks 7.0/3: " in listed(tmp_path)
        (report,) = (each for each in reports.all() if each.name == "output")
        assert (report.complete_up_to, report.apart, report.behind) == (-1, 3, {"ERROR": 1})
        assert made.write("b", batch("rows"), 0)
        assert made.write("a", batch("rows"), 3)
        assert made.complete_up_to == 0
        assert made.write("b", batch("rows"), 1), "it has come to the others"
        assert (made.complete_up_to, made.behind) == (3, [])
    assert output_report.MOST_OUTPUTS >= 100


def test_a_region_whose_files_are_lost_does_not_hold_up_the_others(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        for region in REGIONS:
            made.write(region, batch("rows"), 0)
    for part in (tmp_path / "out" / "region=b").rglob("part-*"):
        part.unlink()
    done = own_folder(leadership, "b") / "done" / "0" / "0"
    done.rename(own_folder(leadership, "b") / "ready" / "0")
    with output(leadership, tmp_path) as made:
        assert made.write("a", batch("rows"), 1)
        assert made.write("a", batch("rows"), 2)
        with pytest.raises(OutputLost):
            made.write("b", batch("rows"), 1)
        assert [each.scope for each in made.behind if each.state == "ERROR"] == ["b"]
        assert made.complete_up_to == 0


def test_a_fenced_driver_publishes_nothing_and_moves_no_mark(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path, ["a"]) as made:
        made.write("a", batch("rows"), 0)
        fence(leadership)
        with pytest.raises(Fenced):
            made.write("a", batch("late"), 1)
    assert found(tmp_path) == {"region=a/batch=0": "rows"}


def test_what_it_does_not_take(leadership: Leadership, tmp_path: Path) -> None:
    output(leadership, tmp_path).close()
    with pytest.raises(InvalidSettings, match="has a region 'c' that is not given"):
        output(leadership, tmp_path, ["a", "b", "d"])
    output(leadership, tmp_path, [*REGIONS, "d"]).close()
    for wrong in ([], ["a", "a"], ["output"]):
        with pytest.raises(InvalidSettings, match="needs regions with names of their own"):
            output(leadership, tmp_path, wrong)
    with pytest.raises(InvalidSettings, match="max_region_lag"):
        output(leadership, tmp_path, most=0)
    for column in ("region", "batch"):
        with pytest.raises(InvalidSettings, match=f"has folders {column}=... of its own"):
            RegionalOutput(
                cast("SparkSession", None), leadership, (tmp_path / "out").as_uri(), REGIONS, partition_by=[column]
            )


def test_a_region_away_keeps_few_names(leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MOST_SHIFTS", 3)
    with output(leadership, tmp_path, ["a", "b"]) as made:
        for number in range(12):
            made.write("a", batch("rows"), number)
            if number % 2:
                made.write("b", batch("rows"), number // 2)
    kept = sorted(each.name for each in own_folder(leadership, "b").glob("line=*"))
    assert len(kept) == 1 + 3
    with output(leadership, tmp_path, ["a", "b"]) as made:
        assert not made.write("b", batch("again"), 5)


def test_calls_of_a_batch(leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seal, two lists, the record, the decision, the move, the end; one more for the mark, two for a higher id."""
    counted = 0
    outcome = BoundedFiles.outcome

    def count(*given: Any) -> Any:
        nonlocal counted
        counted += given[1] == "output"
        return outcome(*given)

    def cost(made: RegionalOutput, region: str, number: int) -> int:
        nonlocal counted
        counted = 0
        made.write(region, batch("rows"), number)
        return counted

    with output(leadership, tmp_path, ["a", "b"]) as made:
        for region in "ab":
            made.write(region, batch("rows"), 0)
        monkeypatch.setattr(BoundedFiles, "outcome", count)
        assert cost(made, "a", 1) == 7
        assert cost(made, "b", 1) == 8, "and the mark"
        assert cost(made, "a", 2) == 7
        assert cost(made, "a", 3) == 8, "it is told that the other one is behind"
        assert cost(made, "b", 2) == 11, "a higher id, the mark, and that nobody is behind any more"


@pytest.mark.spark
@pytest.mark.hdfs
def test_a_region_that_is_stuck_loses_the_others_no_batch(  # one story
    spark: SparkSession, job: str, hdfs_uri: str, tmp_path: Path
) -> None:
    """Of four queries one hangs in its second batch, and one has no data; in the end all rows are there once."""
    target = f"{hdfs_uri}-out/{job}"
    stuck, let_go = threading.Event(), threading.Event()
    leaderships, outputs = list[Leadership](), list[RegionalOutput]()
    declared = ha.spark.Job(job, files=hdfs_uri, zookeeper="", restart_strategy="none")

    def declare(region: str) -> None:
        @declared.query(name=region)
        def query(spark: SparkSession, leadership: Leadership) -> Any:
            if not outputs:
                leaderships.append(leadership)
                outputs.append(RegionalOutput(spark, leadership, target, "abcd", source="text"))
            write = outputs[0][region]

            def each(batch: DataFrame, number: int) -> None:
                if region == "b" and number == 1:
                    stuck.set()
                    let_go.wait(PATIENCE_S)
                write(batch, number)

            lines = spark.readStream.option("maxFilesPerTrigger", 1).text((tmp_path / region).as_uri())
            return lines.coalesce(1).writeStream.foreachBatch(each)

    for region in "abcd":
        (tmp_path / region).mkdir()
        declare(region)
    for name in "abc":
        feed(tmp_path / name, 0, 0)
    with running(declared, spark, leaderships) as ran:
        eventually(lambda: ran.error or (outputs and outputs[0].complete_up_to >= 0))
        assert ran.error is None, ran.error
        for number in range(1, 5):
            for name in "abc":
                feed(tmp_path / name, number, number)
            eventually(lambda number=number: rows(target, "a", "c") == 2 * (number + 1))  # type: ignore[misc]
        assert stuck.is_set()
        mark = outputs[0].complete_up_to
        eventually(lambda: [each.scope for each in outputs[0].behind] == ["b"])
        assert mark < max(batches(target, "a")), "it holds the mark, and nothing else"
        let_go.set()
        eventually(lambda: rows(target, "b") == 5)
        newest = max(batches(target, "a", "b", "c"))
        eventually(lambda: outputs[0].complete_up_to == newest)
        feed(tmp_path / "d", 0, 7)
        eventually(lambda: rows(target, "d") == 1)
        assert min(batches(target, "d")) > mark
    read = spark.read.schema("value string, region string, batch int").text(target).collect()
    expected = [(region, str(number)) for region in "abc" for number in range(5)]
    assert sorted((row.region, row.value) for row in read) == [*expected, ("d", "7")]
    outputs[0].close()


@pytest.mark.spark
def test_the_folders_of_a_region_are_one_path_for_spark(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(3):
        feed(tmp_path / f"in {number}", 0, number)
    folders = [(tmp_path / f"in {number}").as_uri().replace("%20", " ") for number in range(3)]
    (path,) = ha.spark.file_regions("all", folders, 1).values()
    assert sorted(row.value for row in spark.read.text(path).collect()) == ["0", "1", "2"]
    stream = spark.readStream.text(path).writeStream.format("memory").queryName("folders")
    query = stream.option("checkpointLocation", (tmp_path / "checkpoint").as_uri()).trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    assert spark.table("folders").count() == 3


def published(target: str) -> list[tuple[str, int, int]]:
    with files_of(target) as do:
        return [
            (region.name.partition("=")[2], int(each.name.partition("=")[2]), lines)
            for region in do(lambda files: files.list(""))
            for each in do(lambda files, region=region: files.list(region.name))  # type: ignore[misc]
            for lines in [
                sum(
                    do(lambda files, p=f"{region.name}/{each.name}/{part.name}": files.read(p, 10_000)).count(b"\n")  # type: ignore[misc]
                    for part in do(lambda files, p=f"{region.name}/{each.name}": files.list(p))  # type: ignore[misc]
                )
            ]
        ]


def rows(target: str, *regions: str) -> int:
    return sum(count for region, _, count in published(target) if region in regions)


def batches(target: str, *regions: str) -> list[int]:
    return [number for region, number, _ in published(target) if region in regions]
