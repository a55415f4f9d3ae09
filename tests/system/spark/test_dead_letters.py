"""Dead letters: published with their batch exactly once, with where they are from, and only so many tolerated."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ha.leadership import fenced_rename
from ha.leadership.leadership import Leadership
from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from ha.outputs.partition_commit import PartitionCommit
from ha.outputs.reading import BatchCondition, JournalReader
from ha.outputs.setting_aside import SettingAside
from ha.spark import DeadLetters, Output, checkpoint_location
from leader.errors import InvalidSettings, TooManyDeadLetters
from store.errors import ConnectionLost
from store.local import LocalFiles
from tests.system.spark.batches import batch, left, own_folder
from tests.system.spark.test_job import feed


def there(tmp_path: Path) -> dict[str, str]:
    out = tmp_path / "out"
    return {str(path.parent.relative_to(out)): path.read_text() for path in sorted(out.rglob("part-*"))}


@pytest.mark.parametrize("days", [[], ["day"]])
def test_they_come_with_their_batch_through_a_crash_at_each_rename(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: list[str]
) -> None:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    rename, expected, remaining = LocalFiles.rename, {}, [0]

    def then_die(files: LocalFiles, source: str, destination: str) -> None:
        if "/out/" in source:
            remaining[0] -= 1
            if remaining[0] < 0:
                raise ConnectionLost("the driver does nothing more")
        rename(files, source, destination)

    monkeypatch.setattr(LocalFiles, "rename", then_die)
    for number in range(8):
        remaining[0] = number
        tries = (f"first {number}", f"again {number}")
        for each in tries:
            try:
                with Output(leadership, (tmp_path / "out").as_uri(), partition_by=days) as made:
                    made.write(batch({"day=1": each} if days else each), number, batch(f"dead {each}"))
            except ConnectionLost:
                pass
            remaining[0] = 99
        found = there(tmp_path)
        row, letter = found[("day=1/" if days else "") + f"batch={number}"], found[f"_dead_letters/batch={number}"]
        assert letter == f"dead {row}", "both are of one try"
        expected[number] = row
    assert len(there(tmp_path)) == 16
    assert left(leadership) == []
    assert {each.split()[0] for each in expected.values()} == {"first", "again"}
    reader = JournalReader(lambda: leadership.own)
    (output,) = reader.outputs()
    files = LocalFiles(tmp_path / "out", durable=False)
    from store.bounded import BoundedFiles  # noqa: PLC0415

    with BoundedFiles(lambda: files) as target:
        assert {each.condition for each in reader.verified(output, list(range(6)), target)} == {BatchCondition.COMPLETE}
    with Output(leadership, (tmp_path / "out").as_uri(), partition_by=days) as made:
        renames = made._journal.renames
        folder = OutputFolder(renames, f"{renames.inside}/out/{own_folder(leadership).name}", "output")
        SettingAside(folder).put_away(3, f"{renames.inside}/trash")
    assert {each.rpartition("=")[2] for each in there(tmp_path)} == {"0", "1", "2", "3"}


def test_with_a_partition_commit_there_are_none(leadership: Leadership, tmp_path: Path) -> None:
    with Output(leadership, (tmp_path / "out").as_uri(), partition_by=["day"], commit=PartitionCommit()) as made:
        with pytest.raises(InvalidSettings, match="partition commit, so it can have no dead letters"):
            made.write(batch("x"), 0, batch("y"))
        with pytest.raises(InvalidSettings, match="need lists"):
            DeadLetters(made, "a IS NULL", "offset")


def test_places() -> None:
    assert layout.place("dead", 7) == "_dead_letters/batch=7"
    assert layout.place("alive", 7) == "batch=7"
    assert layout.place("dead=1/x=2", 7) == "dead=1/x=2/batch=7", "a column of that name"


@pytest.mark.spark
def test_lines_that_are_no_json_with_real_spark(spark: SparkSession, leadership: Leadership, tmp_path: Path) -> None:
    source, out = tmp_path / "in", (tmp_path / "out").as_uri()
    source.mkdir()

    def run(most: int) -> Any:
        lines = spark.readStream.text(source.as_uri()).selectExpr(
            "value", "_metadata.file_name AS file", "try_cast(value AS int) AS number"
        )
        with Output(leadership, out, source="json") as output:
            dead = DeadLetters(output, "number IS NULL", ["file", "value"], ["number"], max_failures_per_interval=most)
            writer = lines.coalesce(1).writeStream.foreachBatch(dead).trigger(availableNow=True)
            query = writer.option("checkpointLocation", checkpoint_location(leadership, "parsed")).start()
            assert query.awaitTermination(90)

    feed(source, 0, 1, 2)
    run(0)
    (source / "1.txt").write_text("3\nx\n4\n\n")
    with pytest.raises(Exception, match=r"Batch 1 of output 'output' has 2 records .* and 1 are tolerated") as caught:
        run(1)
    assert TooManyDeadLetters.__name__ in str(caught.value)
    assert not list((tmp_path / "out").glob("*/batch=1"))
    run(2)
    found = {key: [json.loads(each) for each in text.splitlines()] for key, text in there(tmp_path).items()}
    assert found == {
        "batch=0": [{"number": 1}, {"number": 2}],
        "batch=1": [{"number": 3}, {"number": 4}],
        "_dead_letters/batch=1": [{"file": "1.txt", "value": "x"}, {"file": "1.txt", "value": ""}],
    }
    assert sorted(row.number for row in spark.read.json(out).collect()) == [1, 2, 3, 4], "readers do not see them"
