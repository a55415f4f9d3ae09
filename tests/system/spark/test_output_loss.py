"""Rows that somebody deletes on their way to their readers: found, said and counted, and never taken for published."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ha.leadership import fenced_rename
from ha.leadership.leadership import Leadership
from ha.outputs.folder import OutputFolder
from ha.outputs.moving import KEPT_BUCKETS, LOOK_AGAIN_S, Moving
from ha.outputs.record import Record
from ha.program.output_report import OutputReports, path_beside, read
from ha.spark import Output
from leader.errors import Fenced, OutputLost
from store.errors import AlreadyExists, ConnectionLost, NotFound
from store.local import LocalFiles
from tests.system.spark.batches import batch, found, left, own_folder
from tests.system.spark.helpers import count_calls, fence

DAYS = {f"day={day}": "first" for day in range(4)}
OTHERS = {f"day={day}": "second" for day in range(4)}


def output(leadership: Leadership, tmp_path: Path) -> Output:
    return Output(leadership, (tmp_path / "out").as_uri(), partition_by=["day"])


@pytest.fixture
def crashed(leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Path]:
    """Return a function: write batch 7, die after so many renames behind the seal, and return the batch's folder."""

    def crash(renames: int) -> Path:
        rename, remaining = LocalFiles.rename, [1 + renames]

        def then_die(files: LocalFiles, source: str, destination: str) -> None:
            if not remaining[0]:
                raise ConnectionLost("the driver does nothing more")
            rename(files, source, destination)
            remaining[0] -= 1

        with monkeypatch.context() as patch, output(leadership, tmp_path) as first:
            assert first.write(batch(DAYS), 6)
            patch.setattr(LocalFiles, "rename", then_die)
            patch.setattr(fenced_rename, "RETRY_S", 0.0)
            with pytest.raises(ConnectionLost):
                first.write(batch(DAYS), 7)
        return own_folder(leadership) / "ready" / "7"

    return crash


def gone(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def renamed(folder: Path) -> None:
    (name,) = folder.glob("files=*")
    name.rename(folder / name.name[:-5])


ONE = "1 of its 4 files were deleted or changed before it was: "


@pytest.mark.parametrize(
    ("renames", "damage", "why"),
    [
        (1, lambda folder: gone(folder / "rows"), r"Batch 7 of output 'output'.* 4 of its 4 files .*day=0/part-0"),
        *((each, lambda folder: gone(folder / "rows" / "day=3"), f"{ONE}day=3/part-0") for each in (1, 2, 3, 4)),
        (2, lambda folder: gone(folder / "rows" / "day=2" / "part-0"), f"{ONE}day=2/part-0"),
        (2, lambda folder: (folder / "rows" / "day=2" / "part-0").write_text("longer"), f"{ONE}day=2/part-0"),
        (2, lambda folder: gone(next(folder.glob("files=*"))), "what it consists of is not known"),
        (2, renamed, "what it consists of is not known"),
    ],
)
def test_what_is_deleted_or_changed_after_the_decision_is_missed(
    crashed: Callable[[int], Path],
    leadership: Leadership,
    tmp_path: Path,
    reports: OutputReports,
    renames: int,
    damage: Callable[[Path], object],
    why: str,
) -> None:
    """The replay of the batch must not hide it: its rows are dropped, because the batch was decided."""
    folder = crashed(renames)
    damage(folder)
    before = found(tmp_path)
    with pytest.raises(OutputLost, match=why) as raised:
        output(leadership, tmp_path)
    assert ("time to live that is shorter than a pause of this job" in str(raised.value)) == bool(raised.value.lost)
    assert reports.all()[0].lost == max(1, raised.value.lost), "a record that is lost counts as a file"
    assert found(tmp_path) == before, "nothing is moved as long as something is lost"
    assert folder.exists()


def test_a_rename_of_a_dead_driver_that_is_executed_late_is_no_loss(
    crashed: Callable[[int], Path], leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = crashed(3)
    there = Moving._there

    def meanwhile(moving: Moving, number: int, record: Record) -> Record:
        seen = there(moving, number, record)
        if (folder / "rows" / "day=2").exists():
            (folder / "rows" / "day=2").rename(tmp_path / "out" / "day=2" / "batch=7")
        return seen

    monkeypatch.setattr(Moving, "_there", meanwhile)
    moved = moving_of(leadership, tmp_path).finish(7)
    assert (moved.created, moved.renamed, moved.ignored, moved.failed) == (4, 1, 3, 0)
    assert sum(place.endswith("=7") for place in found(tmp_path)) == 4


def test_a_last_rename_of_a_dead_driver_that_is_executed_late_is_no_loss(
    crashed: Callable[[int], Path], leadership: Leadership, tmp_path: Path
) -> None:
    folder = crashed(5)
    shutil.move(folder, tmp_path / "away")
    with pytest.raises(OutputLost):  # it is not complete
        moving_of(leadership, tmp_path).finish(7)
    shutil.move(tmp_path / "away", folder.parent.parent / "done" / "0" / "7")
    moved = moving_of(leadership, tmp_path).finish(7)
    assert (moved.created, moved.renamed, moved.ignored, moved.failed) == (4, 0, 4, 0)


def test_what_is_restored_is_moved(crashed: Callable[[int], Path], leadership: Leadership, tmp_path: Path) -> None:
    folder = crashed(2)
    (folder / "rows" / "day=3").rename(tmp_path / "kept")
    with pytest.raises(OutputLost):
        output(leadership, tmp_path)
    (tmp_path / "kept").rename(folder / "rows" / "day=3")
    with output(leadership, tmp_path) as again:
        assert not again.write(batch(OTHERS), 7)
    assert [content for place, content in found(tmp_path).items() if place.endswith("=7")] == ["first"] * 4
    assert left(leadership) == []


def test_a_loss_between_two_renames(leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = LocalFiles.rename

    def then_delete(files: LocalFiles, source: str, destination: str) -> None:
        rename(files, source, destination)
        if destination.endswith("ready/7"):
            shutil.rmtree(own_folder(leadership) / "ready" / "7" / "rows" / "day=2")

    with output(leadership, tmp_path) as made:
        monkeypatch.setattr(LocalFiles, "rename", then_delete)
        with pytest.raises(OutputLost, match="day=2/part-0"):
            made.write(batch(DAYS), 7)
        with pytest.raises(OutputLost, match="day=2/part-0"):  # and as often as it is tried
            made.write(batch(OTHERS), 8)
    assert not any(place.endswith("=8") for place in found(tmp_path))


@pytest.mark.parametrize(("seconds", "noticed"), [(LOOK_AGAIN_S, False), (LOOK_AGAIN_S + 0.1, True)])
def test_after_a_pause_the_places_are_looked_at(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, noticed: bool
) -> None:
    """A driver that was frozen between the record and the moves: a single file was deleted meanwhile."""
    at = [0.0]
    rename = LocalFiles.rename

    def pause(files: LocalFiles, source: str, destination: str) -> None:
        if destination.endswith("ready/7"):
            (tmp_path / "jobs").joinpath(source[source.index("orders") :], "rows", "day=2", "part-0").unlink()
            at[0] += seconds
        rename(files, source, destination)

    monkeypatch.setattr("ha.outputs.moving.now", lambda: at[0])
    with output(leadership, tmp_path) as made:
        monkeypatch.setattr(LocalFiles, "rename", pause)
        if noticed:
            with pytest.raises(OutputLost, match=r"day=2/part-0\. That happened below"):
                made.write(batch(DAYS), 7)
        else:
            assert made.write(batch(DAYS), 7)


def test_what_was_complete_and_is_deleted_by_its_readers_is_no_loss(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        assert made.write(batch(DAYS), 7)
    shutil.rmtree(tmp_path / "out")
    with output(leadership, tmp_path) as made:
        assert made.write(batch(DAYS), 8)


def test_rows_that_are_deleted_before_the_decision_are_written_again(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with output(leadership, tmp_path) as made:
        look = Moving.take_stock

        def too_late(moving: Moving, attempt: str, wrote: Record) -> object:
            shutil.rmtree(next(own_folder(leadership).glob("own=*/*")))
            return look(moving, attempt, wrote)

        with monkeypatch.context() as patch:
            patch.setattr(Moving, "take_stock", too_late)
            with pytest.raises(NotFound, match=r"batch 7 .* is gone: .* so the query does the batch again"):
                made.write(batch(DAYS), 7)
        assert made.write(batch(OTHERS), 7)
    assert set(found(tmp_path).values()) == {"second"}


def test_a_driver_that_is_fenced_before_the_decision_is_told_so(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows have gone with its leader directory: nobody has cleaned up."""
    look = Moving.take_stock

    def too_late(moving: Moving, attempt: str, wrote: Record) -> object:
        fence(leadership)
        return look(moving, attempt, wrote)

    with output(leadership, tmp_path) as made:
        monkeypatch.setattr(Moving, "take_stock", too_late)
        with pytest.raises(Fenced):
            made.write(batch(DAYS), 7)


def test_a_thousand_that_has_just_begun_hides_no_batch(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        assert made.write(batch(DAYS), 999)
    (own_folder(leadership) / "done" / "1").mkdir()
    with output(leadership, tmp_path) as made:
        assert not made.write(batch(OTHERS), 999)


def test_a_decision_of_which_nothing_is_in_place_can_be_undone(
    crashed: Callable[[int], Path], leadership: Leadership, tmp_path: Path
) -> None:
    shutil.rmtree(crashed(1) / "rows")
    moving_of(leadership, tmp_path).withdraw(7)
    with output(leadership, tmp_path) as again:
        assert again.write(batch(OTHERS), 7)
    assert [content for place, content in found(tmp_path).items() if place.endswith("=7")] == ["second"] * 4


def test_a_decision_that_was_seen_stays(crashed: Callable[[int], Path], leadership: Leadership, tmp_path: Path) -> None:
    crashed(2)
    with pytest.raises(AlreadyExists, match="1 of the 4 files of batch 7 are in their places"):
        moving_of(leadership, tmp_path).withdraw(7)


def test_a_loss_can_be_accepted(crashed: Callable[[int], Path], leadership: Leadership, tmp_path: Path) -> None:
    shutil.rmtree(crashed(2) / "rows" / "day=2")
    moved = moving_of(leadership, tmp_path).finish(7, accept_loss=True)
    assert (moved.created, moved.renamed, moved.ignored, moved.failed) == (4, 2, 1, 1)
    with output(leadership, tmp_path) as again:
        assert not again.write(batch(OTHERS), 7)
        assert again.write(batch(OTHERS), 8)
    assert sum(place.endswith("=7") for place in found(tmp_path)) == 3


def moving_of(leadership: Leadership, tmp_path: Path) -> Moving:
    renames = fenced_rename.FencedRename(leadership, (tmp_path / "out").as_uri())
    return Moving(OutputFolder(renames, f"{renames.inside}/out/{own_folder(leadership).name}", "output"))


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> OutputReports:
    reports = OutputReports()
    for module in ("ha.spark.outputs.output", "ha.spark.outputs.publisher", "ha.outputs.journal"):
        monkeypatch.setattr(f"{module}.REPORTS", reports)
    return reports


def test_each_file_is_counted_when_its_batch_is_complete(
    reports: OutputReports, crashed: Callable[[int], Path], leadership: Leadership, tmp_path: Path
) -> None:
    crashed(3)  # batch 6 is complete, and of batch 7 two partitions are in their places
    (report,) = reports.all()
    assert report.files == {"created": 4, "renamed": 4, "ignored": 0, "failed": 0}
    with output(leadership, tmp_path) as again:
        assert report.files == {"created": 8, "renamed": 6, "ignored": 2, "failed": 0}
        assert again.write(batch(OTHERS), 8)
    assert report.files == {"created": 12, "renamed": 10, "ignored": 2, "failed": 0}
    assert {name: sum(step.counts) for name, step in report.steps.items()} == {
        "write": 3, "record": 3, "decide": 3, "move": 2,
    }  # fmt: skip


def test_what_is_lost_is_counted_until_it_is_mended(
    reports: OutputReports, crashed: Callable[[int], Path], leadership: Leadership, tmp_path: Path
) -> None:
    folder = crashed(3)
    (folder / "rows" / "day=3").rename(tmp_path / "kept")
    for tries in (1, 2):
        with pytest.raises(OutputLost):
            output(leadership, tmp_path)
        (report,) = reports.all()
        assert (report.lost, report.files["failed"]) == (1, tries)
        assert report.files["created"] == 4 + tries
    (tmp_path / "kept").rename(folder / "rows" / "day=3")
    output(leadership, tmp_path).close()
    assert (report.lost, report.files["failed"]) == (0, 2)


@pytest.mark.parametrize(("partitions", "usual"), [(0, 6), (1, 5 + 2), (4, 5 + 2 * 4), (40, 5 + 2 * 40)])
def test_calls_of_a_batch(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partitions: int, usual: int
) -> None:
    """5, and 2 for each partition; one more for each new partition; 5 for the first of a thousand, 2 for the first."""
    calls = count_calls(monkeypatch, Leadership)
    rows = {f"day={number}": "rows" for number in range(partitions)} or "rows"
    with output(leadership, tmp_path) as made:
        spent = []
        for number in range(4):
            calls.clear()
            assert made.write(batch(rows), number)
            spent.append(len(calls))
            assert "write" not in calls, "a file costs half a second"
    assert spent == [usual + max(1, partitions) + 7, usual, usual, usual]


def test_old_records_are_forgotten_by_the_thousand(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        for thousand in range(KEPT_BUCKETS + 3):
            assert made.write(batch(DAYS), 1000 * thousand)
    done = own_folder(leadership) / "done"
    assert sorted(int(each.name) for each in done.iterdir()) == list(range(2, KEPT_BUCKETS + 3))
    with output(leadership, tmp_path) as made:
        assert not made.write(batch(OTHERS), 1000 * (KEPT_BUCKETS + 2))


def test_under_a_sidecar_it_is_counted_in_a_file(
    leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reports: OutputReports
) -> None:
    for name, value in {"HA_JOB": "orders", "HA_BELIEF": "here", "HA_QUERIES": str(tmp_path / "queries-1")}.items():
        monkeypatch.setenv(name, value)
    with output(leadership, tmp_path) as made:
        assert made.write(batch(DAYS), 0)
        (found,) = read(path_beside(tmp_path / "queries-1"))
        assert found.files["created"] == 4
        reports.counted("output", 1, 1, 0, 0)
        assert not made.write(batch(DAYS), 0)
        (found,) = read(path_beside(tmp_path / "queries-1"))
        assert found.files["created"] == 5, "it is written after each batch"


def test_a_folder_of_the_target_that_somebody_deletes_is_made_again(leadership: Leadership, tmp_path: Path) -> None:
    with output(leadership, tmp_path) as made:
        assert made.write(batch(DAYS), 0)
        shutil.rmtree(tmp_path / "out")
        assert made.write(batch(DAYS), 1)
        assert made.write(batch(DAYS), 2)
    assert sorted(found(tmp_path)) == sorted(f"{day}/batch={number}" for day in DAYS for number in (1, 2))


def test_few_folders_are_remembered(leadership: Leadership, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fenced_rename, "MOST_PARENTS", 2)
    with output(leadership, tmp_path) as made:
        for number in range(3):
            assert made.write(batch(DAYS), number)
        assert len(made._journal._renames._parents) == 2
    assert len(found(tmp_path)) == 12
