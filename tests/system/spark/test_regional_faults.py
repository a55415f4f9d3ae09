"""Regional outputs through faults at every call of a store, and the canaries that show that a fault is found."""

from typing import Any

import pytest

from ha.leadership import fenced_rename
from ha.leadership.fenced_rename import FencedRename
from ha.outputs.batch import Admission
from ha.outputs.regional import RegionalHome, RegionMarks
from ha.spark.outputs import regional_output
from leader.errors import ForeignBatch, OutputLost
from store.errors import Unknown
from tests.system.spark.faulty_store import FAULTS
from tests.system.spark.regional_reader import MOST_APART, drawn

SEEDS = 60


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    monkeypatch.setattr(fenced_rename, "PATIENCE_S", 0.2)
    monkeypatch.setattr(regional_output, "THREADS", 1)


@pytest.mark.parametrize("seeds", [SEEDS // 3, SEEDS], ids=["some", "all"])
def test_through_crashes_at_every_call_and_all_that_becomes_of_answers(seeds: int) -> None:
    met, apart, marks = set[str](), set[int](), set[int]()
    for seed in range(seeds):
        run = drawn(seed)
        assert not run.regional.wrong, (seed, run.regional.wrong[:3])
        assert len(run.regional.complete) == len(run.regions) * run.batches
        met |= set(run.store.met)
        apart.add(run.apart)
        marks.add(run.regional.mark)
    assert met == {*FAULTS, "ok"}
    assert MOST_APART <= max(apart) <= MOST_APART + 1  # one more after a restart
    assert min(marks) >= 4


def wrong(seeds: int = 300, **arguments: Any) -> bool:
    for seed in range(seeds):
        try:
            if drawn(seed, **arguments).regional.wrong:
                return True
        except (AssertionError, ForeignBatch, OutputLost):
            return True
    return False


def test_a_region_that_goes_on_below_the_mark_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = RegionMarks.begin
    monkeypatch.setattr(RegionMarks, "begin", lambda *given: begin(*given) and given[3])
    assert wrong(rate=0.0)


def test_a_mark_that_does_not_wait_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def hurry(marks: RegionMarks) -> None:
        marks.mark = marks.front

    monkeypatch.setattr(RegionMarks, "_advance", hurry)
    assert wrong(rate=0.0)


def test_a_mark_that_is_forgotten_after_a_restart_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = RegionMarks.__init__

    def forget(marks: RegionMarks, newest: dict[str, int], mark: int, most: int) -> None:
        made(marks, newest, -1 if mark >= 0 else mark, most)
        marks._floor = -1

    monkeypatch.setattr(RegionMarks, "__init__", forget)
    assert wrong()


def test_an_id_that_a_late_change_gives_to_a_decided_batch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    lift = Admission.lift

    def lift_late(admission: Admission, number: int, to: int) -> None:
        """Without a rename: somebody who was replaced makes the name when its batch has another id."""
        store: Any = admission._renames._files._pool._open_driver()
        name = admission._folder.at(admission._lines.lifting(number, to + 1))
        if store.choose.random() < 0.3 and store.alive and admission._lines.id_of(number) < to:
            store.late.append(lambda: store.tree.make_directory(name))
        lift(admission, number, to)

    monkeypatch.setattr(Admission, "lift", lift_late)
    assert wrong()


def test_a_mark_that_is_never_told_is_found(monkeypatch: pytest.MonkeyPatch) -> None:

    def tell_nothing(home: RegionalHome, mark: int) -> None:
        raise Unknown(f"{home._folder.home}: {mark}")

    monkeypatch.setattr(RegionalHome, "move", tell_nothing)
    assert wrong(3, rate=0.0)


def test_a_batch_that_is_believed_when_it_is_seen_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FencedRename, "acknowledge", lambda _: None)
    assert wrong()
