"""Whose batches an output has: a batch is only dropped if the same query does it again as it was.

Each test is a program as people write it, and something that happens to it: a query that begins again, another one, a
second write, a checkpoint that was put back. Nothing is ever lost without a word.
"""

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from ha.cli.commands import exit_code
from ha.hook.guarding import Guard, guarded
from ha.leadership.leadership import Leadership
from ha.outputs.batch import NOBODYS, Batch, offsets_of, planned
from ha.outputs.journal import Journal
from ha.spark import Output, checkpoint_location
from ha.spark.outputs import batch_origin
from ha.spark.sink.data_source import register_format
from ha.spark.stored.ledger import Ledger
from leader.errors import InvalidSettings
from store.errors import NotSent, StoreError
from tests.limits import joined
from tests.system.spark.helpers import leading

pytestmark = [pytest.mark.spark]

BOTH = pytest.mark.parametrize("sink", ["Output", "format"])


class Program:
    """A driver whose queries read lines of a folder, one file a batch, until there are no more."""

    def __init__(self, spark: SparkSession, leadership: Leadership, place: Path) -> None:
        self.spark, self.leadership, self.place = spark, leadership, place
        self.uri, self.files = (place / "out").as_uri(), 0
        self.jobs = leadership.directory.rpartition("/orders/")[0]
        self.opened: list[Output] = []
        (place / "in").mkdir()

    def feed(self, count: int, folder: str = "in") -> None:
        (self.place / folder).mkdir(exist_ok=True)
        for _ in range(count):
            (self.place / folder / f"{self.files:03d}.txt").write_text(f"line {self.files}\n")
            self.files += 1

    def output(self, name: str = "output", uri: str = "") -> Output:
        self.opened.append(Output(self.leadership, uri or self.uri, name, source="text"))
        return self.opened[-1]

    def run(self, sink: "str | Callable[[DataFrame, int], Any]", query: str = "words", **more: Any) -> str:
        """Run a query until it has read everything; returns its error."""
        each, folder, checkpoint = more.get("each", 1), more.get("folder", "in"), more.get("checkpoint", "")
        lines = self.spark.readStream.option("maxFilesPerTrigger", each).text((self.place / folder).as_uri())
        writer: Any = lines.coalesce(1).writeStream.trigger(availableNow=True)
        if query:
            location = checkpoint or checkpoint_location(self.leadership, query)
            writer = writer.option("checkpointLocation", location).queryName(query)
        if sink == "Output":
            sink = self.output()
        if sink == "format":
            writer = writer.format("ha").option("path", self.uri).option("format", "text")
        else:
            writer = writer.foreachBatch(sink)
        started = writer.start()
        try:
            assert started.awaitTermination(90)
        except Exception as error:  # noqa: BLE001  # PySpark's
            return f"{error}"
        return ""

    @property
    def checkpoint(self) -> Path:
        return Path(self.leadership.directory.removeprefix("file://"), "spark", "words")

    @property
    def found(self) -> list[int]:
        lines = [each for path in (self.place / "out").rglob("*.txt") for each in path.read_text().splitlines()]
        return sorted(int(each.removeprefix("line ")) for each in lines)

    @property
    def batches(self) -> list[int]:
        return sorted(int(each.name.removeprefix("batch=")) for each in (self.place / "out").glob("batch=*"))

    def say(self, *arguments: str) -> int:
        return exit_code([*arguments, "--files", self.jobs])


@pytest.fixture
def program(spark: SparkSession, tmp_path: Path) -> Iterator[Program]:
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        register_format(spark, leadership)
        made = Program(spark, leadership, tmp_path)
        yield made
        for each in made.opened:
            each.close()


def test_the_jvm_says_what_a_batch_was_planned_to_be(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a batch costs no read of its checkpoint, but the first one of a run."""
    read: list[int] = []

    def offsets(renames: Any, checkpoint: str, number: int) -> bytes:
        read.append(number)
        return offsets_of(renames, checkpoint, number)

    monkeypatch.setattr(batch_origin, "offsets_of", offsets)
    program.feed(3)
    assert program.run("Output") == ""
    program.feed(2)
    assert program.run("Output") == ""
    assert read == [0, 3]
    assert program.found == [0, 1, 2, 3, 4]
    admission = program.opened[-1]._journal._admission
    for number in range(5):
        said = (program.checkpoint / "offsets" / f"{number}").read_bytes()
        assert admission._plan_of(number) == planned(NOBODYS, number, said).plan


class Swallowing:
    """A function of foreachBatch that logs what its output raises, and goes on."""

    def __init__(self, output: Output, tries: int, parts: tuple[str, ...]) -> None:
        self.output, self.tries, self.parts = output, tries, parts

    def __call__(self, batch: DataFrame, number: int) -> None:
        for part in self.parts:
            for _ in range(self.tries):
                try:
                    self.output.write(batch.where(part), number)
                except (StoreError, InvalidSettings):
                    continue
                break


@pytest.mark.parametrize("parts", [("true",), ("value = 'line 2'", "value != 'line 2'")], ids=["whole", "in parts"])
@pytest.mark.parametrize("tries", [1, 2])
def test_a_function_that_goes_on_after_an_error_loses_nothing(
    program: Program, tries: int, parts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, failures = Journal.publish, [2]

    def failing(journal: Journal, attempt: str, batch: Batch, *more: Any) -> bool:
        if batch.number in failures:
            failures.clear()
            raise NotSent("The NameNode is away.")
        return publish(journal, attempt, batch, *more)

    monkeypatch.setattr(Journal, "publish", failing)
    program.feed(4)
    with guarded(Guard(f"{program.leadership.directory}/spark", lambda *_: None)):
        error = program.run(Swallowing(program.output(), tries, parts))
        said = "Output 'output' did not take batch 2 (The NameNode is away.), and the function of foreachBatch went on"
        assert (said in error) == (tries == 1), error
        assert not program.run(Swallowing(program.output(), 1, parts))
    assert program.found == [0, 1, 2, 3]


@BOTH
def test_a_query_begun_again_is_no_replay(program: Program, sink: str, capsys: pytest.CaptureFixture[str]) -> None:
    program.feed(5)
    assert not program.run(sink)
    shutil.rmtree(program.checkpoint)
    program.feed(2)
    error = program.run(sink, each=10)
    said = r"does not take batch 0 of query 'words' \([0-9a-f-]{36}\): it has batches up to 4 of query 'words' \("
    assert re.search(said, error), error
    assert "Nothing was written or dropped" in error
    assert program.found == [0, 1, 2, 3, 4]
    assert program.say("output", "begin-anew", "orders", "output", "--yes") == 0
    assert "after the batches of query 'words' (" in capsys.readouterr().out
    assert not program.run(sink, each=10)
    assert program.batches == [0, 1, 2, 3, 4, 5]
    assert program.found == sorted([*range(5), *range(7)]), "all of it, and twice what was read twice, as it was said"
    program.feed(1)
    assert not program.run(sink), "it is this query's from now on"
    assert program.batches[-1] == 6
    assert program.say("output", "verify", "orders") == 0
    assert "output: 7 complete, of query 'words' (" in capsys.readouterr().out


@BOTH
@pytest.mark.parametrize("back", [1, 3])
def test_a_checkpoint_that_was_put_back_is_not_taken_for_a_replay(program: Program, sink: str, back: int) -> None:
    """From an older copy: its next batch is planned again, with all that has come meanwhile."""
    program.feed(5 - back)
    assert not program.run(sink)
    shutil.copytree(program.checkpoint, program.place / "copy")
    program.feed(back)
    assert not program.run(sink)
    shutil.rmtree(program.checkpoint)
    shutil.copytree(program.place / "copy", program.checkpoint)
    program.feed(1)
    error = program.run(sink, each=10)
    assert re.search(rf"it has published that batch as {5 - back}, .*; its checkpoint was put back", error), error
    assert program.found == [0, 1, 2, 3, 4]


@BOTH
def test_a_replay_is_dropped_and_counted(program: Program, sink: str, capsys: pytest.CaptureFixture[str]) -> None:
    program.feed(3)
    assert not program.run(sink)
    (program.checkpoint / "commits/2").unlink()
    (program.checkpoint / "commits/.2.crc").unlink()
    program.feed(1)
    assert not program.run(sink)
    assert (program.found, program.batches) == ([0, 1, 2, 3], [0, 1, 2, 3])
    assert program.say("output", "list", "orders") == 0
    assert "; 1 done again, and dropped the second time" in capsys.readouterr().out


@BOTH
def test_a_copy_of_the_checkpoint_is_the_same_query(program: Program, sink: str) -> None:
    program.feed(3)
    assert not program.run(sink)
    program.checkpoint.rename(program.checkpoint.parent / "renamed")
    program.feed(1)
    assert not program.run(sink, "renamed")
    assert program.found == [0, 1, 2, 3]


@BOTH
def test_a_second_query_is_refused(program: Program, sink: str) -> None:
    program.feed(4)
    program.feed(4, "other")
    assert not program.run(sink)
    error = program.run(sink, "clicks", folder="other")
    assert re.search(r"does not take batch 0 of query 'clicks' .* has batches up to 3 of query 'words'", error), error
    assert program.found == [0, 1, 2, 3]


def test_a_batch_that_is_written_in_parts(program: Program) -> None:
    """Each of them once, also if the driver has died between them."""
    program.feed(4)
    output, dying = program.output(), {1}

    def split(rows: DataFrame, batch: int) -> None:
        output.write(rows.where("value LIKE '%1'"), batch)
        if batch in dying:
            dying.remove(batch)
            raise ArithmeticError("died between the parts")
        output.write(rows.where("value NOT LIKE '%1'"), batch)

    assert "died between the parts" in program.run(split)
    assert not program.run(split)
    assert program.found == [0, 1, 2, 3]
    program.feed(1)
    assert not program.run(program.output()), "and a program that writes each batch as one goes on"
    assert program.found == [0, 1, 2, 3, 4]


def test_two_queries_at_the_same_time(program: Program) -> None:
    """One of them has the output; the other one takes nothing away from it."""
    program.feed(4)
    program.feed(4, "other")
    output, errors = program.output(), dict[str, str]()

    def run(query: str, folder: str) -> None:
        errors[query] = program.run(output, query, folder=folder)

    threads = [threading.Thread(target=run, args=each) for each in (("words", "in"), ("clicks", "other"))]
    for each in threads:
        each.start()
    joined(*threads)
    (refused,) = (each for each in errors if errors[each])
    assert f"of query '{refused}'" in errors[refused]
    assert program.found == ([0, 1, 2, 3] if refused == "clicks" else [4, 5, 6, 7])


@pytest.mark.parametrize("same", [True, False], ids=["the same rows", "other rows"])
def test_a_write_that_is_tried_again_in_its_batch(program: Program, same: bool) -> None:
    """Other rows may be another part of the batch, so they are refused."""
    program.feed(2)
    output, broken = program.output(), program.place / "broken"
    broken.touch()
    whole = udf(lambda value: value if not broken.exists() else {}[value])

    def write(rows: DataFrame, batch: int) -> None:
        if broken.exists():
            with pytest.raises(Exception, match="KeyError"):
                output.write(rows.select(whole("value").alias("value")), batch)
            broken.unlink()
        output.write(rows.select(whole("value").alias("value")) if same else rows, batch)

    error = program.run(write)
    assert ("does not take these rows of batch 0: a write of other rows" in error) != same
    assert same or not program.run(write)
    assert program.found == [0, 1]


@pytest.mark.parametrize("inherited", [False, True])
def test_a_write_on_a_thread_of_the_program(program: Program, inherited: bool) -> None:
    from pyspark import InheritableThread  # noqa: PLC0415

    program.feed(2)
    output = program.output()

    def write(rows: DataFrame, batch: int) -> None:
        thread = (InheritableThread if inherited else threading.Thread)(target=lambda: output.write(rows, batch))
        thread.start()
        joined(thread)

    assert not program.run(write)
    assert program.found == [0, 1]


@BOTH
def test_a_query_that_cannot_be_known_again_is_refused(program: Program, sink: str, tmp_path: Path) -> None:
    program.feed(1)
    elsewhere = program.run(sink, checkpoint=(tmp_path / "elsewhere").as_uri())
    assert re.search(r"its checkpoint \S+/elsewhere\S* is not in \S+, so no takeover fences it", elsewhere), elsewhere
    program.spark.conf.set("spark.sql.streaming.checkpointLocation", program.leadership.path("spark"))
    try:
        nameless = program.run(
            sink, "", checkpoint=program.leadership.path("spark/6f1d6f0b-8c0c-4bd1-9d0c-1c38a8a07a11")
        )
    finally:
        program.spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert "it has no name, so it begins anew at each start" in nameless
    assert program.found == []


@BOTH
def test_the_ledger_finds_a_batch_that_is_gone(program: Program, sink: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The query gives the output each batch, so Spark's commits say which ones have to be there."""
    program.feed(4)
    with guarded(Guard(program.leadership.path("spark"), lambda *_: None)):
        assert not program.run(sink)
    (home,) = Path(program.leadership.directory.removeprefix("file://"), "out").iterdir()
    assert [each.name for each in home.glob("every=*")] == ["every=0~0"]
    assert program.say("output", "verify", "orders") == 0
    assert Ledger(program.leadership.own).gaps() == []
    capsys.readouterr()
    shutil.rmtree(home / "done/0/2")
    assert program.say("output", "verify", "orders") == 1
    said = capsys.readouterr().out
    assert "output  gap  it lacks batch 2, committed by query 'words': the rows are not published." in said
    assert program.say("output", "list", "orders") == 0
    assert "  gap: it lacks batch 2, committed by query 'words': the rows are not published." in capsys.readouterr().out
    assert "output  gap  batch 2 is gone from its journal: batch 3 was decided right after 2." in said
    (gap,) = Ledger(program.leadership.own).gaps()
    assert gap.batches == 1
    assert program.say("output", "list", "orders") == 0
    assert f"  gap: {gap.why}\n" in capsys.readouterr().out


@pytest.mark.parametrize("counted", [lambda: iter(range(9)), lambda: iter([0] * 9)], ids=["counter", "constant"])
def test_a_number_that_is_not_sparks_is_refused(program: Program, counted: Callable[[], Iterator[int]]) -> None:
    """A program that counts its batches itself begins with 0 after each start, which would pass for a repetition."""

    def counting() -> Callable[[DataFrame, int], Any]:
        output, numbers = program.output(), counted()
        return lambda batch, _: output.write(batch, next(numbers))

    program.feed(1)
    assert not program.run(counting())
    program.feed(1)
    assert "has got number 0 for batch 1 of query 'words'" in program.run(counting())
    assert not program.run("Output")
    assert program.found == [0, 1]


@pytest.mark.parametrize("at", ["each write", "the start"])
def test_two_objects_of_one_output_write_parts_of_a_batch(program: Program, at: str) -> None:
    """A program may open its output where it writes."""

    def opening() -> Callable[[DataFrame, int], None]:
        opened = [program.output(), program.output()] if at == "the start" else []

        def write(batch: DataFrame, number: int) -> None:
            for which, part in enumerate(("value < 'line 2'", "value >= 'line 2'")):
                (opened[which] if opened else program.output()).write(batch.where(part), number)

        return write

    program.feed(4)
    assert not program.run(opening(), each=2)
    assert program.found == [0, 1, 2, 3]
    program.feed(2)
    assert not program.run(opening(), each=2)
    assert program.found == [0, 1, 2, 3, 4, 5]
