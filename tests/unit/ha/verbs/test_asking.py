"""Asking a job's leader: where the outcome stays unknown, the sentence says how to ask again without asking twice."""

from itertools import pairwise
from pathlib import Path

import pytest

from ha.verbs.asking import ask, find
from leader.errors import Leaderless, NoLeader
from leader.job.admin import JobAdmin
from leader.job.request_folder import KEPT_FOR_NEXT, Requests, State
from leader.job.status import JobStatus, Status
from store.errors import Conflict, NoSpace, NotWritable, Unknown
from tests.unit.ha.led import Led
from tests.unit.leader.faulty import DROPPED, REFUSED, Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    Led(tmp_path).claim("orders", "a:1")
    return Place(tmp_path)


class Admin(JobAdmin):
    """Its changes may meet faults once the request is left, when the leader is to be told."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.files, None, call_timeout=10.0)
        self.place, self.fate = place, "ok"

    def ask_to_look(self, job: str) -> None:
        self.place.faulty.fates.extend([self.fate] * 20)
        try:
            super().ask_to_look(job)
        finally:
            self.place.faulty.fates.clear()


@pytest.fixture
def admin(place: Place) -> Admin:
    return Admin(place)


def test_a_request_that_may_have_been_left_names_the_id_to_ask_again_with(place: Place, admin: Admin) -> None:
    place.faulty.fates.extend([DROPPED] * 20)
    with pytest.raises(Unknown, match="request one to restart job 'orders' is left: ask again with the id one"):
        ask(admin, "orders", "restart", "one", "me")
    place.faulty.fates.clear()
    assert ask(admin, "orders", "restart", "one", "me").state is State.ASKED


@pytest.mark.parametrize("fate", [DROPPED, REFUSED])
def test_a_request_of_which_the_leader_may_not_have_been_told_names_it_too(admin: Admin, fate: str) -> None:
    admin.fate = fate
    with pytest.raises(Unknown, match=r"Request one to restart job 'orders' is left.*ask again with the id one"):
        ask(admin, "orders", "restart", "one", "me")
    admin.fate = "ok"
    assert ask(admin, "orders", "restart", "one", "me").version == 1


def test_a_request_that_is_refused_was_not_left(place: Place, admin: Admin) -> None:
    place.faulty.fates.extend([REFUSED] * 20)
    with pytest.raises(NotWritable):
        ask(admin, "orders", "restart", "one", "me")


@pytest.mark.parametrize("verb", ["restart", "pause"])
def test_a_request_that_is_damaged_is_named_with_what_to_do(tmp_path: Path, admin: Admin, verb: str) -> None:
    ask(admin, "orders", "restart", "one", "me")
    (file,) = tmp_path.glob("orders/0*/requests/one=1")
    file.write_bytes(b"{")
    with pytest.raises(Conflict, match=r"Request one .* damaged .*; nothing was done, and ask again with another id"):
        ask(admin, "orders", verb, "one", "me")
    assert (found := find(admin, "orders", "one")) is not None
    assert (found.state, found.damaged) == (State.REFUSED, True)


@pytest.mark.parametrize(("verb", "state"), [("stop", Status.FINISHED), ("cancel", Status.CANCELED)])
def test_a_verb_that_is_given_again_is_told_that_the_job_has_ended(
    tmp_path: Path, admin: Admin, verb: str, state: Status
) -> None:
    """As after an answer that was lost: nobody leads the job any more."""
    status = JobStatus(admin.directory("orders"))
    ways = {
        Status.FINISHED: (Status.CREATED, Status.RUNNING, Status.FINISHED),
        Status.CANCELED: (Status.CREATED, Status.CANCELLING, Status.CANCELED),
    }
    for old, new in pairwise(ways[state]):
        status.change(old, new)
    Led(tmp_path).release("orders")
    again = ask(admin, "orders", verb, "one", "me")
    assert (again.state, again.said) == (State.DONE, f"The job is {state.value} already: nothing is changed.")
    assert ask(admin, "orders", verb, "one", "me").version == again.version, "asking twice with one id is asking once"
    for other in {"stop", "cancel", "restart"} - {verb}:
        with pytest.raises(NoLeader):
            ask(admin, "orders", other, None, "me")


@pytest.mark.parametrize("verb", ["stop", "cancel", "restart"])
def test_what_is_asked_while_nobody_leads_is_kept_for_the_next_leader(tmp_path: Path, admin: Admin, verb: str) -> None:
    Led(tmp_path).release("orders")
    assert ask(admin, "orders", verb, "one", "me").epoch == KEPT_FOR_NEXT
    Led(tmp_path).claim("orders", "b:1")
    requests = Requests(admin.directory("orders"))
    assert [(each.id, each.epoch) for each in requests.accept()] == [("one", requests._directory.leader.epoch)]
    Led(tmp_path).claim("orders", "c:1")
    assert list(Requests(admin.directory("orders")).accept()) == [], "once is enough"
    assert (found := find(admin, "orders", "one")) is not None
    assert found.state is State.UNKNOWN


@pytest.mark.parametrize("verb", ["stop", "cancel", "restart"])
def test_what_a_leader_has_not_accepted_is_for_the_next_one(tmp_path: Path, admin: Admin, verb: str) -> None:
    ask(admin, "orders", verb, "one", "me")
    Led(tmp_path).claim("orders", "b:1")
    assert [each.id for each in Requests(admin.directory("orders")).accept()] == ["one"]


def test_a_savepoint_is_of_one_leader(tmp_path: Path, admin: Admin) -> None:
    ask(admin, "orders", "savepoint", "one", "me")
    Led(tmp_path).claim("orders", "b:1")
    assert list(Requests(admin.directory("orders")).accept()) == []
    Led(tmp_path).release("orders")
    with pytest.raises(Leaderless):
        ask(admin, "orders", "savepoint", "two", "me")


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_is_done_and_cannot_be_noted_is_done(admin: Admin, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    def note(*_: object) -> None:
        raise NoSpace("No space left on device")

    monkeypatch.setattr(Requests, "note", note)
    done = ask(admin, "orders", verb, None, "me")
    assert done.state is State.DONE
    assert "It could not be noted: No space left on device" in done.said
    assert (admin.record("orders")[1].lease is not None and admin.lease("orders")[1].paused) == (verb == "pause")
