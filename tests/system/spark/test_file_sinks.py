"""Spark's own file sink, which knows a batch by its number alone: no query starts whose batches it would drop."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ha.hook.guarding import Guard, Refused, guarded

pytestmark = [pytest.mark.spark]


class Program:
    """A driver whose queries read lines of a folder, one file a batch."""

    def __init__(self, spark: SparkSession, place: Path) -> None:
        self.spark, self.place, self.files = spark, place, 0
        (place / "in").mkdir()

    def feed(self, count: int) -> None:
        for _ in range(count):
            (self.place / "in" / f"{self.files:03d}.txt").write_text(f"line {self.files}\n")
            self.files += 1

    def start(self, query: str, *, table: str = "", ends: bool = True, path: str | None = None) -> StreamingQuery:
        lines = self.spark.readStream.option("maxFilesPerTrigger", 1).text((self.place / "in").as_uri())
        writer = lines.writeStream.queryName(query) if query else lines.writeStream
        if not query:
            writer = writer.option("checkpointLocation", (self.place / "own").as_uri())
        writer = writer.trigger(availableNow=True) if ends else writer
        return (
            writer.format("text").toTable(table, path=path)
            if table
            else writer.start((self.place / "out").as_uri(), format="text")
        )

    def run(self, query: str, *, table: str = "", path: str | None = None) -> None:
        assert self.start(query, table=table, path=path).awaitTermination(90)

    @property
    def rows(self) -> int:
        return self.spark.read.text((self.place / "out").as_uri()).count()


@pytest.fixture
def program(spark: SparkSession, tmp_path: Path) -> Iterator[Program]:
    with guarded(Guard((tmp_path / "spark").as_uri(), lambda *_: None)):
        yield Program(spark, tmp_path)


def test_a_query_that_begins_anew_is_refused(program: Program) -> None:
    """As after a new name of the query or the job, and at the first start under ``ha run`` of a program that ran."""
    program.feed(2)
    program.run("orders")
    program.feed(1)
    for another in ("orders-2", ""):
        with pytest.raises(
            Refused, match=r"its next batch is 0, and file:/.*/out has batches up to 1 of another query"
        ):
            program.run(another)
    program.run("orders")
    assert program.rows == program.files, "the one that wrote there goes on"


def test_one_that_was_put_back_is_refused(program: Program) -> None:
    program.feed(1)
    program.run("orders")
    kept = shutil.copytree(program.place / "spark" / "orders", program.place / "kept")
    program.feed(2)
    program.run("orders")
    shutil.rmtree(program.place / "spark" / "orders")
    kept.rename(program.place / "spark" / "orders")
    with pytest.raises(Refused, match=r"its next batch is 1, and .* has batches up to 2 .* before it was put back"):
        program.run("orders")


def test_a_batch_that_was_published_and_not_committed_is_no_loss(program: Program) -> None:
    program.feed(2)
    program.run("orders")
    for name in ("1", ".1.crc"):
        (program.place / "spark" / "orders" / "commits" / name).unlink()
    program.feed(1)
    program.run("orders")
    assert program.rows == program.files


@pytest.mark.parametrize("name", ["a", ""])
def test_two_at_once_in_one_directory_are_refused(program: Program, name: str) -> None:
    first = program.start(name, ends=False)
    try:
        for another in ("b", ""):
            with pytest.raises(Refused, match=rf"the query '{name or first.id}' writes to .*/out as well"):
                program.start(another)
    finally:
        first.stop()


def test_a_table_has_a_directory_too(program: Program) -> None:
    program.feed(1)
    program.run("a", table="drops_no_batch")
    try:
        with pytest.raises(Refused, match=r"its next batch is 0, and .*/drops_no_batch has batches up to 0"):
            program.run("b", table="drops_no_batch")
    finally:
        program.spark.sql("DROP TABLE drops_no_batch")
    program.run("c")
    with pytest.raises(Refused, match=r"its next batch is 0, and .*/out has batches up to 0"):
        program.run("d", table="made_anew", path=(program.place / "out").as_uri())
