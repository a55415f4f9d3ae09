"""Answers to operators, while the store is away."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.hosts.crew import Crew
from ha.leadership.standalone import refuse_requests
from ha.sidecar.executor import InOrder
from ha.sidecar.store_work import OperatorAnswers
from leader.errors import Fenced
from leader.job.admin import JobAdmin
from leader.job.fenced_directory import FencedDirectory
from leader.job.request_folder import Request, Requests, State
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.errors import NotWritable
from store.local import LocalFiles
from tests.unit.ha.led import Led
from tests.unit.ha.waiting import wait_until

TRIES = 3


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FencedDirectory:
    monkeypatch.setattr("ha.sidecar.store_work.PAUSES_S", (0.0,) * (TRIES - 1))
    Led(tmp_path).claim("orders", "a:1")
    return JobAdmin(BoundedFiles(lambda: LocalFiles(tmp_path, durable=False)), None, 5).directory("orders")


def found(requests: Requests) -> State | None:
    asked = requests.load("1")
    return asked.state if asked is not None else None


def answers(directory: FencedDirectory) -> OperatorAnswers:
    return OperatorAnswers(directory, InOrder(lambda error: pytest.fail(f"{error}")).later)


@pytest.mark.parametrize(
    ("errors", "state"),
    [
        ([], State.DONE),
        ([NotWritable("standby")] * (TRIES - 1), State.DONE),
        ([NotWritable("standby")] * TRIES, State.ACCEPTED),
        ([Fenced("another one leads")], State.ACCEPTED),
    ],
)
def test_an_answer_is_given_although_the_store_was_away(
    directory: FencedDirectory, monkeypatch: pytest.MonkeyPatch, errors: list[Exception], state: State
) -> None:
    """As when a NameNode dies. Once fenced, the next leader answers."""
    requests, answer, tried, left = Requests(directory), Requests.answer, list[str](), list(errors)

    def away(self: Requests, *arguments: object) -> None:
        tried.append("once")
        if left:
            raise left.pop()
        answer(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Requests, "answer", away)
    requests.ask("1", "restart")
    made = answers(directory)
    (request,) = made.look().requests
    made.answer(request, State.DONE, "The command has been started again.")
    expected = min(len(errors) + 1, TRIES) if not isinstance(next(iter(errors), None), Fenced) else 1
    wait_until(lambda: len(tried) == expected)
    wait_until(lambda: found(requests) is state)


@pytest.mark.parametrize(
    ("errors", "state"), [([NotWritable("standby")] * 3, State.REFUSED), ([Fenced("another one leads")], State.ASKED)]
)
def test_a_leader_without_a_command_refuses_once_the_store_is_back(
    directory: FencedDirectory, monkeypatch: pytest.MonkeyPatch, errors: list[Exception], state: State
) -> None:
    """Or the operator would wait for as long as nobody asks for anything else."""
    requests, accept, left, looks = Requests(directory), Requests.accept, list(errors), list[bool]()

    def away(self: Requests) -> Iterator[Request]:
        looks.append(True)
        if left:
            raise left.pop()
        return accept(self)

    monkeypatch.setattr(Requests, "accept", away)
    requests.ask("1", "stop")
    stores: Any = SimpleNamespace(files=directory._files, timing=Timing(short_ttl=2.0))
    refuse_requests(stores, "orders", directory.leader, Crew("test", 1))

    tries = len(errors) + (state is State.REFUSED)
    wait_until(lambda: (len(looks), found(requests)) == (tries, state))


def test_how_far_a_request_has_come_is_told_once(directory: FencedDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next news replace it."""
    tried = list[str]()

    def away(*_: object) -> None:
        tried.append("once")
        raise NotWritable("standby")

    Requests(directory).ask("1", "savepoint")
    made = OperatorAnswers(directory, lambda *_: pytest.fail("nothing is tried again"))
    (request,) = made.look().requests
    monkeypatch.setattr(Requests, "answer", away)
    made.answer(request, State.ACCEPTED, "half of it")
    assert tried == ["once"]


def test_a_damaged_request_does_not_keep_the_sidecar_from_others(directory: FencedDirectory, tmp_path: Path) -> None:
    requests = Requests(directory)
    for identity in ("1", "2"):
        requests.ask(identity, "restart")
    (file,) = tmp_path.glob("orders/0*/requests/1=1")
    file.write_bytes(b"{")
    made = answers(directory)
    (request,) = made.look().requests
    made.answer(request, State.DONE, "The command has been started again.")
    assert request.id == "2"
    assert [asked.state for each in "12" if (asked := requests.load(each))] == [State.REFUSED, State.DONE]


def test_requests_that_were_accepted_before_the_store_went_away_are_not_lost(
    directory: FencedDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = Requests.load

    def away(self: Requests, identity: str) -> Request | None:
        if identity == "2":
            raise NotWritable("standby")
        return load(self, identity)

    for identity in ("1", "2"):
        Requests(directory).ask(identity, "restart")
    monkeypatch.setattr(Requests, "load", away)
    made = answers(directory)
    looked = made.look()
    assert ([each.id for each in looked.requests], looked.unknown) == (["1"], True)
    monkeypatch.setattr(Requests, "load", load)
    looked = made.look()
    assert ([each.id for each in looked.requests], looked.unknown) == (["2"], False)
