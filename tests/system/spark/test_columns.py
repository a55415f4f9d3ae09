"""A program whose next version gives a column another type: what real Spark's readers do, against what we say."""

import shutil
import subprocess
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ha.outputs.columns import clash_of, types_of
from ha.spark import Output, checkpoint_location
from tests.patience import PATIENCE_S
from tests.system.spark.test_whose_batches import Program, program

__all__ = ["program"]

pytestmark = [pytest.mark.spark]

KINDS = {
    "tinyint": "1", "int": "70000", "bigint": "5000000000", "float": "1.5", "double": "2.5", "string": "'x'",
    "date": "date '2026-01-02'", "timestamp": "timestamp '2026-01-02 03:04:05'",
    "timestamp_ntz": "timestamp_ntz '2026-01-02 03:04:05'", "boolean": "true", "binary": "binary('x')",
    "decimal(10,2)": "1.25", "decimal(12,4)": "1.2525", "array<int>": "array(1)", "array<string>": "array('x')",
    "struct<b:int>": "named_struct('b', 1)", "struct<b:string>": "named_struct('b', 'x')",
    "struct<b:int,c:int>": "named_struct('b', 1, 'c', 2)", "map<string,int>": "map('k', 1)",
}  # fmt: skip

FAIL = {
    "parquet": {("int", "string"), ("int", "bigint"), ("date", "timestamp"), ("array<int>", "array<string>")},
    "orc": {("int", "date"), ("date", "int"), ("array<int>", "string"), ("int", "binary")},
}
"""Some of the pairs that are refused. Spark reads others, with a value that is not the one that was written: it takes
the types of the first file for all, and 70000 is no tinyint."""


def written(spark: SparkSession, place: Path, kind: str, source: str) -> Path:
    made = spark.range(1).selectExpr("id", f"cast({KINDS[kind]} as {kind}) as a")
    made.coalesce(1).write.format(source).save(place.as_uri())
    return next(each for each in place.iterdir() if each.name.startswith("part-"))


def reads(spark: SparkSession, place: Path, source: str) -> bool:
    """Whether people who read a whole output see both rows."""
    try:
        return len(spark.read.format(source).load(place.as_uri()).collect()) == 2
    except Exception:  # noqa: BLE001  # each kind has its own
        return False


@pytest.mark.parametrize("source", ["parquet", "orc"])
def test_what_is_taken_real_readers_read(spark: SparkSession, tmp_path: Path, source: str) -> None:
    files = {kind: written(spark, tmp_path / f"kind-{number}", kind, source) for number, kind in enumerate(KINDS)}
    types = {
        kind: types_of(spark.read.format(source).load(file.as_uri()).schema.jsonValue()) for kind, file in files.items()
    }
    taken = {pair for pair in permutations(KINDS, 2) if clash_of(types[pair[0]], types[pair[1]]) is None}
    assert taken == set(permutations(("struct<b:int>", "struct<b:int,c:int>")))
    assert not taken & FAIL[source]
    found = {}
    for number, pair in enumerate(taken | FAIL[source]):
        place = tmp_path / f"pair-{number}"
        for batch, kind in enumerate(pair):
            (place / f"batch={batch}").mkdir(parents=True)
            shutil.copy(files[kind], place / f"batch={batch}")
        found[pair] = reads(spark, place, source)
    assert found == {**dict.fromkeys(taken, True), **dict.fromkeys(FAIL[source], False)}


def test_complete_means_that_a_reader_of_all_gets_each_row(program: Program) -> None:
    """Whatever has come there meanwhile: a file of another type, and one more of ours."""

    def verified() -> tuple[int, str]:
        command = ["output", "verify", "orders", "--read", "--files", program.jobs]
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "ha.cli", *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return ended.returncode, ended.stdout + ended.stderr

    program.feed(3)
    lines = program.spark.readStream.option("maxFilesPerTrigger", 1).text((program.place / "in").as_uri())
    writer = lines.selectExpr("value", "length(value) as size").coalesce(1).writeStream.queryName("words")
    writer = writer.option("checkpointLocation", checkpoint_location(program.leadership, "words"))
    writer = writer.format("ha").option("path", program.uri).option("format", "parquet")
    assert writer.trigger(availableNow=True).start().awaitTermination(90)
    code, said = verified()
    assert (code, "a reader gets 3 rows" in said) == (0, True), said
    for kind, told in (("int", "its batches have 3 rows, and a reader of"), ("array<int>", "cannot read")):
        foreign = f"{program.uri}/batch=9"
        made = program.spark.range(1).selectExpr(
            "cast(id as string) as value", f"cast({KINDS[kind]} as {kind}) as size"
        )
        made.coalesce(1).write.mode("overwrite").parquet(foreign)
        code, said = verified()
        assert (code, told in said) == (1, True), said


@pytest.mark.parametrize("sink", ["Output", "format"])
def test_a_new_version_with_another_type_adds_nothing(program: Program, sink: str) -> None:
    def run(expression: str, feed: int) -> str:
        program.feed(feed)
        lines = program.spark.readStream.option("maxFilesPerTrigger", 1).text((program.place / "in").as_uri())
        writer: Any = lines.selectExpr("value", f"{expression} as size").coalesce(1).writeStream
        writer = writer.trigger(availableNow=True).queryName("words")
        writer = writer.option("checkpointLocation", checkpoint_location(program.leadership, "words"))
        if sink == "format":
            writer = writer.format("ha").option("path", program.uri).option("format", "parquet")
        else:
            program.opened.append(Output(program.leadership, program.uri, "output", source="parquet"))
            writer = writer.foreachBatch(program.opened[-1])
        try:
            assert writer.start().awaitTermination(90)
        except Exception as error:  # noqa: BLE001  # PySpark's
            return f"{error}"
        return ""

    assert not run("length(value)", 2)
    error = run("cast(length(value) as string)", 1)
    assert "Column 'size' of output" in error
    assert "has type integer in the batches that are there, and this program would add string" in error
    assert not run("length(value)", 1), "the version before it goes on, with the batch that was refused"
    assert program.spark.read.parquet(program.uri).count() == 4
