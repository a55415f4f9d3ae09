"""A move between roots: what it takes along, how it leads, what it says, and what it refuses."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ha.groups import mover as module
from ha.groups import steps
from ha.groups.mover import ROUNDS, SMALL_S
from ha.groups.steps import look
from ha.placement.place import Pointer
from leader.errors import NoLeader
from leader.job.admin import JobAdmin
from leader.layout import tree
from leader.layout.lease import Mode
from leader.layout.names import LeaderDirectory
from store.errors import Conflict, Invalid, NotFound
from tests.unit.ha.clocks import At
from tests.unit.ha.groups.moves import FILES, JOB, Leading, Process, held, led, mover, whole
from tests.unit.ha.placement.roots import Roots


def test_a_job_moves_with_all_that_it_has(roots: Roots, source: str, target: str) -> None:
    process = Process(roots)
    _, before = held(roots.drivers[source])
    done = mover(process, roots).move(target)
    assert (done.job, done.source, done.target) == (JOB, source, target)
    assert done.rounds >= 1
    assert done.bytes == sum(map(len, FILES.values()))
    assert (done.leader, done.pause) == ("", None)  # nobody contends for it here
    whole(roots, target)
    leader, lease = held(roots.drivers[target])
    assert lease.sequence > before.sequence, "a renewal of the old lease that comes late is older"
    assert (leader.epoch, lease.mode, lease.owner) == (3, Mode.RELEASED, leader.session_id)
    (left,) = roots.drivers[source].list(JOB)
    assert Pointer.parse(left.name) == Pointer(1, target)
    assert roots.drivers[source].list(f"{JOB}/{left.name}") == []
    assert {each.name.partition("~")[0] for each in roots.drivers[target].list(JOB)} == {leader.name, "arrived"}


@pytest.mark.usefixtures("source")
def test_it_takes_the_leadership_by_an_orderly_hand_over(roots: Roots) -> None:
    asked: list[str] = []
    leading = Leading(roots)

    @contextmanager
    def lead(root: str, contender: str) -> Iterator[Any]:
        found = held(roots.drivers[root])
        asked.append(found[1].successor)
        assert found[1].successor == contender
        with leading(root, contender) as leadership:
            yield leadership

    mover(Process(roots), roots, lead).move(roots.others(JOB)[0])
    assert asked[0].startswith("move-")


@pytest.mark.usefixtures("source")
def test_all_is_loaded_before_the_leader_is_asked(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    asks = JobAdmin.ask_to_hand_over

    def ask(*arguments: Any) -> Any:
        order.append("ask")
        return asks(*arguments)

    def lead(root: str, contender: str) -> Any:
        order.append("load")
        return Leading(roots)(root, contender)

    monkeypatch.setattr(JobAdmin, "ask_to_hand_over", ask)
    mover(Process(roots), roots, lead).move(roots.others(JOB)[0])
    assert order == ["load", "ask"]
    whole(roots, roots.others(JOB)[0])


@pytest.mark.usefixtures("source")
def test_the_old_leader_is_woken(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it looks by itself, which took 12 s of a move."""
    woken = list[object]()
    monkeypatch.setattr(JobAdmin, "poke", lambda admin, job: woken.append((admin._zookeeper, job)))
    zookeeper: Any = object()
    mover(Process(roots), roots, zookeeper=zookeeper).move(roots.others(JOB)[0])
    assert woken == [(zookeeper, JOB)]


class Rounds:
    def __init__(self, clock: At, rounds: list[tuple[float, Exception | None]]) -> None:
        self.clock, self.rounds = clock, rounds

    def round(self, leader: str) -> int:
        assert LeaderDirectory.parse(leader) is not None
        seconds, error = self.rounds.pop(0)
        self.clock.at += seconds
        if error is not None:
            raise error
        return 100


SHORT, LONGER = (SMALL_S, None), (SMALL_S + 0.1, None)
CHANGED = (0.0, Conflict("a file has changed"))


@pytest.mark.parametrize(
    ("rounds", "taken"),
    [
        ([SHORT], 1), ([LONGER, LONGER, SHORT], 3), ([CHANGED, (0.0, NotFound("gone")), SHORT], 3),
        ([LONGER] * ROUNDS, ROUNDS), ([CHANGED] * ROUNDS, ROUNDS),
    ],
)  # fmt: skip
def test_rounds_go_on_until_one_is_short_and_whole(
    roots: Roots, source: str, rounds: list[tuple[float, Exception | None]], taken: int
) -> None:
    clock, said, left = At(100.0), list[str](), [*rounds, *[SHORT] * 3]
    moving = mover(Process(roots), roots, say=said.append, clock=clock)
    moving._follow(Rounds(clock, left), source)  # type: ignore[arg-type]
    assert len(said) == taken == len(rounds) + 3 - len(left)
    shown = [
        f"round {number}: {0 if each[1] else 100:,} bytes, {each[0]:.1f} s" for number, each in enumerate(rounds, 1)
    ]
    assert [each.partition(": ")[2].partition(" (")[0] for each in said] == shown


@pytest.mark.usefixtures("source")
def test_a_move_says_how_long_it_took(roots: Roots, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause begins when the old leader is asked."""
    clock = At(100.0)
    monkeypatch.setattr(JobAdmin, "handed_over", lambda *_: led(roots.drivers[roots.others(JOB)[0]]))

    def later() -> None:
        clock.at += 7.0

    done = mover(Process(roots), roots, Leading(roots, later), clock=clock).move(roots.others(JOB)[0])
    assert (done.seconds, done.pause) == (7.0, 7.0)


def test_a_bar_moves_along_and_a_late_one_is_not_lost(roots: Roots, source: str, target: str) -> None:
    leader, _ = held(roots.drivers[source])
    bar = "barred~h1~99~me~maintenance"
    roots.drivers[source].make_directory(f"{JOB}/{leader.name}/record/{bar}")
    mover(Process(roots), roots).move(target)
    leader, _ = held(roots.drivers[target])
    assert bar in {each.name for each in roots.drivers[target].list(f"{JOB}/{leader.name}/record")}


def test_a_job_stays_for_half_an_hour_by_the_clock_of_its_root(roots: Roots, source: str, target: str) -> None:
    mover(Process(roots), roots).move(target)
    with pytest.raises(Invalid, match="it has moved lately, and stays for 30 min more"):
        mover(Process(roots), roots).move(source)
    (arrived,) = [each for each in (roots.drivers[target].path / JOB).iterdir() if each.name.startswith("arrived")]
    at = arrived.stat().st_mtime
    os.utime(arrived, (at - steps.REST_S + 60, at - steps.REST_S + 60))
    with pytest.raises(Invalid, match="stays for 1 min more"):
        mover(Process(roots), roots).move(source)
    os.utime(arrived, (at - steps.REST_S - 1, at - steps.REST_S - 1))
    mover(Process(roots), roots).move(source)
    whole(roots, source)
    assert not [each for each in roots.drivers[source].list(JOB) if Pointer.parse(each.name)]


def test_its_home_learns_where_it_went(roots: Roots) -> None:
    home, (first, second) = roots.home(JOB), roots.others(JOB)
    tree.create(roots.drivers[first], JOB)
    roots.drivers[home].make_root()
    roots.drivers[home].make_directory(JOB)
    roots.drivers[home].make_directory(f"{JOB}/{Pointer(1, first).name}")
    mover(Process(roots), roots).move(second)
    assert look(Process(roots).group.roots, JOB).of(home).pointer == Pointer(3, second)
    again = mover(Process(roots), roots).move(second)
    assert (again.source, again.rounds) == ("", 0)


def test_outputs_that_are_published_by_renames_keep_a_job_on_its_file_system(roots: Roots, source: str) -> None:
    leader, _ = held(roots.drivers[source])
    (roots.drivers[source].path / JOB / leader.name / "out" / "daily").mkdir(parents=True)
    assert steps.outputs(Process(roots).group.roots[source], JOB, leader.name) == ["daily"]
    assert "'daily' is published by renames on hdfs://ns1" in steps.bound(["daily"], "hdfs://ns1/ha", "hdfs://ns2/ha")
    assert steps.bound(["daily"], "hdfs://ns1/ha", "hdfs://ns1/other") == ""
    assert steps.bound([], "hdfs://ns1/ha", "hdfs://ns2/ha") == ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "bound", lambda *_: "its output 'daily' stays")
        with pytest.raises(Invalid, match=r"cannot move from .*: its output 'daily' stays"):
            mover(Process(roots), roots).move(roots.others(JOB)[0])
    whole(roots, source)
    mover(Process(roots), roots).move(roots.others(JOB)[0])


def test_a_job_that_does_not_exist_is_not_moved(roots: Roots) -> None:
    with pytest.raises(NoLeader, match="There is no job"):
        mover(Process(roots), roots).move(roots.uris[0])
    with pytest.raises(NoLeader, match="There is no job"):
        mover(Process(roots), roots).undo()
