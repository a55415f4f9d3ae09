"""Verification by content: files are as long and named as they should be, and yet damaged."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.file_check import Checked, ContentCheck
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import AGAIN_S, Condition, ContentReport, Verified, fault, verify, verify_contents
from store.bounded import BoundedFiles
from store.errors import DeadlineExceeded, Unknown
from store.open import open_files
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, HDFS, ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_check_sums import hadoop_sums, spark_sum
from tests.unit.ha.checkpoints.test_closure import until_batch


def written(kind: str, place: Path, sums: Callable[[str], bool] = lambda _: False) -> Path:
    """Write a checkpoint whose batches 0 to 4 are retained; with Spark's check sums of the files that are named."""
    for path, data in until_batch(kind, 4).files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
        if sums(path):
            (place / f"{path}.crc").write_bytes(spark_sum(data))
    return place


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[BoundedFiles]:
    with open_files(tmp_path.as_uri()) as opened:
        yield opened


def verified(
    files: BoundedFiles, name: str, meanwhile: Callable[[], object] = bool
) -> tuple[list[Verified], ContentReport]:
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        meanwhile()

    def reader() -> CheckpointReader:
        return CheckpointReader(Tree(files, name))

    found, _ = verify(reader, pause)
    assert not paused
    result = verify_contents(reader, found, None, pause)
    assert paused in ([], [AGAIN_S])
    return result


def damaged(found: list[Verified]) -> dict[int, str]:
    return {each.batch: each.missing for each in found if each.condition is Condition.DAMAGED}


@pytest.mark.parametrize("kind", FORMATS)
def test_a_good_checkpoint_is_good(kind: str, files: BoundedFiles, tmp_path: Path) -> None:
    written(kind, tmp_path / "query", lambda path: path.endswith((".changelog", ".zip")))
    found, report = verified(files, "query")
    assert damaged(found) == {}
    assert report.files == report.summed + report.formed + report.unchecked
    assert report.summed > 0
    assert report.unchecked == 0


def test_a_rotten_file_damages_the_batches_that_need_it(files: BoundedFiles, tmp_path: Path) -> None:
    place = written(HDFS, tmp_path / "query")
    flip(place / "state/0/1/left/4.delta", 25)
    found, _ = verified(files, "query")
    assert damaged(found) == dict.fromkeys((3, 4), "state/0/1/left/4.delta")
    assert found[-1].reason.startswith("It is damaged. ")


def test_any_changed_bit_of_what_spark_has_summed_is_found(files: BoundedFiles, tmp_path: Path) -> None:
    place = written(ROCKSDB_IDS, tmp_path / "query", lambda path: path.endswith(".changelog"))
    random = Random(0)  # noqa: S311
    needed = list(place.rglob("5_*.changelog"))
    for path in random.sample(sorted(needed), 3):
        before = path.read_bytes()
        flip(path, len(before) - 21 + random.randrange(21))  # after the lineage, which is read anyway
        assert damaged(verified(files, "query")[0]) == {4: str(path.relative_to(place))}
        path.write_bytes(before)
    assert damaged(verified(files, "query")[0]) == {}


def test_check_sums_of_hadoop_are_compared(files: BoundedFiles, tmp_path: Path) -> None:
    place = written(HDFS, tmp_path / "query")
    store = place / "state/0/1/left"
    (store / ".5.delta.crc").write_bytes(hadoop_sums((store / "5.delta").read_bytes()))
    assert damaged(verified(files, "query")[0]) == {}
    (store / "5.delta").write_bytes((store / "4.delta").read_bytes())
    (found,) = [each for each in verified(files, "query")[0] if each.missing]
    assert (found.batch, found.condition, found.missing) == (4, Condition.ALTERED, "state/0/1/left/5.delta")
    flip(store / "5.delta", 25)
    assert damaged(verified(files, "query")[0]) == {4: "state/0/1/left/5.delta"}, "it has not even its form"


def test_what_is_replaced_or_deleted_meanwhile_is_no_damage(files: BoundedFiles, tmp_path: Path) -> None:
    place = written(HDFS, tmp_path / "query")
    path = place / "state/0/1/left/4.delta"
    good = path.read_bytes()
    flip(path, 25)
    found, _ = verified(files, "query", lambda: path.write_bytes(good))
    assert damaged(found) == {}
    flip(path, 25)
    found, report = verified(files, "query", path.unlink)
    assert damaged(found) == {}
    assert report.files == report.summed + report.formed + report.unchecked


def test_a_file_that_is_kept_is_damaged(files: BoundedFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(HDFS, tmp_path / "query")
    read, lost, error = Tree.read_through, "state/0/1/left/4.delta", Unknown("No DataNode has the block.")

    def lacks(tree: Tree, path: str, size: int, told: Callable[[bytes], object]) -> None:
        if path == lost:
            raise error
        read(tree, path, size, told)

    monkeypatch.setattr(Tree, "read_through", lacks)
    found, _ = verified(files, "query")
    assert damaged(found) == dict.fromkeys((3, 4), lost)
    assert "No DataNode has the block." in found[-1].reason
    error = DeadlineExceeded("slow")
    with pytest.raises(DeadlineExceeded):
        verified(files, "query")


def test_the_progress_is_told(files: BoundedFiles, tmp_path: Path) -> None:
    written(HDFS, tmp_path / "query")
    said: list[tuple[int, int]] = []
    reader = lambda: CheckpointReader(Tree(files, "query"))  # noqa: E731
    _, report = verify_contents(reader, verify(reader)[0], lambda done, total: said.append((done, total)))
    assert said[-1] == (report.bytes, report.bytes)
    assert [done for done, _ in said] == sorted(done for done, _ in said)


def checked(path: str, data: bytes, size: int | None = None) -> Checked:
    checking = ContentCheck(path, len(data) if size is None else size)
    checking.add(data)
    return checking.result()


@pytest.mark.parametrize("path", ["state/0/0/SSTs/1.sst", "state/0/0/3.zip", "state/0/0/3.delta", "offsets/3"])
def test_an_empty_file_is_damaged(path: str) -> None:
    assert checked(path, b"").fault


def test_an_empty_log_of_a_source_is_judged_by_what_the_source_reads() -> None:
    assert checked("sources/0/0", b"") == Checked(formed=True)


def test_a_part_of_a_file_is_damaged() -> None:
    assert checked("metadata", b"12", 3).fault == "It has 2 bytes, and 3 are listed."
    assert checked("metadata", b"123", 3) == Checked(formed=True)


def test_a_file_that_is_too_long_is_only_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked("state/0/0/3.delta", b"?" * 8).fault
    monkeypatch.setattr("ha.checkpoints.file_check.MOST_KEPT", 8)
    assert checked("state/0/0/3.delta", b"?" * 8).fault
    assert checked("state/0/0/3.delta", b"?" * 9) == Checked()


@pytest.mark.parametrize("path", ["metadata", "offsets/3", "offsets/4", "commits/4", "sources/0/4"])
def test_a_small_file_that_is_not_what_was_written_is_altered_whatever_spark_reads(
    path: str, files: BoundedFiles, tmp_path: Path
) -> None:
    place = written(HDFS, tmp_path / "q")
    reader = CheckpointReader(Tree(files, "q"))
    assert fault(lambda: reader) is None
    for each in (path, "offsets/2"):  # the second one is not read
        folder, _, name = each.rpartition("/")
        (place / folder / f".{name}.crc").write_bytes(hadoop_sums((place / each).read_bytes()))
    assert fault(lambda: CheckpointReader(Tree(files, "q"))) is None
    folder, _, name = path.rpartition("/")
    beside, data = place / folder / f".{name}.crc", (place / path).read_bytes()
    (place / path).write_bytes(data.replace(b"0", b"1", 1) if b"0" in data else data + b"\n")
    found = fault(lambda: CheckpointReader(Tree(files, "q")), pause=bool)
    assert found is not None
    assert found.missing == path
    assert "when it was written" in found.reason or "not what was written" in found.reason
    assert found.altered
    for said in (b"", beside.read_bytes()[:8], beside.read_bytes()[:-1], b"?" + beside.read_bytes()[1:]):
        beside.write_bytes(said)  # damaged itself: it says nothing, and Spark does not read it
        assert fault(lambda: CheckpointReader(Tree(files, "q")), pause=bool) is None
