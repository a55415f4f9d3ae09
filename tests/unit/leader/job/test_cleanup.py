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


@pytest.fixture
def ended(hurt: Owned) -> Owned:
    """A job with everything that a job has, which has ended for good."""
    fill(hurt)
    end(hurt)
    return hurt


@pytest.fixture
def finished(owned: Owned) -> Owned:
    fill(owned)
    end(owned)
    return owned


def test_leftovers_of_a_finished_job_go_to_the_trash_and_its_record_stays(finished: Owned) -> None:
    name = Cleanup(finished.own).clean()
    assert cleaned(finished)
    assert finished.names(f"trash/{name}") == ["blobs", "graph", "spark"]
    assert JobStatus(finished.own).read() is Status.FINISHED
    assert Results(finished.own).load("run-1") == Result(Status.FINISHED, b"17 batches", dirty=False)
    assert finished.names("checkpoints") == ["daily=17", "next=1"], "an id is never handed out twice"
    assert graph_of(finished.own).load() is None


def test_a_second_cleanup_changes_nothing(finished: Owned) -> None:
    names = {Cleanup(finished.own).clean() for _ in range(3)}
    assert len(names) == 1
    assert cleaned(finished)


def test_the_trash_is_restored_and_can_be_cleaned_again(finished: Owned) -> None:
    first = Cleanup(finished.own).clean()
    assert Cleanup(finished.own).restore() == first
    assert whole(finished)
    assert Cleanup(finished.own).trash() == []
    assert Cleanup(finished.own).clean() != first
    assert cleaned(finished)


def test_the_trash_is_emptied_for_good(finished: Owned) -> None:
    name = Cleanup(finished.own).clean()
    assert Cleanup(finished.own).empty() == [name]
    assert (Cleanup(finished.own).empty(), Cleanup(finished.own).trash(), finished.names("trash")) == ([], [], [])
    with pytest.raises(NotFound, match=f"does not hold {name} any more"):
        Cleanup(finished.own).restore()
    assert Cleanup(finished.own).clean() == name, "there is nothing left to do"


def test_the_next_leader_finds_the_trash_and_the_last_one_is_fenced(finished: Owned) -> None:
    name = Cleanup(finished.own).clean()
    successor = finished.claim()
    with pytest.raises(Fenced):
        Cleanup(finished.own).restore()
    assert Cleanup(successor).restore() == name
    assert whole(finished, successor)


def test_a_job_that_left_nothing_is_cleaned_up_and_restored(owned: Owned) -> None:
    owned.direct.delete(f"{HOME}/spark")
    end(owned)
    name = Cleanup(owned.own).clean()
    assert Cleanup(owned.own).trash() == []
    assert Cleanup(owned.own).restore() == name
    assert JobStatus(owned.own).entry().cleaning == ""


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


def test_a_job_with_an_unreadable_state_keeps_everything(ended: Owned, place: Place) -> None:
    place.faulty.unreachable = True
    with pytest.raises(Unknown):
        Cleanup(ended.own).clean()
    place.faulty.unreachable = False
    assert whole(ended)


def test_a_job_that_begins_again_during_the_cleanup_keeps_everything(ended: Owned, place: Place) -> None:
    other = JobStatus(FencedDirectory(BoundedFiles(lambda: LocalFiles(place.root)), "orders", FIRST, CALL))
    place.faulty.before_change = lambda: other.begin_again(Status.FINISHED)
    with pytest.raises(Conflict, match="'orders' is CREATED now"):
        Cleanup(ended.own).clean()
    assert whole(ended)


def test_a_job_begins_again_only_after_its_cleanup_is_complete(ended: Owned, place: Place) -> None:
    place.faulty.fates.extend([OK, *[DROPPED] * 100])
    with pytest.raises(Unknown):
        Cleanup(ended.own).clean()
    place.faulty.fates.clear()
    with pytest.raises(Conflict, match="FINISHED and being cleaned up"):
        JobStatus(ended.own).begin_again(Status.FINISHED)
    Cleanup(ended.own).clean()
    JobStatus(ended.own).begin_again(Status.FINISHED)
    assert JobStatus(ended.own).read() is Status.CREATED


def test_a_job_that_was_run_again_is_not_restored_over_and_the_trash_can_be_emptied(ended: Owned) -> None:
    old = Cleanup(ended.own).clean()
    JobStatus(ended.own).begin_again(Status.FINISHED)
    assert [each.restorable for each in Cleanup(ended.own).trash()] == [False]
    with pytest.raises(Invalid, match="CREATED"):
        Cleanup(ended.own).restore()
    end(ended)
    with pytest.raises(Invalid, match="has not been cleaned up since it ended"):
        Cleanup(ended.own).restore()
    assert Cleanup(ended.own).empty() == [old]


def test_other_folders_and_other_jobs_stay(hurt: Owned) -> None:
    fill(hurt)
    hurt.direct.make_directory(f"{HOME}/output")
    hurt.direct.make_directory("payments")
    end(hurt)
    Cleanup(hurt.own).clean()
    Cleanup(hurt.own).empty()
    assert {"output", "history", "record", "checkpoints", "results"} <= set(hurt.names())
    assert {each.name for each in hurt.direct.list("")} == {"orders", "payments"}


def test_a_restore_does_not_overwrite_a_new_folder(ended: Owned) -> None:
    Cleanup(ended.own).clean()
    ended.direct.make_directory(f"{HOME}/spark")
    ended.direct.make_directory(f"{HOME}/spark/late")
    for _ in range(2):
        with pytest.raises(Conflict, match="has a new folder 'spark' by now"):
            Cleanup(ended.own).restore()
    ended.direct.rename(f"{HOME}/spark", f"{HOME}/mine")
    Cleanup(ended.own).restore()
    assert whole(ended)


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


def test_the_next_leader_finishes_what_the_last_one_began(ended: Owned, place: Place) -> None:
    assert dies_in(place, 5, lambda each: each.clean())
    successor = ended.claim()
    name = Cleanup(successor).clean()
    assert JobStatus(successor).entry().cleaning == "cleaned"
    assert [each.name for each in Cleanup(successor).trash()] == [name]
    assert Results(successor).dirty() == []
    assert not FOLDERS & set(ended.names(directory=SECOND))


def test_references_are_moved_before_what_they_name_and_results_stay_dirty_until_all_is_gone(tmp_path: Path) -> None:
    gone, seen = [], set()
    for changes in range(12):
        for place in opened(tmp_path / f"{changes}"):
            owned = Owned(place.direct, place.files)
            fill(owned)
            end(owned)
            dies_in(place, changes, lambda each: each.clean())
            result, left = Results(owned.own).load("run-1"), FOLDERS & set(owned.names())
            assert result is not None, "it is told, whatever becomes of the cleaning"
            assert result.dirty or not left
            gone.append(FOLDERS - left)
            seen.add((result.dirty, bool(left)))
    for earlier, later in (("graph", "blobs"), ("blobs", "spark")):
        assert all(earlier in each for each in gone if later in each)
    assert {"graph"} in gone
    assert seen == {(True, True), (True, False), (False, False)}


@pytest.mark.parametrize("fate", [LOST, DROPPED, LATE])
@pytest.mark.parametrize("change", range(8))
def test_a_lost_answer_to_any_change_is_resolved(ended: Owned, place: Place, fate: str, change: int) -> None:
    place.faulty.fates.extend([*[OK] * change, fate])
    for _ in range(2):  # the creation of a folder alone is not acknowledged by a rename
        try:
            Cleanup(ended.own).clean()
        except Unknown:
            continue
        break
    place.faulty.catch_up()
    assert cleaned(ended)
    Cleanup(ended.own).restore()
    assert whole(ended)


def test_an_unacknowledged_move_to_the_trash_is_repeated(ended: Owned, place: Place) -> None:
    dies_in(place, 6, lambda each: each.clean())
    name = JobStatus(ended.own).entry().trash
    assert ended.names(f"trash/{name}") == ["blobs", "graph", "spark"]
    Cleanup(ended.own).clean()
    assert ended.names(f"trash/{name}") == ["blobs~2", "graph~2", "spark~2"]


def test_a_late_move_spares_the_folder_of_the_next_run(ended: Owned, place: Place) -> None:
    place.faulty.fates.extend([OK, OK, OK, *[LATE] * ATTEMPTS])
    with pytest.raises(Unknown):
        Cleanup(ended.own).clean()
    Cleanup(ended.own).clean()
    JobStatus(ended.own).begin_again(Status.FINISHED)
    graph_of(ended.own).put(b"the next run's")
    place.faulty.catch_up()
    assert graph_of(ended.own).load() == VersionedBlob(1, b"the next run's")


def test_concurrent_cleanups_do_no_harm(ended: Owned) -> None:
    in_threads(4, lambda _: Cleanup(ended.own).clean())
    Cleanup(ended.own).clean()
    assert cleaned(ended)


def test_an_unfinished_cleaning_is_not_emptied(ended: Owned, place: Place) -> None:
    dies_in(place, 5, lambda each: each.clean())
    assert Cleanup(ended.own).empty() == []
    Cleanup(ended.own).restore()
    assert whole(ended)


def test_a_paused_cleanup_does_not_touch_the_successor(ended: Owned, place: Place) -> None:
    place.faulty.before_change = lambda: ended.direct.rename(HOME, f"orders/{SECOND.name}")
    with pytest.raises(Fenced):
        Cleanup(ended.own).clean()
    assert whole(ended, FencedDirectory(ended.files, "orders", SECOND, CALL))
