"""A move that is interrupted: whatever dies, one root at most has the job, and it can be completed or undone."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ha.groups import mover as module
from ha.groups.marks import CopyMark, copies_in
from ha.groups.steps import Handover, look
from ha.placement.place import Pointer
from leader.errors import LeaderError
from leader.layout import tree
from leader.layout.names import LeaderDirectory
from store.errors import Conflict, NotFound, StoreError, Unknown
from tests.unit.ha.groups.moves import JOB, OLD, Leading, Process, claim, held, leads, mover, whole
from tests.unit.ha.placement.roots import Roots


def changes_of_a_move(path: Path) -> list[str]:
    made = Roots(path)
    driver = made.drivers[made.home(JOB)]
    tree.create(driver, JOB)
    claim(driver, "h1")
    process = Process(made)
    mover(process, made).move(made.others(JOB)[0])
    made.close()
    process.close()
    return process.changes


@contextmanager
def steps(changed: type[Handover]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "Handover", changed)
        yield


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rounds before the last one: they change nothing that a reader sees."""
    monkeypatch.setattr(module, "ROUNDS", 0)


POINTS = 13
"""More changes than a move has, so that the last ones interrupt nothing."""


def test_there_are_no_more_changes_than_are_interrupted(tmp_path: Path) -> None:
    assert 6 <= len(changes_of_a_move(tmp_path)) <= POINTS


@pytest.mark.usefixtures("source", "at_once")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("point", range(POINTS))
def test_killed_anywhere_it_goes_on(roots: Roots, point: int, after: bool, target: str) -> None:
    process = Process(roots, point, after=after)
    interrupted = False
    try:
        mover(process, roots).move(target)
    except StoreError:
        interrupted = True
    assert interrupted == process.dead
    mover(Process(roots), roots).move(target)
    whole(roots, target)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("point", range(POINTS))
def test_killed_anywhere_it_can_be_undone_until_decided(
    roots: Roots, source: str, point: int, after: bool, target: str
) -> None:
    process = Process(roots, point, after=after)
    try:
        mover(process, roots).move(target)
    except StoreError:
        assert process.dead
    decided = leads(roots) == [target]
    assert mover(Process(roots), roots).undo() == (target if decided else source)
    whole(roots, target if decided else source)
    if not decided:
        mover(Process(roots), roots).move(target)
        whole(roots, target)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("point", range(6))
@pytest.mark.parametrize("after", [False, True])
def test_an_undo_that_is_killed_is_called_again(
    roots: Roots, source: str, point: int, after: bool, target: str
) -> None:
    fenced(roots, target)
    with suppress(StoreError):
        mover(Process(roots, point, after=after), roots).undo()
    assert mover(Process(roots), roots).undo() == source
    whole(roots, source)


def fenced(roots: Roots, target: str) -> None:
    """A mover dies when it has fenced the source and has not decided."""

    class Dead(Handover):
        def decide(self, copy: CopyMark) -> None:
            raise Unknown(f"It died before {copy.name}.")

    with steps(Dead), pytest.raises(Unknown):
        mover(Process(roots), roots).move(target)
    assert leads(roots) == []


def test_a_mover_that_wakes_up_after_an_undo_decides_nothing(roots: Roots, source: str, target: str) -> None:
    class Paused(Handover):
        def decide(self, copy: CopyMark) -> None:
            assert mover(Process(roots), roots).undo() == source
            assert leads(roots) == [source]
            super().decide(copy)

    with steps(Paused), pytest.raises((StoreError, LeaderError)):
        mover(Process(roots), roots).move(target)
    assert len(leads(roots)) == 1


def test_an_undo_before_the_fence_keeps_a_mover_that_wakes_up_from_deciding(
    roots: Roots, source: str, target: str
) -> None:
    class Paused(Handover):
        def fence(self, sequence: int, old: LeaderDirectory) -> Pointer:
            mover(Process(roots), roots).undo()
            return super().fence(sequence, old)

    with steps(Paused), pytest.raises(Conflict, match="Another process has undone this move"):
        mover(Process(roots), roots).move(target)
    whole(roots, source)


def test_an_undo_that_looks_while_a_mover_seals_and_fences_revokes_that_copy_too(
    roots: Roots, source: str, target: str
) -> None:
    """It lists the target before the copy is there, and the source after the fence: the copy must not be missed."""
    process = Process(roots)
    late = mover(process, roots)
    before = look(process.group.roots, JOB)
    fenced(roots, target)
    after = look(process.group.roots, JOB)
    torn = type(after)([before.of(each.root) if each.root == target else each for each in after.places])
    (sealed,) = after.of(target).copies
    with pytest.MonkeyPatch.context() as patch:
        looks = iter([torn])
        patch.setattr(module, "look", lambda roots, job: next(looks, None) or look(roots, job))
        assert late.undo() == source
    with pytest.raises(NotFound):
        Handover(process.group.roots, JOB, source, target).decide(sealed)
    whole(roots, source)


def test_of_two_copies_with_one_number_none_is_missed_by_an_undo(roots: Roots, source: str, target: str) -> None:
    fenced(roots, target)
    (sealed,) = look(Process(roots).group.roots, JOB).of(target).copies
    other = CopyMark(sealed.sequence, True, LeaderDirectory(sealed.leader.epoch, OLD))
    roots.drivers[target].make_directory(f"{JOB}/{other.name}")
    assert mover(Process(roots), roots).undo() == source
    with pytest.raises(NotFound):
        Handover(Process(roots).group.roots, JOB, source, target).decide(sealed)
    whole(roots, source)


def test_a_leader_that_takes_over_meanwhile_keeps_the_job(roots: Roots, source: str, target: str) -> None:
    class Late(Handover):
        def fence(self, sequence: int, old: LeaderDirectory) -> Pointer:
            claim(roots.drivers[source], "h2")
            with pytest.raises(NotFound):
                super().fence(sequence, old)
            raise Conflict("refused")

    with steps(Late), pytest.raises(Conflict, match="refused"):
        mover(Process(roots), roots).move(target)
    whole(roots, source)


def test_a_mover_that_lost_its_leadership_seals_nothing(roots: Roots, source: str) -> None:
    leading = Leading(roots)
    leading.believes = False
    with pytest.raises(LeaderError, match="taken over"):
        mover(Process(roots), roots, leading).move(roots.others(JOB)[0])
    whole(roots, source)


def test_what_is_written_after_the_copy_puts_the_job_back(roots: Roots, source: str, target: str) -> None:
    class Written(Handover):
        def fence(self, sequence: int, old: LeaderDirectory) -> Pointer:
            (roots.drivers[source].path / JOB / old.name / "requests").mkdir()
            return super().fence(sequence, old)

    with steps(Written), pytest.raises(Conflict, match="requests was changed while it was copied"):
        mover(Process(roots), roots).move(target)
    whole(roots, source)
    (copy,) = copies_in(each.name for each in roots.drivers[target].list(JOB))
    assert (copy.undone, copy.sequence) == (True, 2), "it is a later decision than the move's, whose number was 1"
    mover(Process(roots), roots).move(target)
    whole(roots, target)


def test_a_line_of_history_that_comes_late_puts_nothing_back(roots: Roots, source: str, target: str) -> None:
    class Written(Handover):
        def fence(self, sequence: int, old: LeaderDirectory) -> Pointer:
            line = f"history/{old.name}~end.moved~move-1"
            (roots.drivers[source].path / JOB / old.name / line).mkdir(parents=True)
            return super().fence(sequence, old)

    with steps(Written):
        mover(Process(roots), roots).move(target)
    whole(roots, target)


def test_of_what_has_moved_away_the_record_goes_first(roots: Roots, source: str) -> None:
    """An old leader directory without its record says that the move was decided, whatever a NameNode forgets."""
    process = Process(roots)
    mover(process, roots).move(roots.others(JOB)[0])
    (left,) = roots.drivers[source].list(JOB)
    deleted = [each.partition(f"{left.name}/")[2] for each in process.changes if f"{left.name}/" in each]
    assert deleted[0] == "record"
    assert len(deleted) > 1


def test_a_directory_that_an_old_driver_makes_anew_is_not_taken_for_the_job(
    roots: Roots, source: str, target: str
) -> None:
    leader, _ = held(roots.drivers[source])
    mover(Process(roots), roots).move(target)
    (roots.drivers[source].path / JOB / leader.name / "spark/q/state").mkdir(parents=True)
    whole(roots, target)


def test_a_decision_that_a_namenode_forgets_is_made_again_and_not_undone(
    roots: Roots, source: str, target: str
) -> None:
    fenced(roots, target)
    seen = look(Process(roots).group.roots, JOB)
    pointer = seen.of(source).pointer
    assert pointer is not None
    Handover(Process(roots).group.roots, JOB, source, target).empty(pointer)
    with pytest.raises(Conflict, match="was decided"):
        mover(Process(roots), roots).undo()
    mover(Process(roots), roots).move(target)
    whole(roots, target)


@pytest.mark.usefixtures("source")
def test_on_its_way_to_one_root_it_does_not_go_to_another(roots: Roots) -> None:
    first, second = roots.others(JOB)
    fenced(roots, first)
    with pytest.raises(Conflict, match="is on its way to"):
        mover(Process(roots), roots).move(second)
    mover(Process(roots), roots).move(first)
    whole(roots, first)


def test_a_root_that_does_not_answer_stops_a_move(roots: Roots, source: str) -> None:
    roots.drivers[roots.others(JOB)[1]].down = True
    with pytest.raises(StoreError):
        mover(Process(roots), roots).move(roots.others(JOB)[0])
    roots.drivers[roots.others(JOB)[1]].down = False
    whole(roots, source)
