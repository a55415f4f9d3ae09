"""Checkpoints on a real directory: an id is never handed out twice, whichever answers are lost."""

import random
from collections.abc import Callable

import pytest

from leader.errors import Fenced, InvalidName, Unreadable
from leader.job import checkpoints
from leader.job.checkpoints import ATTEMPTS, Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout import checkpoint_list
from leader.layout.checkpoint import MAX_ID, Checkpoint
from leader.layout.checkpoint_state import CheckpointState
from leader.layout.names import LeaderDirectory
from store.errors import NotFound, NotWritable, StoreError, Unknown
from tests.unit.leader.faulty import DROPPED, LATE, LOST, OK, REFUSED, Place, in_threads
from tests.unit.leader.samples import A, B

DIRECTORY = LeaderDirectory(1, A)
HOME = f"orders/{DIRECTORY.name}/checkpoints"


def fence(place: Place) -> None:
    place.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{LeaderDirectory(2, B).name}")


def test_ids_count_from_one(ids: Checkpoints, led: Place) -> None:
    assert [ids.next() for _ in range(4)] == [1, 2, 3, 4]
    assert led.names(HOME) == ["next=5"]
    assert ids.state().next_id == 5


def test_the_next_leader_goes_on_where_the_last_one_stopped(ids: Checkpoints, led: Place) -> None:
    ids.next()
    fence(led)
    assert Checkpoints(FencedDirectory(led.files, "orders", LeaderDirectory(2, B), 10.0)).next() == 2


def test_a_lost_answer_skips_the_id(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.extend([OK, LOST, OK])
    assert [ids.next(), ids.next(), ids.next()] == [1, 3, 4]


def test_a_change_that_never_happened_is_made_again(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.extend([DROPPED, DROPPED])
    assert ids.next() == 1


def test_a_late_execution_between_two_tries_skips_the_id(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.append(LATE)

    def meanwhile() -> None:
        led.faulty.before_change = led.faulty.catch_up

    led.faulty.before_change = meanwhile
    assert ids.next() == 2
    assert led.names(HOME) == ["next=3"]


def test_a_late_execution_after_the_second_try_is_refused(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.append(LATE)
    assert ids.next() == 1
    led.faulty.catch_up()
    assert led.names(HOME) == ["next=2"]
    assert ids.next() == 2


def test_an_outcome_that_stays_unknown_hands_out_no_id_and_ends_in_an_error(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.extend([LOST] * ATTEMPTS)
    with pytest.raises(Unknown):
        ids.next()
    assert not led.faulty.fates
    assert ids.next() == ATTEMPTS + 1


def test_a_refusal_is_raised_at_once_and_costs_no_id(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.append(REFUSED)
    with pytest.raises(NotWritable):
        ids.next()
    assert ids.next() == 1


@pytest.mark.parametrize("seed", range(10))
def test_ids_are_unique_and_grow_under_any_faults(ids: Checkpoints, led: Place, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # replayed, not secret
    handed: list[int] = []
    for _ in range(60):
        led.faulty.fates.extend(chance.choices([OK, LOST, LATE, DROPPED, REFUSED], [4, 2, 2, 1, 1], k=3))
        if chance.random() < 0.5:
            led.faulty.before_change = led.faulty.catch_up
        try:
            handed.append(ids.next())
        except StoreError:
            led.faulty.catch_up()
    assert handed == sorted(set(handed))
    assert handed


def test_threads_never_share_an_id_and_each_sees_them_grow(ids: Checkpoints) -> None:
    found: list[list[int]] = in_threads(8, lambda _: [ids.next() for _ in range(32)])
    assert sorted(number for each in found for number in each) == list(range(1, 8 * 32 + 1))
    assert all(each == sorted(each) for each in found)


def test_two_writers_never_share_an_id(led: Place) -> None:
    """There is only one leader. But even with two writers in one directory, the names would keep them apart."""
    hands = [Checkpoints(FencedDirectory(led.files, "orders", DIRECTORY, 10.0)) for _ in range(4)]

    def count(number: int) -> list[int]:
        handed = []
        for _ in range(20):
            try:
                handed.append(hands[number].next())
            except StoreError:
                continue
        return handed

    found = [number for each in in_threads(4, count) for number in each]
    assert len(found) == len(set(found))


def test_after_the_directory_was_renamed_everything_is_fenced(ids: Checkpoints, led: Place) -> None:
    ids.next()
    ids.completed("daily", 1)
    fence(led)
    before = led.names(f"orders/{LeaderDirectory(2, B).name}/checkpoints")
    for change in (ids.next, lambda: ids.completed("daily", 2), lambda: ids.completed("new", 1), ids.state):
        with pytest.raises(Fenced, match=r"Epoch 1 of job 'orders' is over"):
            change()
    assert led.names(f"orders/{LeaderDirectory(2, B).name}/checkpoints") == before


def test_a_fence_after_a_lost_answer_is_reported_as_fenced(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.append(DROPPED)

    def fence_then() -> None:
        fence(led)

    led.faulty.before_change = fence_then
    with pytest.raises(Fenced):
        ids.next()


def test_ids_continue_from_the_set_number(ids: Checkpoints, led: Place) -> None:
    assert ids.set(1337) == 1337
    assert [ids.next(), ids.next()] == [1337, 1338]
    assert led.names(HOME) == ["next=1339"]
    assert ids.set(1339) == 1339, "it stands there"
    assert led.names(HOME) == ["next=1339"]


def test_the_counter_does_not_go_back(ids: Checkpoints, led: Place) -> None:
    ids.set(5)
    with pytest.raises(InvalidName, match="cannot go back to 4: the next is 5, and none is handed out twice"):
        ids.set(4)
    assert led.names(HOME) == ["next=5"]


@pytest.mark.parametrize("number", [0, -1, MAX_ID + 1])
def test_an_invalid_id_cannot_be_set(ids: Checkpoints, led: Place, number: int) -> None:
    with pytest.raises(InvalidName, match="is not a checkpoint id"):
        ids.set(number)
    assert led.names(HOME) == ["next=1"]


@pytest.mark.parametrize("fate", [LOST, LATE, DROPPED])
def test_an_unacknowledged_counter_is_moved_on(ids: Checkpoints, led: Place, fate: str) -> None:
    """A NameNode may forget a listed change: only the process that got the acknowledgement is sure of a number."""
    led.faulty.fates.append(fate)
    assert ids.set(7) == (8 if fate == LOST else 7)
    led.faulty.catch_up()
    assert ids.next() == (8 if fate == LOST else 7)


def test_a_successor_does_not_trust_the_number_that_it_finds(ids: Checkpoints, led: Place) -> None:
    ids.set(7)
    fence(led)
    assert Checkpoints(FencedDirectory(led.files, "orders", LeaderDirectory(2, B), 10.0)).set(7) == 8


def test_the_newest_batch_of_each_query(ids: Checkpoints, led: Place) -> None:
    ids.completed("daily", 0)
    ids.completed("hourly", 7)
    state = ids.completed("daily", 1)
    assert state.latest == {"daily": Checkpoint("daily", 1, 3), "hourly": Checkpoint("hourly", 7, 2)}
    assert state.queries == {"daily": 1, "hourly": 7}
    assert led.names(HOME) == ["daily=0~1~1~~~~~", "daily=1~3~1~~~~~", "hourly=7~2~1~~~~~", "next=4"]
    assert ids.state() == state


def test_an_older_batch_changes_nothing_and_takes_no_id(ids: Checkpoints, led: Place) -> None:
    ids.completed("daily", 5)
    assert ids.completed("daily", 4).queries == {"daily": 5}
    assert ids.completed("daily", 5).queries == {"daily": 5}
    assert led.names(HOME) == ["daily=5~1~1~~~~~", "next=2"]


def test_a_completed_batch_never_goes_back_under_any_faults(ids: Checkpoints, led: Place) -> None:
    chance = random.Random(1)  # noqa: S311  # replayed, not secret
    least = -1
    for batch in range(60):
        led.faulty.fates.extend(chance.choices([OK, LOST, LATE, DROPPED], [4, 2, 2, 1], k=3))
        try:
            ids.completed("daily", batch)
            least = batch
        except StoreError:
            led.faulty.fates.clear()
        led.faulty.catch_up()
        assert ids.state().queries.get("daily", -1) >= least
    assert least > 0


def test_an_unacknowledged_batch_is_written_once_more(led: Place) -> None:
    """A NameNode lists what its journal may never have; a rename that needs it is acknowledged only if it is there."""
    hand = Checkpoints(FencedDirectory(led.files, "orders", DIRECTORY, 10.0), retained=1)
    hand.completed("daily", 4)
    led.faulty.fates.extend([OK, LOST])
    assert hand.completed("daily", 5).queries == {"daily": 5}
    assert led.names(HOME) == ["daily=5~2~2~~~~~", "next=3"]
    led.faulty.fates.extend([OK, LOST, LOST])
    hand.completed("daily", 6)
    assert led.names(HOME) == ["daily=6~3~3~~~~~", "next=4"]
    hand.completed("daily", 7)
    assert led.names(HOME) == ["daily=7~4~1~~~~~", "next=5"]


def test_a_first_batch_with_lost_answers_gets_a_new_name_for_each_try(ids: Checkpoints, led: Place) -> None:
    """Creating an existing file changes nothing, so it is acknowledged before the journal has the file."""
    led.faulty.fates.extend([OK, LATE])
    assert ids.completed("daily", 0).queries == {"daily": 0}
    led.faulty.catch_up()
    assert led.names(HOME) == ["daily=0~1~1~~~~~", "daily=0~1~2~~~~~", "next=2"]
    assert ids.retained("daily") == [Checkpoint("daily", 0, 1)], "it is one checkpoint"
    assert ids.completed("daily", 1).queries == {"daily": 1}


def test_a_batch_that_another_writer_stored_is_written_once_more(ids: Checkpoints, led: Place) -> None:
    led.direct.make_directory(f"{HOME}/daily=5~8~1~850~7~~~")
    assert ids.completed("daily", 5).queries == {"daily": 5}
    assert led.names(HOME) == ["daily=5~8~2~850~7~~~", "next=1"], "the same checkpoint, and all that is known of it"
    ids.state()
    ids.completed("daily", 5)
    assert led.names(HOME) == ["daily=5~8~2~850~7~~~", "next=1"], "that was acknowledged"


@pytest.mark.parametrize("query", ["next", "_6eext", "next=1", "a/b", "ä", "..", "a=b", "a~b", " ", "n" * 200])
def test_no_name_of_a_query_clashes_with_the_counter(ids: Checkpoints, query: str) -> None:
    ids.completed(query, 3)
    assert ids.next() == 2
    assert ids.state().queries == {query: 3}
    ids.completed(query, 4)
    assert ids.state().queries == {query: 4}


@pytest.mark.parametrize("batch", [-1, 10**18])
def test_batches_that_could_not_be_read_back_are_refused(ids: Checkpoints, led: Place, batch: int) -> None:
    with pytest.raises(InvalidName, match="batch"):
        ids.completed("daily", batch)
    assert led.names(HOME) == ["next=1"]


STRAYS = (
    "next=03", "next=", "next=x", "daily=-1", "daily=007", "daily=4", "=4", "notes", "next=\u0663",
    "daily=4~0~1~~~~~",
)  # fmt: skip


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize(
    "ask",
    [lambda ids: ids.next(), lambda ids: ids.set(9), lambda ids: ids.completed("daily", 9), lambda ids: ids.state()],
    ids=["next", "set", "completed", "state"],
)
def test_unreadable_ones_stay(ids: Checkpoints, led: Place, stray: str, ask: Callable[[Checkpoints], object]) -> None:
    """It may be the newest one: damaged, or written by another version of this project."""
    led.direct.make_directory(f"{HOME}/{stray}")
    with pytest.raises(Unreadable, match=r"among the checkpoints of job 'orders' cannot be read"):
        ask(ids)
    assert led.names(HOME) == sorted([stray, "next=1"])


def test_a_missing_counter_hands_out_nothing(ids: Checkpoints, led: Place) -> None:
    """Somebody deleted it: starting again at 1 would hand out ids a second time."""
    led.direct.delete(f"{HOME}/next=1")
    with pytest.raises(NotFound):
        ids.next()


def test_the_mirror_receives_every_publication_and_nothing_else(led: Place) -> None:
    told: list[CheckpointState] = []
    ids = Checkpoints(FencedDirectory(led.files, "orders", DIRECTORY, 10.0), changed=told.append)
    ids.next()
    ids.completed("daily", 3)
    ids.completed("daily", 2)
    ids.state()
    led.faulty.fates.append(REFUSED)
    with pytest.raises(NotWritable):
        ids.next()
    found = [(state.next_id, state.queries) for state in told]
    assert found == [(2, {}), (3, {"daily": 3}), (3, {"daily": 3})]


def test_reading_below_another_leaders_directory_is_not_found(led: Place) -> None:
    with pytest.raises(NotFound):
        checkpoint_list.names(led.direct, "orders", LeaderDirectory(2, B))


def test_without_an_active_namenode_a_driver_waits_for_its_id(led: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by an hour of NameNode switches: the query of a leader that was well failed in each long one."""
    monkeypatch.setattr(checkpoints, "RETRY_S", 0.0)
    directory = FencedDirectory(led.files, "orders", DIRECTORY, 10.0)
    ids = Checkpoints(directory, patience=60.0)
    led.faulty.fates.extend([REFUSED] * 20)
    assert ids.next() == 1
    assert not led.faulty.fates


def test_its_patience_ends(led: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(checkpoints, "RETRY_S", 0.0)
    monkeypatch.setattr(checkpoints, "now", lambda: float(next(clock)))
    led.faulty.fates.extend([REFUSED] * 10)
    with pytest.raises(NotWritable):
        Checkpoints(FencedDirectory(led.files, "orders", DIRECTORY, 10.0), patience=3.0).next()
    assert len(led.faulty.fates) == 10 - 3
