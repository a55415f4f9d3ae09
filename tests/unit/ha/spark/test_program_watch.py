"""A program does what its sidecar asks for: once, and the next thing also if that has failed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ha.leadership import program_file
from ha.leadership.program_file import Answer, Wanted
from ha.spark.program_watch import ProgramWatch, Tell
from leader.job.requests import State
from tests.unit.ha.waiting import wait_until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rescale-executors-1"


@contextmanager
def watched(path: Path) -> Iterator[list[str]]:
    """Answer what can be read as a number."""
    done: list[str] = []

    def do(what: str, tell: Tell) -> None:
        done.append(what)
        tell(State.DONE, f"Executors: {int(what)}.")

    with ProgramWatch(path, do):
        yield done


def answer(path: Path, identity: str, what: str) -> Answer:
    program_file.ask(path, Wanted(identity, what))
    wait_until(lambda: program_file.answered(path, identity) is not None)
    found = program_file.answered(path, identity)
    assert found is not None
    return found


def test_it_is_able_as_long_as_its_block_lasts(path: Path) -> None:
    assert not program_file.able(path)
    with watched(path):
        assert program_file.able(path)
    assert not program_file.able(path)


def test_what_fails_is_said_and_the_next_thing_is_done(path: Path) -> None:
    with watched(path) as done:
        failed = Answer("one", State.FAILED, "Its program has failed to do it, as its log says: ValueError.")
        assert answer(path, "one", "many") == failed
        assert answer(path, "two", "2") == Answer("two", State.DONE, "Executors: 2.")
        assert done == ["many", "2"]


def test_the_next_program_of_an_engine_does_nothing_again(path: Path) -> None:
    with watched(path):
        answer(path, "one", "1")
    with watched(path) as done:
        answer(path, "two", "2")
        assert done == ["2"]


def test_the_next_program_of_an_engine_does_what_is_not_answered(path: Path) -> None:
    program_file.ask(path, Wanted("one", "1"))
    program_file.answer(path, Answer("one", State.ACCEPTED, "Executors: 2 of 1."))
    with watched(path) as done:
        wait_until(lambda: program_file.answered(path, "one") == Answer("one", State.DONE, "Executors: 1."))
        assert done == ["1"]
