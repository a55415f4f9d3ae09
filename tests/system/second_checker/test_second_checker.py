"""Both checkers on histories made by hand, one that breaks a rule and one that nearly does, and on drawn ones."""

import pytest

from ha.history.events import Believed, CheckpointsRead, Counted, Event, Granted, Revoked, Stored, Suspected
from tests.system.second_checker.comparing import compare, verdicts

JOB = "orders"
S = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(4)]
D = [f"{epoch:010}-{session}" for epoch, session in enumerate(S)]


def believed(at: float, who: str, leads: float | None, holds: float | None) -> Event:
    return Believed(at, JOB, who, leads, holds)


def granted(at: float, who: str, epoch: int, reason: str = "expired") -> Event:
    return Granted(at, JOB, who, epoch, S[epoch], reason)


def claimed(at: float, epoch: int, by: str) -> Event:
    return Stored(at, JOB, "rename", D[epoch - 1], D[epoch], by)


def made(at: float, epoch: int, path: str, by: str) -> Event:
    return Stored(at, JOB, "make", f"{D[epoch]}/{path}", "", by)


def read(at: float, epoch: int, next_id: int = 1, **queries: int) -> Event:
    return CheckpointsRead(at, JOB, at + 0.1, "r", epoch, next_id, queries)


LED = [believed(1, "a", 9, 10), claimed(1, 1, "a"), granted(1, "a", 1)]
SUSPECTED = [*LED, Suspected(5, JOB, "a", "b"), believed(6, "b", 15, 16)]
TWO = [*LED[1:], claimed(5, 2, "b"), granted(5, "b", 2)]


@pytest.mark.parametrize(
    ("breaks", "history"),
    [
        ("", [*LED, believed(5, "a", None, None), believed(5, "b", 9, 9)]),
        ("S1", [*LED, believed(5, "b", 9, 9)]),
        ("S1", [believed(1, "a", None, 9), believed(5, "b", None, 9)]),
        ("", SUSPECTED),
        ("S1", [*SUSPECTED, believed(7, "a", 9, 10)]),
        ("S1", [*SUSPECTED, Revoked(12, JOB, "a", S[1], "It was told to.")]),
        ("S2", [*LED[1:], made(2, 1, "spark/1", "b")]),
        ("S2", [claimed(1, 1, "a"), made(2, 1, "spark/1", "a"), granted(3, "a", 1)]),
        ("", [*TWO, made(6, 2, "spark/1", "b")]),
        ("S3", [*TWO, Stored(6, JOB, "rename", D[1], D[3], "a")]),
        ("S3", [*TWO, claimed(6, 3, "a"), granted(6, "a", 3), granted(7, "a", 3)]),
        ("", [*TWO, granted(7, "b.2", 2, "adopted")]),
        ("S4", [Counted(1, JOB, 2, "a", 1, 7), Counted(3, JOB, 4, "a", 1, 6)]),
        ("", [Counted(1, JOB, 3, "a", 1, 7), Counted(2, JOB, 4, "a", 1, 6)]),
        ("S4", [Counted(1, JOB, 2, "a", 1, 4), Counted(9, JOB, 12, "b", 2, 21), Counted(11, JOB, 13, "a", 1, 2)]),
        ("S5", [claimed(1, 1, "a"), granted(1, "a", 1), granted(2, "b", 2)]),
        ("", [*TWO, read(6, 3), read(7, 2)]),  # a claim was shown, and forgotten with the journal of the NameNode
        ("", [*TWO, made(6, 2, "checkpoints/q=3", "b"), read(7, 2, q=4)]),  # so was a batch that nobody was told of
    ],
)
def test_both_say_what_breaks(breaks: str, history: list[Event]) -> None:
    assert verdicts(history) == ({breaks} - {""}, {breaks} - {""})


def test_a_process_that_begins_again_under_its_name_was_gone() -> None:
    again = [*SUSPECTED, believed(7, "b", None, None), believed(8, "a", None, 20)]
    assert verdicts(again) == (set(), set())


@pytest.mark.parametrize("seed", range(3))
def test_both_judge_a_simulated_history_alike(seed: int) -> None:
    assert compare(seed, 2).differences == []
