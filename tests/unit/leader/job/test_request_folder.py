"""Requests: asked by name, accepted once behind the fence, and never executed by the leader of another epoch."""

import os
import random
from pathlib import Path

import pytest
from msgspec import structs

from leader.errors import Fenced, InvalidName
from leader.job.fenced_directory import MAX_BYTES
from leader.job.request_folder import KEPT, Request, Requests, State
from leader.job.versioned_files import VersionedFiles
from leader.layout.names import LeaderDirectory
from store.errors import PermissionDenied, StoreError
from tests.unit.leader.faulty import DROPPED, LATE, LOST, OK, REFUSED, Place
from tests.unit.leader.owned import FIRST, HOME, SECOND, Owned

ENDS = [State.DONE, State.REFUSED, State.FAILED]


def carried_out(requests: Requests) -> list[str]:
    verbs = []
    for request in requests.accept():
        assert request.state is State.ACCEPTED
        verbs.append(request.verb)
        requests.answer(request, State.DONE)
    return verbs


def test_without_requests_there_is_nothing_to_do(owned: Owned) -> None:
    assert list(Requests(owned.own).accept()) == []
    assert Requests(owned.own).load("1") is None


@pytest.mark.parametrize("end", ENDS)
def test_a_request_is_accepted_and_then_answered(owned: Owned, end: State) -> None:
    operator, leader = Requests(owned.own), Requests(owned.own)
    asked = operator.ask("1", "restart", "ann-on-desk", {"query": "sums"})
    assert asked == Request("1", "restart", 1, "ann-on-desk", {"query": "sums"}, State.ASKED, "", 1)
    (accepted,) = leader.accept()
    assert accepted == structs.replace(asked, state=State.ACCEPTED, version=2)
    assert operator.load(asked.id) == accepted
    leader.answer(accepted, State.ACCEPTED, "half of it")
    leader.answer(accepted, end, "so it ended")
    found = operator.load(asked.id)
    assert found is not None
    assert (found.state, found.said, found.version) == (end, "so it ended", 4)
    assert list(leader.accept()) == []
    assert list(Requests(owned.own).accept()) == [], "nor does the sidecar that comes back in this epoch"


def test_asking_twice_with_one_id_is_asking_once(owned: Owned) -> None:
    operator, leader = Requests(owned.own), Requests(owned.own)
    first = operator.ask("deploy-7", "cancel", "ann")
    assert operator.ask("deploy-7", "cancel", "ann") == first
    assert carried_out(leader) == ["cancel"]
    assert operator.ask("deploy-7", "cancel", "bob").state is State.DONE
    assert carried_out(leader) == []


def test_requests_are_taken_in_the_order_of_their_ids(owned: Owned) -> None:
    operator = Requests(owned.own)
    for verb in ("a", "b", "c"):
        operator.ask(verb, verb)
    assert carried_out(Requests(owned.own)) == ["a", "b", "c"]


def test_an_id_has_the_form_of_a_name(owned: Owned) -> None:
    with pytest.raises(InvalidName, match="is not a name of a request"):
        Requests(owned.own).ask("a/b", "cancel", "ann")


def test_a_request_for_a_former_epoch_is_refused(hurt: Owned) -> None:
    asked = Requests(hurt.own).ask("1", "cancel")
    second = Requests(hurt.claim())
    assert list(second.accept()) == []
    found = second.load(asked.id)
    assert found is not None
    assert (found.state, found.said) == (State.REFUSED, "It was meant for epoch 1, which is over: ask again.")


def test_what_a_former_leader_had_accepted_is_unknown(hurt: Owned) -> None:
    first = Requests(hurt.own)
    asked = first.ask("1", "restart")
    (accepted,) = first.accept()
    second = Requests(hurt.claim())
    assert list(second.accept()) == []
    found = second.load(asked.id)
    assert found is not None
    assert (found.state, found.said.startswith("Its leader, of epoch 1, ended")) == (State.UNKNOWN, True)
    with pytest.raises(Fenced):
        first.answer(accepted, State.DONE)


def test_a_request_to_a_leader_that_is_fenced_is_an_error_for_the_operator(hurt: Owned) -> None:
    hurt.claim()
    with pytest.raises(Fenced):
        Requests(hurt.own).ask("1", "cancel")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_none_of_a_hundred_requests_for_an_old_epoch_is_executed(place: Place, seed: int) -> None:
    """Whatever becomes of the calls: three hundred in all. The old leader may be about to accept when it is fenced."""
    dice = random.Random(seed)  # noqa: S311
    owned = Owned(place.direct, place.files)
    operator, old, executed = Requests(owned.own), Requests(owned.own), set[str]()
    asked = [operator.ask(f"{each:03d}", "cancel").id for each in range(100)]
    present = owned.claim()
    fates = [dice.choice([OK, OK, LOST, LATE, DROPPED, REFUSED]) for _ in range(200)]
    place.faulty.fates.extend(fates)
    new = Requests(present)
    for requests in (old, new, old, new, new):
        try:
            executed |= {each.id for each in requests.accept()}
        except (Fenced, StoreError):
            place.faulty.catch_up()
    place.faulty.fates.clear()
    place.faulty.catch_up()
    executed |= {each.id for each in new.accept()}
    assert executed == set()
    assert {found.state for each in asked[-KEPT:] if (found := new.load(each)) is not None} == {State.REFUSED}


def test_a_request_accepted_without_an_answer_is_accepted_again_and_done_once(place: Place, hurt: Owned) -> None:
    Requests(hurt.own).ask("1", "restart", "ann")
    leader = Requests(hurt.own)
    taken: list[str] = []
    place.faulty.fates.extend([OK] * 2 + [LATE] * 12)
    with pytest.raises(StoreError):
        taken += carried_out(leader)
    place.faulty.fates.clear()
    place.faulty.catch_up()
    taken += carried_out(leader)
    taken += carried_out(leader)
    assert taken == ["restart"]


def test_an_ended_request_is_read_once_and_when_it_changes(hurt: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty are kept, and to read each of them for each new one would be forty requests to the NameNode."""
    operator, leader, read = Requests(hurt.own), Requests(hurt.own), list[str]()
    load = Requests.load

    def noted(self: Requests, identity: str) -> Request | None:
        read.append(identity)
        return load(self, identity)

    monkeypatch.setattr(Requests, "load", noted)
    for number in "123":
        operator.ask(number, "cancel")
    assert carried_out(leader) == ["cancel"] * 3
    read.clear()
    assert carried_out(leader) == []
    assert read == ["1", "2", "3"], "it has written their ends, but not read them"
    operator.ask("4", "cancel")
    read.clear()
    assert carried_out(leader) == ["cancel"]
    assert set(read) == {"4"}
    ended = operator.load("2")
    assert ended is not None
    VersionedFiles(hurt.own, "requests", "a request").put("2", b"{", ended.version)
    read.clear()
    assert carried_out(leader) == []
    assert read == ["2", "4"]
    read.clear()
    assert carried_out(leader) == []
    assert read == ["2"], "a damaged one may be mended, so it is read each time"


def test_answered_requests_are_kept_for_a_while(hurt: Owned) -> None:
    leader = Requests(hurt.own)
    for number in range(KEPT + 3):
        leader.ask(f"{number:03d}", "cancel", "")
    assert len(carried_out(leader)) == KEPT + 3
    assert list(leader.accept()) == []
    kept = [each for each in range(KEPT + 3) if leader.load(f"{each:03d}") is not None]
    assert kept == list(range(3, KEPT + 3))


DAMAGED = {
    "empty": b"",
    "cut off": b'{"id":"0","verb":"can',
    "no text": b"\xff\xfe\x00",
    "no UTF-8 in a text": b'{"id":"0","verb":"\xff","epoch":1}',
    "another type": b'{"id":"0","verb":"cancel","epoch":"one"}',
    "of another id": b'{"id":"1","verb":"cancel","epoch":1}',
    "without a verb": b'{"id":"0","verb":"","epoch":1}',
    "too deep": b'{"id":"0","verb":"cancel","epoch":1,"x":' + b"[" * 100_000,
    "too long": b" " * (MAX_BYTES + 1),
}


def damage(owned: Owned, name: str, data: bytes) -> None:
    owned.direct.make_directory(f"{HOME}/requests")
    owned.direct.write(f"{HOME}/requests/{name}", data)


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_request_holds_up_no_other(hurt: Owned, data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    damage(hurt, "0=1", data)
    operator, leader = Requests(hurt.own), Requests(hurt.own)
    operator.ask("1", "cancel")
    assert carried_out(leader) == ["cancel"]
    assert carried_out(leader) == []
    found = operator.load("0")
    assert found is not None
    assert (found.damaged, found.state.final) == (True, True)
    assert "ask again with another id" in found.said
    assert [each.getMessage() for each in caplog.records] == [f"orders: request 0: {found.said}"], "it is told once"


def test_only_what_may_have_been_accepted_is_unknown_once_it_is_damaged(hurt: Owned) -> None:
    damage(hurt, "0=1", b"{")
    damage(hurt, "1=2", b"{")
    states = [(found.state, found.version) for each in "01" if (found := Requests(hurt.own).load(each))]
    assert states == [(State.REFUSED, 1), (State.UNKNOWN, 2)]


def test_asking_again_under_the_id_of_a_damaged_request_asks_for_nothing(hurt: Owned) -> None:
    damage(hurt, "0=1", b"{")
    assert Requests(hurt.own).ask("0", "cancel").damaged
    assert Requests(hurt.own).note("0", "pause", "ann", {}, "done").damaged


def test_a_request_that_is_damaged_while_it_is_carried_out_is_answered(hurt: Owned) -> None:
    leader = Requests(hurt.own)
    leader.ask("1", "restart", "ann")
    (accepted,) = leader.accept()
    hurt.direct.write(f"{HOME}/requests/1=2", b"{")
    assert list(leader.accept()) == []
    leader.answer(accepted, State.DONE, "It runs again.")
    assert leader.load("1") == structs.replace(accepted, state=State.DONE, said="It runs again.", version=3)


def test_a_request_that_the_leader_may_not_read_holds_up_no_other(
    hurt: Owned, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    leader, load = Requests(hurt.own), VersionedFiles.load
    leader.ask("0", "cancel")
    leader.ask("1", "restart")

    def forbidden(self: VersionedFiles, name: str) -> object:
        if name == "0":
            raise PermissionDenied("ann alone may read it")
        return load(self, name)

    monkeypatch.setattr(VersionedFiles, "load", forbidden)
    assert carried_out(leader) == ["restart"]
    assert carried_out(leader) == []
    assert [each.getMessage() for each in caplog.records] == [
        "orders: request 0: The leader may not read it, and does nothing about it: ann alone may read it"
    ]


def test_a_name_that_no_request_has_is_passed_over(hurt: Owned) -> None:
    damage(hurt, f"{'a' * 65}=1", b"{")
    Requests(hurt.own).ask("b", "cancel")
    assert carried_out(Requests(hurt.own)) == ["cancel"]


def removals(owned: Owned, directory: LeaderDirectory = FIRST) -> list[str]:
    entries = owned.direct.list(f"orders/{directory.name}/requests")
    return sorted(each.name.partition("=")[0] for each in entries if each.is_directory)


def removed(owned: Owned, place: Place, *, seconds: float) -> None:
    """Have a leader remove three requests, so long before its line of history."""
    leader = Requests(owned.own)
    for number in range(KEPT + 3):
        leader.ask(f"{number:03d}", "cancel", "")
    carried_out(leader)
    list(leader.accept())
    assert removals(owned) == ["000", "001", "002"], "a leader does not forget its own"
    owned.direct.make_directory(f"{HOME}/history/{FIRST.name}~released~a")
    line = Path(place.root, HOME, "history", f"{FIRST.name}~released~a").stat().st_mtime
    for each in owned.direct.list(f"{HOME}/requests"):
        if each.is_directory:
            os.utime(Path(place.root, HOME, "requests", each.name), (line - seconds, line - seconds))


def test_the_next_leader_forgets_the_requests_that_were_removed(hurt: Owned, place: Place) -> None:
    removed(hurt, place, seconds=1.0)
    new = Requests(hurt.claim())
    assert list(new.accept()) == []
    assert removals(hurt, SECOND) == []
    assert len(hurt.names("requests", SECOND)) == KEPT


def test_what_may_have_been_removed_under_this_leader_stays(hurt: Owned, place: Place) -> None:
    removed(hurt, place, seconds=0.0)
    assert list(Requests(hurt.claim()).accept()) == []
    assert removals(hurt, SECOND) == ["000", "001", "002"]


def test_a_leader_forgets_once_and_only_so_many(hurt: Owned, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leader.job.request_folder.MOST_FORGOTTEN", 2)
    removed(hurt, place, seconds=1.0)
    new = Requests(hurt.claim())
    list(new.accept())
    list(new.accept())
    assert len(removals(hurt, SECOND)) == 1


def test_a_removal_is_forgotten_after_all_that_it_has_removed(hurt: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    files, deleted = VersionedFiles(hurt.own, "requests", "a request"), list[str]()
    for name in ("gone", "here"):
        files.put(name, b"1")
    files.remove("gone")
    hurt.direct.write(f"{HOME}/requests/gone=1", b"a crash has left it")
    (at_ms,) = [each.modified_ms for each in hurt.own.list("requests") if each.is_directory]
    monkeypatch.setattr(hurt.own, "delete", deleted.append)
    files.forget_removals(at_ms, 9)
    assert deleted == []
    files.forget_removals(at_ms + 1, 9)
    assert deleted == ["requests/gone=1", "requests/gone=2"]


def test_which_states_are_the_end() -> None:
    assert [each for each in State if not each.final] == [State.ASKED, State.ACCEPTED]
    assert FIRST.epoch < SECOND.epoch
