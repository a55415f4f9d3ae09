"""Each rule of the checker: a history that breaks it, and one that nearly does."""

import pytest

from ha.history.checker import beliefs, check
from ha.history.events import (
    Believed,
    CheckpointsRead,
    Completed,
    Counted,
    Event,
    LookedUp,
    Published,
    Revoked,
    Stored,
    Suspected,
)
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from tests.unit.ha.history.test_checker import (
    FIRST,
    JOB,
    LED,
    SECOND,
    adopted,
    belief,
    broken,
    claim,
    granted,
    made,
    published,
    told,
)
from tests.unit.leader.samples import A, B

SAME_EPOCH = LeaderDirectory(1, B)
BOTH = [*LED, claim(5, FIRST, SECOND), granted(5, "b", SECOND), *published(6, SECOND, "b:1")]


def said(at: float, who: str, directory: LeaderDirectory, address: str) -> Published:
    return Published(at, JOB, who, directory.epoch, directory.session_id, {"rest": address})


def heard(at: float, ended: float, directory: LeaderDirectory, address: str) -> LookedUp:
    return LookedUp(at, JOB, ended, 2.0, "r", "leader", directory.epoch, directory.session_id, {"rest": address})


def read(at: float, next_id: int = 1, **queries: int) -> CheckpointsRead:
    return CheckpointsRead(at, JOB, at + 1, "r", 1, next_id, queries)


def deleted(at: float, path: str) -> Stored:
    return Stored(at, JOB, "delete", f"{FIRST.name}/{path}")


TWO_GRANTS = [granted(1, "a", FIRST), granted(1, "b", SAME_EPOCH)]
TWO_SESSIONS = [*TWO_GRANTS, said(1, "a", FIRST, "a:1"), said(1, "b", SAME_EPOCH, "b:1")]


@pytest.mark.parametrize(
    ("breaks", "events"),
    [
        ("S3 R1", [*TWO_SESSIONS, told(2, FIRST), told(3, SAME_EPOCH, "b:1")]),
        ("S3", [*TWO_SESSIONS, told(2, FIRST), told(3, SAME_EPOCH, "b:1", reader="another")]),
        ("R1", [*BOTH, heard(7, 8, SECOND, "b:1"), heard(8, 9, FIRST, "a:1")]),
        ("R1", [*BOTH, heard(7, 8, SECOND, "b:1"), heard(7.5, 9, SECOND, "b:1"), heard(8, 10, FIRST, "a:1")]),
        ("", [*BOTH, heard(7, 8, SECOND, "b:1"), heard(7.5, 9, FIRST, "a:1")]),
        ("R2", [claim(1, LeaderDirectory(0, B), FIRST), *published(2, FIRST, "a:1"), told(3, FIRST)]),
        ("", [*LED, heard(1.5, 2, FIRST, "a:1")]),
    ],
)
def test_what_readers_hear(breaks: str, events: list[Event]) -> None:
    assert broken(*events) == set(breaks.split())


ONE, OTHER = (made(at, FIRST, "checkpoints/next=1") for at in (3, 4))
NEXT_2 = Stored(4, JOB, "rename", ONE.path, f"{FIRST.name}/checkpoints/next=2")


@pytest.mark.parametrize(
    ("breaks", "events"),
    [
        ("S5", [*LED, granted(3, "b", SECOND)]),
        ("S5", [*LED, said(2, "a", FIRST, "a:2")]),
        ("S5", [*LED, said(1.5, "a", FIRST, "a:1")]),
        ("", [*LED, said(2, "a", FIRST, "a:1")]),
        ("S5", [*LED, ONE, Counted(3, JOB, 5, "a", 1, 1)]),
        ("S5", [*LED, ONE, NEXT_2, Counted(3, JOB, 3.9, "a", 1, 1)]),
        ("", [*LED, ONE, NEXT_2, Counted(3, JOB, 4, "a", 1, 1)]),
        ("S5", [made(2, FIRST, "checkpoints/q=0"), Completed(0, JOB, 1, "a", 1, "q", 0)]),
        ("", [made(1, FIRST, "checkpoints/q=0"), Completed(0, JOB, 1, "a", 1, "q", 0)]),
    ],
)
def test_what_was_acknowledged_is_stored(breaks: str, events: list[Event]) -> None:
    assert broken(*events) == {breaks} - {""}


def test_times_agree_exactly_unless_it_is_said() -> None:
    late: list[Event] = [Completed(1, JOB, 2, "a", 1, "q", 0), made(2.5, FIRST, "checkpoints/q=0")]
    assert [each.guarantee for each in check(late)] == ["S5"]


Q3, Q4, P3 = (made(3, FIRST, f"checkpoints/{entry}") for entry in ("q=3", "q=4", "p=3"))


@pytest.mark.parametrize(
    ("breaks", "events"),
    [
        ("S4", [Counted(1, JOB, 2, "a", 1, 7), Counted(2, JOB, 3, "a", 1, 6)]),
        ("", [Counted(1, JOB, 2, "a", 1, 7), Counted(1.9, JOB, 3, "a", 1, 6)]),
        ("S4", [Counted(1, JOB, 2, "a", 1, 4), Counted(9, JOB, 12, "b", 2, 21), Counted(11, JOB, 13, "a", 1, 2)]),
        ("S4", [*LED, Q3, Q4, deleted(4, "checkpoints/q=4")]),
        ("", [*LED, Q3, Q4, deleted(4, "checkpoints/q=3")]),
        ("", [*LED, *(made(3, FIRST, f"checkpoints/q={batch}") for batch in range(12))]),
        ("", [*LED, P3, Q3, claim(4, FIRST, SECOND), made(5, SECOND, "checkpoints/q=4")]),
        ("", [*LED, claim(4, FIRST, SECOND), made(5, SECOND, "checkpoints/q=4"), made(6, FIRST, "checkpoints/p=1")]),
        ("", [*LED, made(3, FIRST, "checkpoints/sub/p=9"), deleted(4, "checkpoints/sub/p=9")]),
        ("", [Stored(0, JOB, "make", "."), *LED, Q3]),
        ("S4", [read(1, 5), read(2, 4)]),
        ("S4", [read(1, q=3), read(2)]),
        ("", [read(1, 5, q=3), read(1.9, 4, q=2)]),
        ("S4", [read(1, 5, q=3), read(2.5, 6, q=3), read(3, 4, q=3)]),  # the second one goes on meanwhile
        ("S4", [read(1, 5, q=3), read(2.5, 5, q=4), read(3, 5, q=2)]),
        ("S4", [read(1, q=3), read(2.5, r=3), read(3, r=3)]),
        ("", [read(1, 5, q=3), read(2, 5, q=3)]),
    ],
)
def test_what_goes_back(breaks: str, events: list[Event]) -> None:
    assert broken(*events) == {breaks} - {""}


def seizure(mode: Mode, by: str = "") -> Stored:
    before, after = Lease(5, Mode.HDFS, 6000, A, "", "a"), Lease(6, mode, 6000, B, "", "b")
    home = f"{FIRST.name}/record"
    return Stored(3, JOB, "rename", f"{home}/{before.name}", f"{home}/{after.name}", by)


@pytest.mark.parametrize(
    ("breaks", "events"),
    [
        ("S3", [seizure(Mode.RELEASED)]),
        ("", [seizure(Mode.HDFS)]),
        ("", [seizure(Mode.HDFS, "b")]),
        ("", [seizure(Mode.HDFS, "operator")]),
        ("S2", [seizure(Mode.HDFS, "a")]),
        ("S3", [claim(1, FIRST, LeaderDirectory(3, B))]),
        ("", [claim(1, FIRST, SECOND)]),
        ("", [*LED, made(3, FIRST, "spark/1", "operator")]),
        ("S2", [*LED, made(3, SECOND, "spark/1", "a")]),
    ],
)
def test_who_may_change_what(breaks: str, events: list[Event]) -> None:
    assert broken(*events) == {breaks} - {""}


DEAD = [belief(1, "a", 9), granted(1, "a", FIRST)]
GONE = [Suspected(5, JOB, "a", "b"), belief(5, "b", 20)]


@pytest.mark.parametrize(
    ("breaks", "events"),
    [
        ("S1", [belief(1, "c", 20), belief(2, "a", None), Believed(3, JOB, "b", None, 9)]),
        ("", [belief(1, "a", 5), belief(3, "b", 3)]),
        ("", [*DEAD, *GONE]),
        ("S1", [*DEAD, *GONE, Revoked(12, JOB, "a", A, "It was told to.")]),
        ("", [*DEAD, *GONE, Revoked(12, JOB, "a", B, "It was told to.")]),
        ("", [*DEAD, *GONE, Revoked(12, JOB, "c", A, "It was told to.")]),
        ("", [*DEAD, *GONE, belief(9, "b", None), belief(9, "a", 12)]),
        ("S1", [*DEAD, *GONE, belief(8.9, "a", None)]),
        ("", [*DEAD, belief(5, "a.2", 25), adopted(5.1, "a.2", FIRST), belief(8, "a.2", 26)]),
        ("S1", [*DEAD, belief(5, "a.2", 25), belief(5, "a", None), adopted(5.1, "a.2", FIRST), belief(6, "a", 9)]),
    ],
)
def test_who_believes(breaks: str, events: list[Event]) -> None:
    assert broken(*events) == {breaks} - {""}


def test_the_two_beliefs_have_their_own_ends() -> None:
    for leads, end in ((True, 5), (False, 8)):
        found = list(beliefs([Believed(1, JOB, "a", 5, 8)], leads=leads))
        assert [(each.begins, each.ends) for each in found] == [(1, end)]


def test_a_belief_to_lead_alone_breaks_it_too() -> None:
    assert broken(Believed(1, JOB, "a", 5, None), Believed(4, JOB, "b", 9, None)) == {"S1"}
    assert broken(Believed(1, JOB, "a", 5, None), Believed(5, JOB, "b", 9, None)) == set()
