"""The entry of the record that says who has paused a job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader.errors import InvalidName
from leader.layout.information import Record
from leader.layout.lease import Lease, Mode
from leader.layout.pause import Pause, present
from tests.unit.leader.samples import A

LEASE = Lease(5, Mode.HDFS, 6000, A, "", "a")
PAUSED = LEASE.as_paused()
PRINTABLE = st.text(st.sampled_from("aZ0.-_~% é😀"), max_size=9)


@given(st.integers(0, 10**11 - 1), PRINTABLE, PRINTABLE)
def test_it_is_read_back(at: int, by: str, reason: str) -> None:
    pause = Pause(at, by, reason)
    assert Pause.parse(pause.name) == pause


@pytest.mark.parametrize(
    "name", ["paused~", "paused~1~a", "paused~01~a~b", "paused~-1~a~b", "paused~1~a~b~c", "paused~1~_0a~b", "x~1~a~b"]
)
def test_a_strange_name_is_none_of_ours(name: str) -> None:
    assert Pause.parse(name) is None


def test_a_reason_is_bounded_by_the_length_of_a_name() -> None:
    longest = 255 - len("paused~1~ada~")
    assert len(Pause(1, "ada", "x" * longest).name) == 255
    with pytest.raises(InvalidName, match=f"takes {longest + 1} bytes"):
        _ = Pause(1, "ada", "x" * (longest + 1)).name


@pytest.mark.parametrize("reason", ["two\nlines", "\x1b[31m"])
def test_a_reason_is_one_line_that_can_be_shown(reason: str) -> None:
    with pytest.raises(InvalidName, match="cannot be shown"):
        _ = Pause(1, "ada", reason).name


def test_the_lease_alone_says_that_a_job_is_paused() -> None:
    pause = Pause(7, "ada", "why")
    assert present(Record.parse([LEASE.name, pause.name])) is None
    assert present(Record.parse([PAUSED.name])) == Pause()
    assert present(Record.parse([PAUSED.name, pause.name, Pause(6, "zoe", "old").name, "paused~strange"])) == pause
    assert present(Record.parse([pause.name])) is None


def test_it_is_said_in_words() -> None:
    assert f"{Pause()}" == "paused"
    assert f"{Pause(0, 'ada')}" == "paused by ada"
    assert f"{Pause(1_700_000_000, 'ada', 'why')}" == "paused by ada since 2023-11-14T22:13:20Z (why)"
