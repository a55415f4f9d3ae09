"""Cleanup: leftovers of a job that has ended for good go to the trash and back, whatever crashes on the way."""

from collections.abc import Callable
from pathlib import Path

import pytest

from leader.errors import Fenced
from leader.job.cleanup import Cleanup
from leader.job.fenced_directory import ATTEMPTS, FencedDirectory
from leader.job.results import Result, Results
from leader.job.status import JobStatus, Status
from leader.job.versioned_files import VersionedBlob, VersionedFiles, graph_of
from leader.layout.names import BLOBS
from store.bounded import BoundedFiles
from store.errors import Conflict, Invalid, NotFound, NotSent, Unknown
from store.local import LocalFiles
from tests.unit.leader.faulty import DROPPED, LATE, LOST, OK, Place, in_threads, opened
from tests.unit.leader.owned import CALL, FIRST, HOME, SECOND, Owned

FOLDERS = {"graph", "blobs", "spark"}
ENDS = [Status.FINISHED, Status.CANCELED, Status.FAILED]


def end(owned: Owned, status: Status = Status.FINISHED) -> None:
    way = {Status.CANCELED: Status.CANCELLING, Status.FAILED: Status.FAILING}.get(status)
    hand = JobStatus(owned.own)
    hand.change(Status.CREATED, Status.RUNNING)
    if way is not None:
        hand.change(Status.RUNNING, way)
    hand.change(way or Status.RUNNING, status)


def fill(owned: Owned) -> None:
    """Create everything that a job has after some work."""
    graph_of(owned.own).put(b"graph")
    VersionedFiles(owned.own, BLOBS, "a blob").put("model", b"blob")
    owned.direct.make_directory(f"{HOME}/spark/daily")
    owned.direct.write(f"{HOME}/spark/daily/metadata", b"spark")
    owned.direct.make_directory(f"{HOME}/checkpoints/daily=17")
    Results(owned.own).put("run-1", Status.FINISHED, b"17 batches")


def whole(owned: Owned, own: FencedDirectory | None = None) -> bool:
    """Whether everything that :func:`fill` created is in its place."""
    own = own or owned.own
    return (
        graph_of(own).load() == VersionedBlob(1, b"graph")
        and VersionedFiles(own, BLOBS, "a blob").load("model") == VersionedBlob(1, b"blob")
        and own.read("spark/daily/metadata") == b"spark"
    )


def cleaned(owned: Owned) -> bool:
    """Whether all of it is in the trash once, and the state is marked as cleaned."""
    (thrown,) = Cleanup(owned.own).trash()
    return (
        not FOLDERS & set(owned.names())
        and set(thrown.folders) == FOLDERS
        and Results(owned.own).dirty() == []
        and JobStatus(owned.own).entry().cleaning == "cleaned"
    )


# --- on each store


def test_leftovers_of_a_finished_job_go_to_the_trash_and_its_record_stays(owned: Owned) -> None:
    fill(owned)
    end(owned)
    name = Cleanup(owned.own).clean()
    assert cleaned(owned)
    assert owned.names(f"trash/{name}") == ["blobs", "graph", "spark"]
    assert JobStatus(owned.own).read() is Status.FINISHED
    assert Results(owned.own).load("run-1") == Result(Status.FINISHED, b"17 batches", dirty=False)
    assert owned.names("checkpoints") == ["daily=17", "next=1"], "an id is never handed out twice"
    assert graph_of(owned.own).load() is None


def test_a_second_cleanup_changes_nothing(owned: Owned) -> None:
    fill(owned)
    end(owned)
    names = {Cleanup(owned.own).clean() for _ in range(3)}
    assert len(names) == 1
    assert cleaned(owned)


def test_the_trash_is_restored_and_can_be_cleaned_again(owned: Owned) -> None:
    fill(owned)
    end(owned)
    first = Cleanup(owned.own).clean()
    assert Cleanup(owned.own).restore() == first
    assert whole(owned)
    assert Cleanup(owned.own).trash() == []
    assert Cleanup(owned.own).clean() != first
    assert cleaned(owned)


def test_the_trash_is_emptied_for_good(owned: Owned) -> None:
    fill(owned)
    end(owned)
    name = Cleanup(owned.own).clean()
    assert Cleanup(owned.own).empty() == [name]
    assert (Cleanup(owned.own).empty(), Cleanup(owned.own).trash(), owned.names("trash")) == ([], [], [])
    with pytest.raises(NotFound, match=f"does not hold {name} any more"):
        Cleanup(owned.own).restore()
    assert Cleanup(owned.own).clean() == name, "there is nothing left to do"


def test_the_next_leader_finds_the_trash_and_the_last_one_is_fenced(owned: Owned) -> None:
    fill(owned)
    end(owned)
    name = Cleanup(owned.own).clean()
    successor = owned.claim()
    with pytest.raises(Fenced):
        Cleanup(owned.own).restore()
    assert Cleanup(successor).restore() == name
    assert whole(owned, successor)


def test_a_job_that_left_nothing_is_cleaned_up_and_restored(owned: Owned) -> None:
    owned.direct.delete(f"{HOME}/spark")
    end(owned)
    name = Cleanup(owned.own).clean()
    assert Cleanup(owned.own).trash() == []
    assert Cleanup(owned.own).restore() == name
    assert JobStatus(owned.own).entry().cleaning == ""


# --- when


@pytest.mark.parametrize("status", ENDS)
def test_a_job_that_has_ended_for_good_is_cleaned_up_however_it_ended(hurt: Owned, status: Status) -> None:
    fill(hurt)
    end(hurt, status)
    Cleanup(hurt.own).clean()
    assert cleaned(hurt)


@pytest.mark.parametrize("status", [each for each in Status if each not in ENDS])
def test_a_job_that_has_not_ended_for_good_keeps_everything(hurt: Owned, status: Status) -> None:
    fill(hurt)
    hurt.direct.rename(f"{HOME}/status=CREATED", f"{HOME}/status={status.value}~2")
    with pytest.raises(Invalid, match="once it has ended for good"):
        Cleanup(hurt.own).clean()
    assert whole(hurt)
    assert Results(hurt.own).dirty() == ["run-1"]


@pytest.mark.parametrize("names", [[], ["DANCING"], ["FINISHED", "RUNNING"], ["FINISHED", "DANCING"], ["FINISHED~0"]])
def test_a_job_in_an_uncertain_state_keeps_everything(hurt: Owned, names: list[str]) -> None:
    fill(hurt)
    hurt.direct.delete(f"{HOME}/status=CREATED")
    for name in names:
        hurt.direct.make_directory(f"{HOME}/status={name}")
    with pytest.raises(Invalid, match="The state of job 'orders' is not known"):
        Cleanup(hurt.own).clean()
    assert whole(hurt)
    assert Results(hurt.own).dirty() == ["run-1"]


def test_a_job_with_an_unreadable_state_keeps_everything(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    place.faulty.unreachable = True
    with pytest.raises(Unknown):
        Cleanup(hurt.own).clean()
    place.faulty.unreachable = False
    assert whole(hurt)


def test_a_job_that_begins_again_during_the_cleanup_keeps_everything(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    other = JobStatus(FencedDirectory(BoundedFiles(lambda: LocalFiles(place.root)), "orders", FIRST, CALL))
    place.faulty.before_change = lambda: other.begin_again(Status.FINISHED)
    with pytest.raises(Conflict, match="'orders' is CREATED now"):
        Cleanup(hurt.own).clean()
    assert whole(hurt)


def test_a_job_begins_again_only_after_its_cleanup_is_complete(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    place.faulty.fates.extend([OK, *[DROPPED] * 100])
    with pytest.raises(Unknown):
        Cleanup(hurt.own).clean()
    place.faulty.fates.clear()
    with pytest.raises(Conflict, match="FINISHED and being cleaned up"):
        JobStatus(hurt.own).begin_again(Status.FINISHED)
    Cleanup(hurt.own).clean()
    JobStatus(hurt.own).begin_again(Status.FINISHED)
    assert JobStatus(hurt.own).read() is Status.CREATED


def test_a_job_that_was_run_again_is_not_restored_over_and_the_trash_can_be_emptied(hurt: Owned) -> None:
    fill(hurt)
    end(hurt)
    old = Cleanup(hurt.own).clean()
    JobStatus(hurt.own).begin_again(Status.FINISHED)
    assert [each.restorable for each in Cleanup(hurt.own).trash()] == [False]
    with pytest.raises(Invalid, match="CREATED"):
        Cleanup(hurt.own).restore()
    end(hurt)
    with pytest.raises(Invalid, match="has not been cleaned up since it ended"):
        Cleanup(hurt.own).restore()
    assert Cleanup(hurt.own).empty() == [old]


def test_other_folders_and_other_jobs_stay(hurt: Owned) -> None:
    fill(hurt)
    hurt.direct.make_directory(f"{HOME}/output")
    hurt.direct.make_directory("payments")
    end(hurt)
    Cleanup(hurt.own).clean()
    Cleanup(hurt.own).empty()
    assert {"output", "history", "record", "checkpoints", "results"} <= set(hurt.names())
    assert {each.name for each in hurt.direct.list("")} == {"orders", "payments"}


def test_a_restore_does_not_overwrite_a_new_folder(hurt: Owned) -> None:
    fill(hurt)
    end(hurt)
    Cleanup(hurt.own).clean()
    hurt.direct.make_directory(f"{HOME}/spark")
    hurt.direct.make_directory(f"{HOME}/spark/late")
    for _ in range(2):
        with pytest.raises(Conflict, match="has a new folder 'spark' by now"):
            Cleanup(hurt.own).restore()
    hurt.direct.rename(f"{HOME}/spark", f"{HOME}/mine")
    Cleanup(hurt.own).restore()
    assert whole(hurt)


# --- faults


class Mortal(LocalFiles):
    """A process that dies after a given number of changes: none of its later calls is answered."""

    def __init__(self, root: Path, changes: int) -> None:
        super().__init__(root, durable=False)
        self.left = changes

    def rename(self, source: str, destination: str) -> None:
        self._live()
        super().rename(source, destination)

    def make_directory(self, path: str) -> None:
        self._live()
        super().make_directory(path)

    def write(self, path: str, data: bytes) -> None:
        self._live()
        super().write(path, data)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        self._live()
        super().delete(path, recursive=recursive)

    def _live(self) -> None:
        if not self.left:
            raise NotSent("This process is dead.")
        self.left -= 1


def dies_in(place: Place, changes: int, work: Callable[[Cleanup], object]) -> bool:
    """Do the work in a process that dies after that many changes; return whether it died."""
    with BoundedFiles(lambda: Mortal(place.root, changes)) as files:
        try:
            work(Cleanup(FencedDirectory(files, "orders", FIRST, CALL)))
        except NotSent:
            return True
        return False


@pytest.mark.parametrize("then", ["clean", "restore"])
@pytest.mark.parametrize("first", ["clean", "restore"])
def test_a_crash_after_any_change_is_recovered_by_cleanup_or_restore(tmp_path: Path, first: str, then: str) -> None:
    crashes = 0
    while True:
        for place in opened(tmp_path / f"{crashes}"):
            owned = Owned(place.direct, place.files)
            fill(owned)
            end(owned)
            if first == "restore":
                Cleanup(owned.own).clean()
            died = dies_in(place, crashes, lambda each: getattr(each, first)())
            begun = JobStatus(owned.own).entry().cleaning != ""
            if then == "clean":
                Cleanup(owned.own).clean()
                assert cleaned(owned), crashes
            elif begun:
                Cleanup(owned.own).restore()
                assert whole(owned), crashes
                assert set(owned.names()) >= FOLDERS
            else:
                assert whole(owned), crashes
        crashes += 1
        if not died:
            break
    assert crashes > 5, "a mark, some folders, and another mark"


def test_the_next_leader_finishes_what_the_last_one_began(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    assert dies_in(place, 5, lambda each: each.clean())
    successor = hurt.claim()
    name = Cleanup(successor).clean()
    assert JobStatus(successor).entry().cleaning == "cleaned"
    assert [each.name for each in Cleanup(successor).trash()] == [name]
    assert Results(successor).dirty() == []
    assert not FOLDERS & set(hurt.names(directory=SECOND))


def test_references_are_moved_before_the_files_that_they_name(tmp_path: Path) -> None:
    gone = []
    for changes in range(10):
        for place in opened(tmp_path / f"{changes}"):
            owned = Owned(place.direct, place.files)
            fill(owned)
            end(owned)
            dies_in(place, changes, lambda each: each.clean())
            gone.append(FOLDERS - set(owned.names()))
    for earlier, later in (("graph", "blobs"), ("blobs", "spark")):
        assert all(earlier in each for each in gone if later in each)
    assert {"graph"} in gone
    assert FOLDERS in gone


def test_results_stay_dirty_until_all_is_in_the_trash(tmp_path: Path) -> None:
    seen = set()
    for changes in range(12):
        for place in opened(tmp_path / f"{changes}"):
            owned = Owned(place.direct, place.files)
            fill(owned)
            end(owned)
            dies_in(place, changes, lambda each: each.clean())
            result, left = Results(owned.own).load("run-1"), FOLDERS & set(owned.names())
            assert result is not None, "it is told, whatever becomes of the cleaning"
            assert result.dirty or not left
            seen.add((result.dirty, bool(left)))
    assert seen == {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize("fate", [LOST, DROPPED, LATE])
@pytest.mark.parametrize("change", range(8))
def test_a_lost_answer_to_any_change_is_resolved(hurt: Owned, place: Place, fate: str, change: int) -> None:
    fill(hurt)
    end(hurt)
    place.faulty.fates.extend([*[OK] * change, fate])
    for _ in range(2):  # the creation of a folder alone is not acknowledged by a rename
        try:
            Cleanup(hurt.own).clean()
        except Unknown:
            continue
        break
    place.faulty.catch_up()
    assert cleaned(hurt)
    Cleanup(hurt.own).restore()
    assert whole(hurt)


def test_an_unacknowledged_move_to_the_trash_is_repeated(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    dies_in(place, 6, lambda each: each.clean())
    name = JobStatus(hurt.own).entry().trash
    assert hurt.names(f"trash/{name}") == ["blobs", "graph", "spark"]
    Cleanup(hurt.own).clean()
    assert hurt.names(f"trash/{name}") == ["blobs~2", "graph~2", "spark~2"]


def test_a_late_move_spares_the_folder_of_the_next_run(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    place.faulty.fates.extend([OK, OK, OK, *[LATE] * ATTEMPTS])
    with pytest.raises(Unknown):
        Cleanup(hurt.own).clean()
    Cleanup(hurt.own).clean()
    JobStatus(hurt.own).begin_again(Status.FINISHED)
    graph_of(hurt.own).put(b"the next run's")
    place.faulty.catch_up()
    assert graph_of(hurt.own).load() == VersionedBlob(1, b"the next run's")


def test_concurrent_cleanups_do_no_harm(hurt: Owned) -> None:
    fill(hurt)
    end(hurt)
    in_threads(4, lambda _: Cleanup(hurt.own).clean())
    Cleanup(hurt.own).clean()
    assert cleaned(hurt)


def test_an_unfinished_cleaning_is_not_emptied(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    dies_in(place, 5, lambda each: each.clean())
    assert Cleanup(hurt.own).empty() == []
    Cleanup(hurt.own).restore()
    assert whole(hurt)


def test_a_paused_cleanup_does_not_touch_the_successor(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    place.faulty.before_change = lambda: hurt.direct.rename(HOME, f"orders/{SECOND.name}")
    with pytest.raises(Fenced):
        Cleanup(hurt.own).clean()
    assert whole(hurt, FencedDirectory(hurt.files, "orders", SECOND, CALL))
