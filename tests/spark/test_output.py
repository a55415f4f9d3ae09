"""The output of batches: on a local directory with a pretended Spark, where every answer can be lost; and for real."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from ha.leadership import Leadership
from ha.spark import Output, output
from leader.errors import Fenced, InvalidSettings
from store.bounded import BoundedFiles
from store.errors import ConnectionLost, NotSent
from store.files import Entry
from store.local import LocalFiles
from tests.spark.helpers import eventually, fence, files_of, leading, names, rows


class Batch:
    """Writes as Spark does: with all directories above."""

    def __init__(self, content: str) -> None:
        self.content = content
        self.written: list[Path] = []

    @property
    def write(self) -> "Batch":
        return self

    def format(self, _: str) -> "Batch":
        return self

    def options(self, **_: str) -> "Batch":
        return self

    def save(self, uri: str) -> None:
        path = Path(uri.removeprefix("file://"))
        path.mkdir(parents=True)
        (path / "part-0").write_text(self.content)
        self.written.append(path)


def batch(content: str) -> DataFrame:
    return cast("DataFrame", Batch(content))


@pytest.fixture
def leadership(tmp_path: Path) -> Iterator[Leadership]:
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        yield leadership


def found(tmp_path: Path) -> dict[str, str]:
    return {path.parent.name: path.read_text() for path in (tmp_path / "out").glob("*/*")}


def left(leadership: Leadership) -> list[str]:
    """What lies in the output's own directories."""
    own = Path(leadership.directory.removeprefix("file://"), "out", "output")
    return sorted(f"{path.parent.name}/x" for path in own.glob("*/*"))


@pytest.fixture
def made(leadership: Leadership, tmp_path: Path) -> Iterator[Output]:
    made = Output(leadership, (tmp_path / "out").as_uri())
    yield made
    made.close()


class Lost(LocalFiles):
    """A connection to a NameNode that is gone and does not say so."""

    def __init__(self, root: Path, over: threading.Event) -> None:
        super().__init__(root, durable=False)
        self._over = over

    def list(self, path: str) -> list[Entry]:
        self._over.wait(60)
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

    def open_badly(uri: str) -> BoundedFiles:
        root = Path(uri.removeprefix("file://"))
        drivers = iter([Lost(root, over), Lost(root, over)])
        return BoundedFiles(lambda: next(drivers, None) or LocalFiles(root, durable=False), uri=uri)

    monkeypatch.setattr(output, "open_files", open_badly)
    monkeypatch.setattr(output, "CALL_TIMEOUT", 0.2)
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
    assert len(again.written) == 1  # evaluated nevertheless: its state must be stored
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


def test_a_driver_that_is_fenced_between_the_two_renames(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    [
        [done, done],
        [never, done, done],
        [refused, refused, done, refused, done],
        [never, never, done, never, done],
    ],
)
def test_lost_answers_are_found_out(
    leadership: Leadership,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    plan: list[Callable[[], None]],
    lose_answers: bool,
) -> None:
    monkeypatch.setattr(output, "RETRY", 0.0)
    remaining = list(plan)

    class Files(LocalFiles):
        def rename(self, source: str, destination: str) -> None:
            (remaining.pop(0) if remaining else done)()
            super().rename(source, destination)
            if lose_answers:
                raise ConnectionLost("the answer went missing")

    monkeypatch.setattr(
        output, "open_files", lambda uri: BoundedFiles(lambda: Files(uri.removeprefix("file://")), uri=uri)
    )
    made = Output(leadership, (tmp_path / "out").as_uri())
    assert made.write(batch("one"), 1)
    made.close()
    assert found(tmp_path) == {"batch=1": "one"}
    assert left(leadership) == []


def test_what_stays_unknown_is_said(made: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "RETRY", 0.0)
    monkeypatch.setattr(LocalFiles, "rename", lambda *_: never())
    with pytest.raises(ConnectionLost):
        made.write(batch("one"), 1)
    assert found(tmp_path) == {}


def test_what_an_earlier_driver_left_is_dropped(leadership: Leadership, tmp_path: Path) -> None:
    first = Output(leadership, (tmp_path / "out").as_uri())
    first.close()
    own = Path(leadership.directory.removeprefix("file://"), "out", "output")
    for place in ("staged", "ready"):
        (own / place / "attempt").mkdir(parents=True)
        (own / place / "attempt" / "part-0").touch()
    second = Output(leadership, (tmp_path / "out").as_uri())
    assert left(leadership) == []
    assert second.write(batch("one"), 1)
    second.close()


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
        assert names(leadership.path("out/output/ready")) == []
        fence(leadership)
        with pytest.raises(Fenced):
            made.write(frame, 1)
        made.close()
        assert names(target) == ["batch=0"]
        with files_of(leadership.directory) as do:  # the canary: Spark does revive what was renamed away
            assert eventually(lambda: do(lambda files: files.list("out/output/staged")))
