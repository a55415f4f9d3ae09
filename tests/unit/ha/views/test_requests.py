"""Asking a job's leader: where the outcome stays unknown, the sentence says how to ask again without asking twice."""

from pathlib import Path

import pytest

from ha.views.requests import ask, find
from leader.job.admin import JobAdmin
from leader.job.requests import State
from store.errors import Conflict, NotWritable, Unknown
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
