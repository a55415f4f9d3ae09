"""What a job leaves: into the trash when it has ended for good, whatever crashes on the way, and out of it again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from leader.cleanup import Cleanup
from leader.errors import Fenced
from leader.graph import Graph
from leader.names import BLOBS
from leader.own import ATTEMPTS, OwnDirectory
from leader.results import Result, Results
from leader.shelf import Kept, Shelf
from leader.status import JobStatus, Status
from store.bounded import BoundedFiles
from store.errors import Conflict, Invalid, NotFound, NotSent, Unknown
from store.local import LocalFiles
from tests.leader.faulty import DROPPED, LATE, LOST, OK, Place, in_threads, opened
from tests.leader.owned import CALL, FIRST, HOME, SECOND, Owned

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
    """What a job has after some work."""
    Graph(owned.own).put(b"graph")
    Shelf(owned.own, BLOBS, "a blob").put("model", b"blob")
    owned.direct.make_directory(f"{HOME}/spark/daily")
    owned.direct.write(f"{HOME}/spark/daily/metadata", b"spark")
    owned.direct.make_directory(f"{HOME}/checkpoints/daily=17")
    Results(owned.own).put("run-1", Status.FINISHED, b"17 batches")


def whole(owned: Owned, own: OwnDirectory | None = None) -> bool:
    """Whether all that was filled in is in its place."""
    own = own or owned.own
    return (
        Graph(own).load() == Kept(1, b"graph")
        and Shelf(own, BLOBS, "a blob").load("model") == Kept(1, b"blob")
        and own.read("spark/daily/metadata") == b"spark"
    )


def cleaned(owned: Owned) -> bool:
    """Whether all of it is in the trash, once, and is marked as that."""
    (thrown,) = Cleanup(owned.own).trash()
    return (
        not FOLDERS & set(owned.names())
        and set(thrown.folders) == FOLDERS
        and Results(owned.own).dirty() == []
        and JobStatus(owned.own).entry().cleaning == "cleaned"
    )


# --- on each store


def test_what_a_finished_job_leaves_goes_into_the_trash_and_its_record_stays(owned: Owned) -> None:
    fill(owned)
    end(owned)
    name = Cleanup(owned.own).clean()
    assert cleaned(owned)
    assert owned.names(f"trash/{name}") == ["blobs", "graph", "spark"]
    assert JobStatus(owned.own).read() is Status.FINISHED
    assert Results(owned.own).load("run-1") == Result(Status.FINISHED, b"17 batches", dirty=False)
    assert owned.names("checkpoints") == ["daily=17", "next=1"], "an id is never handed out twice"
    assert Graph(owned.own).load() is None


def test_cleaning_twice_is_cleaning_once(owned: Owned) -> None:
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
def test_one_that_has_not_ended_for_good_keeps_everything(hurt: Owned, status: Status) -> None:
    fill(hurt)
    hurt.direct.rename(f"{HOME}/status=CREATED", f"{HOME}/status={status.value}~2")
    with pytest.raises(Invalid, match="only what has ended for good is cleaned up"):
        Cleanup(hurt.own).clean()
    assert whole(hurt)
    assert Results(hurt.own).dirty() == ["run-1"]


@pytest.mark.parametrize("names", [[], ["DANCING"], ["FINISHED", "RUNNING"], ["FINISHED", "DANCING"], ["FINISHED~0"]])
def test_one_whose_state_nobody_can_tell_keeps_everything(hurt: Owned, names: list[str]) -> None:
    fill(hurt)
    hurt.direct.delete(f"{HOME}/status=CREATED")
    for name in names:
        hurt.direct.make_directory(f"{HOME}/status={name}")
    with pytest.raises(Invalid, match="The state of job 'orders' is not known"):
        Cleanup(hurt.own).clean()
    assert whole(hurt)
    assert Results(hurt.own).dirty() == ["run-1"]


def test_one_whose_state_cannot_be_read_keeps_everything(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    place.faulty.unreachable = True
    with pytest.raises(Unknown):
        Cleanup(hurt.own).clean()
    place.faulty.unreachable = False
    assert whole(hurt)


def test_a_job_that_begins_again_at_that_moment_keeps_everything(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    other = JobStatus(OwnDirectory(BoundedFiles(lambda: LocalFiles(place.root)), "orders", FIRST, CALL))
    place.faulty.before_change = lambda: other.begin_again(Status.FINISHED)
    with pytest.raises(Conflict, match="'orders' is CREATED now"):
        Cleanup(hurt.own).clean()
    assert whole(hurt)


def test_a_job_that_is_being_cleaned_up_does_not_begin_again_before_that_is_done(hurt: Owned, place: Place) -> None:
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


def test_what_others_have_there_stays(hurt: Owned) -> None:
    fill(hurt)
    hurt.direct.make_directory(f"{HOME}/output")
    hurt.direct.make_directory("payments")
    end(hurt)
    Cleanup(hurt.own).clean()
    Cleanup(hurt.own).empty()
    assert {"output", "history", "record", "checkpoints", "results"} <= set(hurt.names())
    assert {each.name for each in hurt.direct.list("")} == {"orders", "payments"}


def test_what_is_in_the_place_of_a_folder_is_not_written_over(hurt: Owned) -> None:
    fill(hurt)
    end(hurt)
    Cleanup(hurt.own).clean()
    hurt.direct.make_directory(f"{HOME}/spark")
    hurt.direct.make_directory(f"{HOME}/spark/late")
    for _ in range(2):
        with pytest.raises(Conflict, match="has another 'spark' by now"):
            Cleanup(hurt.own).restore()
    hurt.direct.rename(f"{HOME}/spark", f"{HOME}/mine")
    Cleanup(hurt.own).restore()
    assert whole(hurt)


# --- faults


class Mortal(LocalFiles):
    """A process that makes so many changes, and then dies: nothing it asks for is answered any more."""

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
    """Do the work in a process that dies after so many changes; whether it has."""
    with BoundedFiles(lambda: Mortal(place.root, changes)) as files:
        try:
            work(Cleanup(OwnDirectory(files, "orders", FIRST, CALL)))
        except NotSent:
            return True
        return False


@pytest.mark.parametrize("then", ["clean", "restore"])
@pytest.mark.parametrize("first", ["clean", "restore"])
def test_a_crash_after_any_change_is_made_good_whichever_way_one_goes_on(tmp_path: Path, first: str, then: str) -> None:
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


def test_whatever_points_to_something_goes_before_it(tmp_path: Path) -> None:
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
def test_an_answer_that_is_lost_at_any_change_is_settled(hurt: Owned, place: Place, fate: str, change: int) -> None:
    fill(hurt)
    end(hurt)
    place.faulty.fates.extend([*[OK] * change, fate])
    for _ in range(2):  # a folder that is made is not made sure by itself
        try:
            Cleanup(hurt.own).clean()
        except Unknown:
            continue
        break
    place.faulty.catch_up()
    assert cleaned(hurt)
    Cleanup(hurt.own).restore()
    assert whole(hurt)


def test_a_folder_that_is_only_seen_in_the_trash_is_made_sure(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    dies_in(place, 6, lambda each: each.clean())
    name = JobStatus(hurt.own).entry().trash
    assert hurt.names(f"trash/{name}") == ["blobs", "graph", "spark"]
    Cleanup(hurt.own).clean()
    assert hurt.names(f"trash/{name}") == ["blobs~2", "graph~2", "spark~2"]


def test_a_folder_that_is_moved_late_spares_the_next_runs(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    place.faulty.fates.extend([OK, OK, OK, *[LATE] * ATTEMPTS])
    with pytest.raises(Unknown):
        Cleanup(hurt.own).clean()
    Cleanup(hurt.own).clean()
    JobStatus(hurt.own).begin_again(Status.FINISHED)
    Graph(hurt.own).put(b"the next run's")
    place.faulty.catch_up()
    assert Graph(hurt.own).load() == Kept(1, b"the next run's")


def test_of_several_who_clean_up_at_once_nobody_does_harm(hurt: Owned) -> None:
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


def test_a_successor_is_not_touched_by_a_cleaner_that_was_asleep(hurt: Owned, place: Place) -> None:
    fill(hurt)
    end(hurt)
    place.faulty.before_change = lambda: hurt.direct.rename(HOME, f"orders/{SECOND.name}")
    with pytest.raises(Fenced):
        Cleanup(hurt.own).clean()
    assert whole(hurt, OwnDirectory(hurt.files, "orders", SECOND, CALL))
