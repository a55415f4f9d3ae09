"""A program does what its sidecar asks for: once, and the next thing also if that has failed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ha.program import request_file
from ha.program.request_file import Answer, Tell, Wanted, program_watch
from leader.job.request_folder import State
from tests.unit.ha.waiting import wait_until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "restart-query-1"


@contextmanager
def watched(path: Path) -> Iterator[list[str]]:
    done: list[str] = []

    def do(what: str, tell: Tell) -> None:
        done.append(what)
        tell(State.DONE, f"Started: {int(what)}.")

    with program_watch(path, do):
        yield done


def answer(path: Path, identity: str, what: str) -> Answer:
    request_file.ask(path, Wanted(identity, what))
    wait_until(lambda: request_file.answered(path, identity) is not None)
    found = request_file.answered(path, identity)
    assert found is not None
    return found


def test_it_is_able_as_long_as_its_block_lasts(path: Path) -> None:
    assert not request_file.able(path)
    with watched(path):
        assert request_file.able(path)
    assert not request_file.able(path)


def test_what_fails_is_said_and_the_next_thing_is_done(path: Path) -> None:
    with watched(path) as done:
        failed = Answer("one", State.FAILED, "Its program has failed to do it, as its log says: ValueError.")
        assert answer(path, "one", "many") == failed
        assert answer(path, "two", "2") == Answer("two", State.DONE, "Started: 2.")
        assert done == ["many", "2"]


def test_the_next_program_of_an_engine_does_nothing_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched(path):
        answer(path, "one", "1")
    looks, asked = list[Path](), request_file.asked

    def look(place: Path) -> Wanted | None:
        looks.append(place)
        return asked(place)

    monkeypatch.setattr(request_file, "asked", look)
    with watched(path) as done:
        wait_until(lambda: len(looks) > 1, what="the first look is over")
        assert done == []
        answer(path, "two", "2")
        assert done == ["2"]


def test_the_next_program_of_an_engine_does_what_is_not_answered(path: Path) -> None:
    request_file.ask(path, Wanted("one", "1"))
    request_file.answer(path, Answer("one", State.ACCEPTED, "Started: none of 1."))
    with watched(path) as done:
        wait_until(lambda: request_file.answered(path, "one") == Answer("one", State.DONE, "Started: 1."))
        assert done == ["1"]
