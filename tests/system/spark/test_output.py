"""Output of batches: on a local directory with a fake Spark, where every answer can be lost, and with a real Spark."""

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from ha.leadership import fenced_rename
from ha.leadership.leadership import Leadership
from ha.outputs.partition_commit import PartitionCommit
from ha.spark import Output
from leader.errors import Fenced, InvalidSettings
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, ConnectionLost, Invalid, NotSent
from store.files import Entry
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.system.spark.batches import Batch, batch, found, left, own_folder
from tests.system.spark.helpers import eventually, fence, files_of, leading, names, rows


@pytest.fixture
def made(leadership: Leadership, tmp_path: Path) -> Iterator[Output]:
    made = Output(leadership, (tmp_path / "out").as_uri())
    yield made
    made.close()


class Lost(LocalFiles):
    def __init__(self, root: Path, over: threading.Event) -> None:
        super().__init__(root, durable=False)
        self._over = over

    def list(self, path: str) -> list[Entry]:
        self._over.wait(PATIENCE_S)
        raise ConnectionLost(f"No answer about {path}.")

    def delete(self, path: str, *, recursive: bool = False) -> None:
        self.list(f"{path}, {recursive}")

    def make_directory(self, path: str) -> None:
        self.list(path)


def test_a_connection_that_hangs_is_replaced_before_anything_is_made(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a drill: a driver that was started while a NameNode was down began with that one, and gave up."""
    over = threading.Event()

    def open_badly(_: Leadership, uri: str) -> BoundedFiles:
        root = Path(uri.removeprefix("file://"))
        drivers = iter([Lost(root, over), Lost(root, over)])
        return BoundedFiles(lambda: next(drivers, None) or LocalFiles(root, durable=False), uri=uri)

    monkeypatch.setattr(Leadership, "open_files", open_badly)
    monkeypatch.setattr(fenced_rename, "CALL_TIMEOUT_S", 0.2)
    try:
        made = Output(leadership, (tmp_path / "out").as_uri())
        assert made.write(batch("one"), 1)
        made.close()
    finally:
        over.set()
    assert found(tmp_path) == {"batch=1": "one"}


def test_a_batch_appears_once(made: Output, leadership: Leadership, tmp_path: Path) -> None:
    assert made.write(batch("one"), 1)
    assert made.write(batch("two"), 2)
    again = Batch("one again")
    assert not made.write(cast("DataFrame", again), 1)
    assert again.evaluated == 1  # all the same: its state must be stored
    assert found(tmp_path) == {"batch=1": "one", "batch=2": "two"}
    assert left(leadership) == []


def test_a_fenced_driver_publishes_nothing(made: Output, leadership: Leadership, tmp_path: Path) -> None:
    assert made.write(batch("one"), 1)
    fence(leadership)
    late = Batch("late")
    with pytest.raises(Fenced, match="Epoch 1 of job 'orders' is over"):
        made.write(cast("DataFrame", late), 2)
    assert found(tmp_path) == {"batch=1": "one"}
    # Spark has brought the old epoch's directory back to life: with one rename it would have been published.
    assert late.written[0].exists()
    assert str(late.written[0]).startswith(leadership.directory.removeprefix("file://"))


def test_fenced_between_the_renames(leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = LocalFiles.rename

    def then_fence(files: LocalFiles, source: str, destination: str) -> None:
        rename(files, source, destination)
        if "/ready/" in destination:
            fence(leadership)

    monkeypatch.setattr(LocalFiles, "rename", then_fence)
    made = Output(leadership, (tmp_path / "out").as_uri())
    with pytest.raises(Fenced):
        made.write(batch("late"), 1)
    made.close()
    assert found(tmp_path) == {}


def test_it_cannot_be_made_by_a_fenced_driver(leadership: Leadership, tmp_path: Path) -> None:
    fence(leadership)
    with pytest.raises(Fenced):
        Output(leadership, (tmp_path / "out").as_uri())


def never() -> None:
    raise ConnectionLost("nobody knows")


def refused() -> None:
    raise NotSent("no connection")


def done() -> None:
    pass


@pytest.mark.parametrize("lose_answers", [False, True])
@pytest.mark.parametrize(
    "plan",
    [[done, done], [never, done, done], [refused, refused, done, refused, done], [never, never, done, never, done]],
)
def test_lost_answers_are_found_out(
    leadership: Leadership,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plan: list[Callable[[], None]],
    lose_answers: bool,
) -> None:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    remaining = list(plan)

    class Files(LocalFiles):
        def rename(self, source: str, destination: str) -> None:
            (remaining.pop(0) if remaining else done)()
            super().rename(source, destination)
            if lose_answers:
                raise ConnectionLost("the answer went missing")

    monkeypatch.setattr(
        Leadership, "open_files", lambda _, uri: BoundedFiles(lambda: Files(uri.removeprefix("file://")), uri=uri)
    )
    made = Output(leadership, (tmp_path / "out").as_uri())
    assert made.write(batch("one"), 1)
    made.close()
    assert found(tmp_path) == {"batch=1": "one"}
    assert left(leadership) == []


def test_what_stays_unknown_is_said(made: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    with monkeypatch.context() as patch:  # until the lease is given back, which needs renames
        patch.setattr(LocalFiles, "rename", lambda *_: never())
        with pytest.raises(ConnectionLost):
            made.write(batch("one"), 1)
    assert found(tmp_path) == {}


def test_what_an_earlier_driver_has_not_decided_is_dropped(leadership: Leadership, tmp_path: Path) -> None:
    Output(leadership, (tmp_path / "out").as_uri()).close()
    own = own_folder(leadership)
    (own / "staged" / "attempt" / "rows").mkdir(parents=True)
    (own / "staged" / "attempt" / "rows" / "part-0").touch()
    with Output(leadership, (tmp_path / "out").as_uri()) as second:
        assert left(leadership) == []
        assert second.write(batch("one"), 1)


def test_what_late_tasks_add_is_swept_with_the_first_of_a_thousand(
    made: Output, leadership: Leadership, tmp_path: Path
) -> None:
    assert made.write(batch("one"), 998)
    late = own_folder(leadership) / "staged" / "sealed-long-ago" / "rows" / "part-1"
    late.parent.mkdir(parents=True)
    late.touch()
    assert made.write(batch("two"), 999)
    assert late.exists(), "it costs a call"
    assert made.write(batch("three"), 1000)
    assert not late.parent.parent.exists()
    assert found(tmp_path) == {"batch=998": "one", "batch=999": "two", "batch=1000": "three"}


def test_what_a_zombies_spark_has_brought_back_to_life_is_swept_away(leadership: Leadership, tmp_path: Path) -> None:
    jobs = Path(leadership.directory.removeprefix("file://")).parent
    earlier, later = (LeaderDirectory(epoch, str(uuid.uuid4())).name for epoch in (0, 2))
    for name in (earlier, later, "somebody-elses"):
        (jobs / name / "out" / "staged").mkdir(parents=True)
    Output(leadership, (tmp_path / "out").as_uri()).close()
    assert not (jobs / earlier).exists()
    assert {later, "somebody-elses"} < {path.name for path in jobs.iterdir()}


def test_two_outputs_of_a_job_have_nothing_to_do_with_each_other(leadership: Leadership, tmp_path: Path) -> None:
    for part in ("one", "two"):
        with Output(leadership, (tmp_path / "out" / part).as_uri()) as output:
            assert output.write(batch(part), 1)
    assert found(tmp_path) == {"one/batch=1": "one", "two/batch=1": "two"}


def test_a_batch_of_somebody_else_is_not_taken_for_this_jobs(made: Output, tmp_path: Path) -> None:
    (tmp_path / "out" / "batch=1").mkdir()
    with pytest.raises(AlreadyExists, match=r"batch=1.*give the output a directory of its own"):
        made.write(batch("one"), 1)


def test_a_fenced_driver_whose_directory_was_revived_makes_no_output(leadership: Leadership, tmp_path: Path) -> None:
    fence(leadership)
    Path(leadership.directory.removeprefix("file://"), "spark", "orders").mkdir(parents=True)
    with pytest.raises(Fenced):
        Output(leadership, (tmp_path / "out").as_uri())


@pytest.mark.parametrize("uri", ["hdfs://names:1/out", "file:///", "out", "webhdfs://names:1/out"])
def test_an_output_that_no_rename_leads_to(leadership: Leadership, uri: str) -> None:
    with pytest.raises(InvalidSettings, match="choose a directory"):
        Output(leadership, uri)


@pytest.mark.spark
@pytest.mark.hdfs
def test_with_spark_on_hdfs(spark: SparkSession, job: str, hdfs_uri: str) -> None:
    target = f"{hdfs_uri}-out/{job}"
    with leading(job, hdfs_uri) as leadership:
        made = Output(leadership, target)
        frame = spark.createDataFrame([("a", 1), ("b", 2)], "word string, count long")
        assert made.write(frame, 0)
        assert not made.write(frame, 0)
        expected: list[dict[str, Any]] = [{"word": "a", "count": 1}, {"word": "b", "count": 2}]
        assert rows(target) == {"batch=0": expected}
        (own,) = names(leadership.path("out"))
        assert names(leadership.path(f"out/{own}/ready")) == []
        assert names(leadership.path(f"out/{own}/done/0")) == ["0"]
        fence(leadership)
        with pytest.raises(Fenced):
            made.write(frame, 1)
        made.close()
        assert names(target) == ["batch=0"]
        with files_of(leadership.directory) as do:  # the canary: Spark does revive what was renamed away
            assert eventually(lambda: do(lambda files: files.list(f"out/{own}/staged")))


ODD = ["a b", "x/y:z", "50%", "ä,=", "", "\x85", "it\x92s"]
"""Values that file systems and Spark do not like in names."""


@pytest.mark.spark
@pytest.mark.hdfs
@pytest.mark.parametrize(("source", "values"), [("parquet", ODD), ("json", ["a", "b"]), ("text", ["a", "b"])])
def test_partitions_in_each_format_with_spark_on_hdfs(
    spark: SparkSession, job: str, hdfs_uri: str, source: str, values: list[str]
) -> None:
    target = f"{hdfs_uri}-out/{job}"
    frame = spark.createDataFrame([(day, value) for value in values for day in "12"], "line string, part string")
    with leading(job, hdfs_uri) as first, Output(first, target, source=source, partition_by=["part"]) as output:
        assert output.write(frame.coalesce(1), 0)
    with leading(job, hdfs_uri) as second, Output(second, target, source=source, partition_by=["part"]) as output:
        assert not output.write(frame.coalesce(1), 0)
        assert output.write(frame.where("line = '1'").coalesce(1), 1)
    read = spark.read.format(source).schema(f"{'value' if source == 'text' else 'line'} string, part string, batch int")
    seen = sorted(tuple(row) for row in read.load(target).select("batch", "part").fillna("").collect())
    assert seen == sorted([(0, each) for each in values * 2] + [(1, each) for each in values])


def test_a_flat_batch_is_one_file_beside_the_others(leadership: Leadership, tmp_path: Path) -> None:
    by = ["day"]
    with Output(leadership, (tmp_path / "out").as_uri(), source="text", partition_by=by, mergeable=True) as made:
        assert made.write(batch({"day=1": "first", "day=2": "", "day=3": "third"}), 0)
        assert made.write(batch({"day=1": "second"}), 1)
        assert made.write(batch({"day=1": ""}), 2)
        assert not made.write(batch({"day=1": "again"}), 1)
    out = {str(path.relative_to(tmp_path / "out")): path.read_text() for path in (tmp_path / "out").rglob("batch-*")}
    assert out == {"day=1/batch-0": "first", "day=3/batch-0": "third", "day=1/batch-1": "second"}
    assert not found(tmp_path)
    assert left(leadership) == []


def test_an_output_is_flat_for_ever_or_never(leadership: Leadership, tmp_path: Path) -> None:
    for flat in (True, False):
        uri = (tmp_path / f"out-{flat}").as_uri()
        with Output(leadership, uri, source="text", mergeable=flat) as made:
            made.write(batch("rows"), 0)
        with pytest.raises(InvalidSettings, match="`mergeable` is chosen once"):
            Output(leadership, uri, source="text", mergeable=not flat)
        with Output(leadership, uri, source="text", mergeable=flat) as made:
            assert made.write(batch("rows"), 1)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        *(
            ({"source": each}, f"files of {each} behind each other are no such file: choose json or text, write fewer")
            for each in ("csv", "parquet", "orc")
        ),
        ({"commit": PartitionCommit(), "partition_by": ["day"]}, "has a partition commit, so it cannot be mergeable"),
    ],
)
def test_the_unmergeable_is_refused(leadership: Leadership, tmp_path: Path, more: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidSettings, match=why):
        Output(leadership, (tmp_path / "out").as_uri(), mergeable=True, **more)


def test_a_column_that_readers_would_find_twice_in_a_path_is_refused(leadership: Leadership, tmp_path: Path) -> None:
    """In an output that can be merged it is in the path once."""
    uri = (tmp_path / "out").as_uri()
    with pytest.raises(InvalidSettings, match="has folders batch="):
        Output(leadership, uri, partition_by=["batch"])
    Output(leadership, uri, partition_by=["batch"], mergeable=True).close()


def test_several_files_of_a_partition_are_refused(leadership: Leadership, tmp_path: Path) -> None:
    class Two(Batch):
        def save(self, uri: str) -> dict[str, dict[str, int]]:
            super().save(uri)
            (self.written[-1] / "part-1").write_text("more")
            return {"": {"part-0": 4, "part-1": 4}}

    with (
        Output(leadership, (tmp_path / "out").as_uri(), mergeable=True) as made,
        pytest.raises(Invalid, match="has 2 files, and an output that can be merged needs one"),
    ):
        made.write(cast("DataFrame", Two("rows")), 0)
