"""Origins: what a program writes is taken for the batch of a query only if that is known."""

from pathlib import Path
from typing import Any, cast

import pytest

from ha.leadership.fenced_rename import FencedRename
from ha.outputs.batch import Batch, offsets_of, planned
from ha.spark.outputs import batch_origin
from ha.spark.outputs.batch_origin import Origins
from ha.spark.outputs.row_writer import written_files
from leader.errors import InvalidSettings
from store.bounded import BoundedFiles
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.system.spark.batches import Batch as Frame
from tests.system.spark.batches import Query, Session
from tests.system.spark.plain_reader import offsets


class Renames:
    def __init__(self, root: Path) -> None:
        self.root, self.inside = root.as_uri(), "jobs/orders/leader"
        self.files = BoundedFiles(lambda: LocalFiles(root, durable=False), uri=self.root)

    def do(self, operation: Any) -> Any:
        return self.files.call("test", operation, PATIENCE_S)

    def check(self) -> None:
        """It leads."""


class Program:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.renames = Renames(root)
        self.origins = self.opened("output")

    def opened(self, name: str) -> Origins:
        return Origins(cast("FencedRename", self.renames), name, f"{self.root}/{name}")

    def query(self, name: str | None = "words", identity: str = "0a", place: str = "") -> Query:
        place = place or f"jobs/orders/leader/spark/{name}"
        (self.root / place / "offsets").mkdir(parents=True, exist_ok=True)
        for number in range(3):
            (self.root / place / "offsets" / f"{number}").write_bytes(offsets(number))
        return Query(identity, name, f"file:{self.root}/{place}")

    def of(self, session: Session, number: int, rows: str = "rows") -> Batch:
        for each in [session.query, *session.others]:
            if each is not None:
                each.batch = number
        return self.origins.of(cast("Any", Frame(rows, session)), number)


@pytest.fixture
def program(tmp_path: Path) -> Any:
    made = Program(tmp_path)
    yield made
    made.renames.files.close()


def test_a_batch_of_a_query(program: Program) -> None:
    session = Session(program.query())
    first, second = program.of(session, 0), program.of(session, 1)
    assert (first.line.id, first.line.name, first.number) == ("0a", "words", 0)
    assert first.plan != second.plan
    assert second.moment is not None
    assert second.moment.watermark_ms == 1_000_000
    assert program.of(session, 1) == second, "the same in each try"


def test_a_batch_that_is_written_in_parts_by_one_run(program: Program) -> None:
    query = program.query()
    for part in (0, 1, 2):
        found = program.of(Session(query), 1)
        assert found.part == part
        assert program.of(Session(query), 1) == found, "until it has been written"
        program.origins.written(found)
    assert program.of(Session(query), 2).part == 0
    query.active = False
    assert program.of(Session(program.query()), 1).part == 0, "another run does all of it again"


def test_other_rows_do_not_take_the_place_of_those_that_were_not_written(program: Program) -> None:
    query = program.query()
    found = program.of(Session(query), 1)
    with pytest.raises(InvalidSettings, match="does not take these rows of batch 1: a write of other rows"):
        program.of(Session(query), 1, "others")
    assert program.of(Session(query), 1) == found, "the same ones again"
    program.origins.written(found)
    assert program.of(Session(query), 1, "others").part == 1
    assert program.of(Session(query), 2).part == 0, "Spark has seen the error, and done without: nothing waits"
    query.active = False
    assert program.of(Session(program.query()), 2, "others").part == 0, "another run begins with what it likes"


def test_no_thread_comes_between_a_look_at_what_has_begun_and_its_note(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look_at(kind: type, name: str) -> None:
        real = getattr(kind, name)

        def looking(*given: Any) -> Any:
            seen.append((name, batch_origin._LOCK.locked()))
            return real(*given)

        monkeypatch.setattr(kind, name, looking)

    look_at(Query, "resolvedCheckpointRoot")
    look_at(Frame, "sameSemantics")
    query = program.query()
    program.of(Session(query), 1)
    program.of(Session(query), 1)
    assert seen == [("resolvedCheckpointRoot", True), ("sameSemantics", True)]
    assert not batch_origin._LOCK.locked()


def test_a_write_whose_batch_cannot_be_read_has_begun(program: Program) -> None:
    query = program.query()
    (plan := program.root / "jobs/orders/leader/spark/words/offsets/1").rename(plan.with_name("away"))
    with pytest.raises(InvalidSettings, match="is not below the leader directory"):
        program.of(Session(query), 1)
    plan.with_name("away").rename(plan)
    with pytest.raises(InvalidSettings, match="other rows"):
        program.of(Session(query), 1, "others")


def test_a_number_that_is_not_sparks_is_refused(program: Program) -> None:
    query = program.query()
    program.of(Session(query), 2)
    for session in (Session(query), Session(None, [query])):
        with pytest.raises(InvalidSettings, match="has got number 0 for batch 2 of query 'words'"):
            program.origins.of(cast("Any", Frame("rows", session)), 0)


def test_an_output_that_is_opened_again_counts_on(program: Program) -> None:
    """As by a function that opens its output for each write."""
    query = program.query()
    program.origins.written(program.of(Session(query), 1))
    program.origins, other = program.opened("output"), program.opened("other")
    found = program.of(Session(query), 1)
    assert found.part == 1
    assert other.of(cast("Any", Frame("rows", Session(query))), 1).part == 0


def test_a_thread_of_the_program_has_the_only_query(program: Program) -> None:
    one, two = program.query(), program.query("clicks", "0b")
    assert program.of(Session(None, [one]), 0).line.name == "words"
    with pytest.raises(
        InvalidSettings, match="on a thread of the program's own, and nothing says of which of 2 queries"
    ):
        program.of(Session(None, [one, two]), 0)
    assert program.of(Session(), 5) == Batch(5), "a program without a query"


@pytest.mark.parametrize(
    ("name", "place", "why"),
    [
        ("words", "elsewhere/words", "takes no batch of query 'words': its checkpoint .*elsewhere/words is not in"),
        (None, f"jobs/orders/leader/spark/{'0' * 8}-0000-0000-0000-{'0' * 12}", "it has no name, so it"),
        ("a b", "", "'a b' cannot be the name of a query"),
        ("a/b", "", "its checkpoint .*a/b is not in"),
    ],
)
def test_a_query_that_cannot_be_known_again(program: Program, name: str | None, place: str, why: str) -> None:
    with pytest.raises(InvalidSettings, match=why):
        program.of(Session(program.query(name, "0a", place)), 0)


@pytest.mark.parametrize(
    ("says", "reads"),
    [(offsets, [0]), (lambda _: None, [0, 1, 2]), (lambda _: b"?", [0, 1, 2]), (lambda _: offsets(7), [0, 1, 2])],
    ids=["the same", "nothing", "what cannot be read", "another batch"],
)
def test_a_jvm_whose_word_stands_the_comparison_is_believed(
    program: Program, monkeypatch: pytest.MonkeyPatch, says: Any, reads: list[int]
) -> None:
    asked: list[int] = []

    def read(renames: Any, checkpoint: str, number: int) -> bytes:
        asked.append(number)
        return offsets_of(renames, checkpoint, number)

    monkeypatch.setattr(batch_origin, "offsets_in_memory", lambda _spark, _query, number: says(number))
    monkeypatch.setattr(batch_origin, "offsets_of", read)
    session, told = Session(program.query()), [offsets(number) for number in range(3)]
    found = [program.of(session, number) for number in range(3)]
    assert asked == reads
    assert [each.plan for each in found] == [
        planned(each.line, 0, said).plan for each, said in zip(found, told, strict=True)
    ]


def test_files_of_a_batch_are_read_from_the_note_of_sparks_sink() -> None:
    note = (
        b"v1\n"
        b'{"path":"hdfs://n:1/ha/orders/l/out/o/staged/a1/rows/day=1%252F2/part-0-x.parquet","size":7,"action":"add"}\n'
        b'{"path":"hdfs://n:1/ha/orders/l/out/o/staged/a1/rows/part-1-y.parquet","size":9,"action":"add"}\n'
    )
    record = written_files(note, "/ha/orders/l/out/o/staged/a1/rows/")
    assert record.partitions == {"": {"part-1-y.parquet": 9}, "day=1%2F2": {"part-0-x.parquet": 7}}
    assert written_files(b"v1", "/x/").files == 0
