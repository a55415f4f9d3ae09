"""The mark of a regional output: no row comes below it, it never goes back, and nobody holds up the others."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ha.outputs.regional import LATE, RegionMarks, RegionRecord, RegionState
from leader.errors import RegionBehind

MOST = 5

STEPS = ("begin", "complete", "complete", "fail", "idle", "late idle", "restart")


@dataclass
class World:
    """Regions whose batches are numbered by Spark, and the journals that keep their ids."""

    count: int
    ids: dict[str, dict[int, int]] = field(default_factory=dict)
    """Of each region the decided batches: id by Spark's number."""
    shifts: dict[str, int] = field(default_factory=dict)
    runs: dict[str, int | None] = field(default_factory=dict)
    """Of each region the lowest id of the batch that is under way."""
    failed: dict[str, int] = field(default_factory=dict)
    """Of each region the id of the batch that has failed."""
    asked: tuple[dict[str, int], int] = field(default_factory=lambda: ({}, -1))
    shown: int = -1
    restarts: int = 0
    """After each of them those that hold the mark begin above all others, and so perhaps one further."""

    def __post_init__(self) -> None:
        for name in self.names:
            self.ids[name], self.shifts[name], self.runs[name] = {}, 0, None
        self.marks = RegionMarks(dict.fromkeys(self.names, -1), -1, MOST)

    @property
    def names(self) -> list[str]:
        return [f"r{number}" for number in range(self.count)]

    def newest(self, name: str) -> int:
        return max(self.ids[name].values(), default=-1)

    def least(self, name: str) -> int:
        """The lowest id of the batch that is under way; without one, above all."""
        found = self.runs[name]
        return self.marks.front + 1 if found is None else found

    def step(self, what: str, name: str) -> None:
        getattr(self, f"do_{what.replace(' ', '_')}")(name)
        assert self.marks.mark >= self.shown, "it never goes back"
        assert self.marks.mark <= self.marks.front
        assert self.marks.apart <= MOST + self.restarts, "no region comes further than that"
        for each in self.names:
            assert self.least(each) > self.marks.mark, "no row comes below the mark"
            assert each not in self.failed or self.failed[each] > self.marks.mark, "what has failed is not complete"
        self.shown = self.marks.mark

    def do_begin(self, name: str) -> None:
        if self.runs[name] is not None:
            return
        number = len(self.ids[name])
        known = number + self.shifts[name]
        try:
            least = self.marks.begin(name, number, known)
        except RegionBehind:
            assert self.marks.apart >= MOST
            assert self.marks.lag(name) < self.marks.apart, "who holds the mark may always go on"
            return
        assert least >= known
        assert least > self.newest(name)
        if name in self.failed:
            assert least == self.failed[name], "a try that follows has the same id"
        self.runs[name] = least

    def do_complete(self, name: str) -> None:
        if (least := self.runs[name]) is None:
            return
        number = len(self.ids[name])
        self.ids[name][number], self.shifts[name] = least, least - number
        self.runs[name] = None
        self.failed.pop(name, None)
        self.marks.complete(name, least)

    def do_fail(self, name: str) -> None:
        if (least := self.runs[name]) is not None:
            self.failed[name], self.runs[name] = least, None
            self.marks.fail(name, "oh")

    def do_idle(self, _: str) -> None:
        asked, front = self.marks.unknown(), self.marks.front
        assert not {name for name in asked if self.runs[name] is not None or name in self.failed}
        for name, tries in asked.items():
            self.marks.idle(name, tries, front)
        level = [name for name in self.names if self.runs[name] is None and name not in self.failed]
        assert all(self.marks.lag(name) == 0 for name in level)

    def do_late_idle(self, name: str) -> None:
        """An answer to what was asked before other steps."""
        before = self.marks.mark
        asked, front = self.asked
        if name in asked:
            self.marks.idle(name, asked[name], front)
            if self.runs[name] is not None:
                assert self.marks.mark == before
        self.asked = self.marks.unknown(), self.marks.front

    def do_restart(self, _: str) -> None:
        """Another driver knows the journals, and a mark that was told at some time."""
        self.restarts += 1
        self.runs, self.failed, self.asked = dict.fromkeys(self.names), {}, ({}, -1)
        self.marks = RegionMarks({name: self.newest(name) for name in self.names}, self.told(), MOST)

    def told(self) -> int:
        return self.shown


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=60))
@settings(deadline=None)
def test_whatever_happens(count: int, steps: list[tuple[str, int]]) -> None:
    world = World(count)
    for what, region in steps:
        world.step(what, f"r{region % count}")


class Forgetful(World):
    """A store that shows a mark and forgets it: a restart knows the one before, and readers have seen the newer one."""

    def told(self) -> int:
        return -1

    def do_restart(self, name: str) -> None:
        seen = self.shown
        super().do_restart(name)
        self.shown = self.marks.mark
        for each in self.names:  # whatever was seen before holds
            number = len(self.ids[each])
            try:
                assert self.marks.begin(each, number, number + self.shifts[each]) > seen
            except RegionBehind:
                continue
            self.runs[each] = self.marks.front + 1 if self.marks.front >= 0 else 0


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=60))
@settings(deadline=None)
def test_a_mark_that_was_forgotten_is_kept_all_the_same(count: int, steps: list[tuple[str, int]]) -> None:
    world = Forgetful(count)
    for what, region in steps:
        if what == "restart":
            world.do_restart("")
            return
        world.step(what, f"r{region % count}")


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 3)), max_size=40))
@settings(deadline=None)
def test_it_comes_to_the_front_once_nobody_is_behind(count: int, steps: list[tuple[str, int]]) -> None:
    world = World(count)
    for what, region in steps:
        world.step(what, f"r{region % count}")
    for _ in range(2):
        for name in sorted(world.names, key=lambda each: -world.marks.lag(each)):
            world.step("begin", name)
            world.step("complete", name)
    world.step("idle", "r0")
    assert world.marks.mark == world.marks.front
    assert world.marks.behind() == []


def marks(most: int = MOST, mark: int = -1, **newest: int) -> RegionMarks:
    return RegionMarks(newest, mark, most)


def do(made: RegionMarks, region: str, number: int, known: int | None = None) -> int:
    least = made.begin(region, number, number if known is None else known)
    made.complete(region, least)
    return least


def test_regions_at_one_pace_keep_sparks_numbers() -> None:
    made = marks(a=-1, b=-1)
    for number in range(20):
        assert made.begin("a", number, number) == number
        assert made.begin("b", number, number) == number
        made.complete("b", number)
        assert made.mark == number - 1
        made.complete("a", number)
        assert made.mark == number


def test_a_region_that_was_away_goes_on_where_the_others_are() -> None:
    made = marks(a=-1, b=-1)
    do(made, "a", 0)
    do(made, "b", 0)
    assert made.begin("b", 1, 1) == 1
    made.fail("b", "poison")
    for number in range(1, 5):
        do(made, "a", number)
    assert (made.mark, made.front, made.lag("b"), made.lag("a")) == (0, 4, 4, 0)
    assert made.begin("b", 1, 1) == 1, "it fails again: nobody takes it for complete meanwhile"
    made.complete("b", 1)
    assert made.mark == 1
    assert do(made, "b", 2) == 4, "one batch takes all that has come meanwhile"
    assert made.mark == 4


def test_a_batch_after_idleness_is_not_taken_for_complete() -> None:
    """Found by the simulation: it got the id up to which its region had just been said to be complete."""
    made = marks(a=-1, b=-1, c=-1)
    do(made, "a", 0)
    made.idle("b", 0, 0)
    assert made.begin("b", 0, 0) == 1
    do(made, "c", 0)
    assert made.mark == 0


def test_only_so_many_batches_apart() -> None:
    made = marks(most=2, a=-1, b=-1, c=-1)
    made.begin("b", 0, 0)
    made.fail("b", "poison", ("3.0/1",))
    for number in range(2):
        do(made, "a", number)
    with pytest.raises(RegionBehind, match=r"Region 'a' does not begin batch 2: region 'b' and 1 more .* -1 .* poison"):
        made.begin("a", 2, 2)
    assert do(made, "c", 0) == 1, "one that holds the mark may go on"
    assert do(made, "b", 0) == 0
    assert made.mark == 0
    assert made.begin("a", 2, 2) == 2


def test_who_is_behind_is_told() -> None:
    made = marks(a=0, b=0, c=0)
    made.begin("b", 1, 1)
    do(made, "a", 1)
    assert made.behind() == [], "regions do not end at the same moment"
    made.begin("c", 1, 1)
    made.fail("c", "poison", ("3.0/1",))
    do(made, "a", 2)
    assert LATE == 2
    assert made.behind() == [
        RegionRecord(1, "b", RegionState.EXPIRED, [], "Its batch 1 is not complete."),
        RegionRecord(1, "c", RegionState.ERROR, ["3.0/1"], "poison"),
    ]
    made.complete("b", 1)
    do(made, "c", 1)
    assert made.behind() == []


def test_the_newest_batch_that_is_done_again_is_not_under_way() -> None:
    made = marks(a=7, b=3, mark=3)
    assert made.begin("a", 7, 7) == 7
    assert made.unknown() == {"b": 0}


def test_after_a_restart_who_holds_the_mark_may_go_on_beyond_the_limit() -> None:
    made = marks(most=4, a=3, b=-1, c=-1)
    assert made.begin("b", 0, 0) == 4
    with pytest.raises(RegionBehind):
        made.begin("a", 4, 4)


def test_another_batch_than_the_one_that_has_failed_goes_on_where_the_others_are() -> None:
    made = marks(a=0, b=0)
    made.begin("b", 1, 1)
    made.fail("b", "poison")
    for number in range(1, 5):
        do(made, "a", number)
    assert made.begin("b", 2, 2) == 4


def test_a_region_that_was_idle_before_a_restart_is_not_behind_the_mark() -> None:
    made = marks(a=7, b=3, mark=7)
    assert made.lag("b") == 0
    assert made.behind() == []
