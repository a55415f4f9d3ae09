"""Checkpoints on a real directory: an id is never handed out twice, whatever becomes of the answers."""

import json
import random
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader import checkpoints, job
from leader.checkpoints import ATTEMPTS, Checkpoints, CheckpointState, decode, encode, query_entry
from leader.errors import Fenced, InvalidName
from leader.job import NOBODY
from leader.names import LeaderDirectory
from store.errors import NotFound, NotWritable, StoreError, Unknown
from tests.leader.faulty import DROPPED, LATE, LOST, OK, REFUSED, Place, in_threads
from tests.leader.samples import SESSION_IDS, A, B

DIRECTORY = LeaderDirectory(1, A)
HOME = f"orders/{DIRECTORY.name}/checkpoints"


@pytest.fixture
def led(place: Place) -> Place:
    """A job in its first epoch."""
    job.create(place.direct, "orders")
    place.direct.rename(f"orders/{LeaderDirectory(0, NOBODY).name}", f"orders/{DIRECTORY.name}")
    return place


@pytest.fixture
def ids(led: Place) -> Checkpoints:
    return Checkpoints(led.files, "orders", DIRECTORY, call_timeout=10.0)


def fence(place: Place) -> None:
    place.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{LeaderDirectory(2, B).name}")


# --- the counter


def test_ids_count_from_one(ids: Checkpoints, led: Place) -> None:
    assert [ids.next() for _ in range(4)] == [1, 2, 3, 4]
    assert led.names(HOME) == ["next=5"]
    assert ids.state().next_id == 5


def test_the_next_leader_goes_on_where_the_last_one_stopped(ids: Checkpoints, led: Place) -> None:
    ids.next()
    fence(led)
    assert Checkpoints(led.files, "orders", LeaderDirectory(2, B), 10.0).next() == 2


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


def test_what_stays_unknown_hands_out_nothing_and_does_not_go_on_for_ever(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.extend([LOST] * ATTEMPTS)
    with pytest.raises(Unknown):
        ids.next()
    assert not led.faulty.fates
    assert ids.next() == ATTEMPTS + 1


def test_a_refusal_is_told_at_once_and_costs_no_id(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.append(REFUSED)
    with pytest.raises(NotWritable):
        ids.next()
    assert ids.next() == 1


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_no_id_comes_twice_and_they_grow(ids: Checkpoints, led: Place, seed: int) -> None:
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
    """There is one leader; if there were two hands on one directory, the names would still keep them apart."""
    hands = [Checkpoints(led.files, "orders", DIRECTORY, 10.0) for _ in range(4)]

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


# --- the fence


def test_after_the_directory_was_renamed_everything_is_fenced(ids: Checkpoints, led: Place) -> None:
    ids.next()
    ids.completed("daily", 1)
    fence(led)
    before = led.names(f"orders/{LeaderDirectory(2, B).name}/checkpoints")
    for change in (ids.next, lambda: ids.completed("daily", 2), lambda: ids.completed("new", 1), ids.state):
        with pytest.raises(Fenced, match=r"Epoch 1 of job 'orders' is over"):
            change()
    assert led.names(f"orders/{LeaderDirectory(2, B).name}/checkpoints") == before


def test_a_lost_answer_and_then_a_fence_is_a_fence(ids: Checkpoints, led: Place) -> None:
    led.faulty.fates.append(DROPPED)

    def fence_then() -> None:
        fence(led)

    led.faulty.before_change = fence_then
    with pytest.raises(Fenced):
        ids.next()


# --- what is complete


def test_the_newest_batch_of_each_query(ids: Checkpoints, led: Place) -> None:
    ids.completed("daily", 0)
    ids.completed("hourly", 7)
    state = ids.completed("daily", 1)
    assert dict(state.queries) == {"daily": 1, "hourly": 7}
    assert led.names(HOME) == ["daily=1", "hourly=7", "next=1"]
    assert ids.state() == state


def test_an_older_batch_changes_nothing(ids: Checkpoints, led: Place) -> None:
    ids.completed("daily", 5)
    assert dict(ids.completed("daily", 4).queries) == {"daily": 5}
    assert dict(ids.completed("daily", 5).queries) == {"daily": 5}
    assert led.names(HOME) == ["daily=5", "next=1"]


def test_a_completed_batch_never_goes_back_whatever_becomes_of_the_answers(ids: Checkpoints, led: Place) -> None:
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


def test_a_batch_that_is_only_seen_is_written_once_more(ids: Checkpoints, led: Place) -> None:
    """A NameNode lists what its journal may never have; a rename that needs it is acknowledged only if it is there."""
    ids.completed("daily", 4)
    led.faulty.fates.append(LOST)
    assert dict(ids.completed("daily", 5).queries) == {"daily": 5}
    assert led.names(HOME) == ["daily=5~2", "next=1"]
    led.faulty.fates.extend([LOST, LOST])
    ids.completed("daily", 6)
    assert led.names(HOME) == ["daily=6~3", "next=1"]
    ids.completed("daily", 7)
    assert led.names(HOME) == ["daily=7", "next=1"]
    assert dict(ids.state().queries) == {"daily": 7}


def test_a_first_batch_whose_answers_are_lost_has_a_name_of_its_own_each_time(ids: Checkpoints, led: Place) -> None:
    """To create what is there changes nothing, and so is acknowledged before the journal has it."""
    led.faulty.fates.append(LATE)
    assert dict(ids.completed("daily", 0).queries) == {"daily": 0}
    led.faulty.catch_up()
    assert led.names(HOME) == ["daily=0", "daily=0~2", "next=1"]
    assert dict(ids.completed("daily", 1).queries) == {"daily": 1}
    assert dict(ids.state().queries) == {"daily": 1}


def test_a_batch_that_another_hand_wrote_is_written_once_more(ids: Checkpoints, led: Place) -> None:
    led.direct.make_directory(f"{HOME}/daily=5")
    assert dict(ids.completed("daily", 5).queries) == {"daily": 5}
    assert led.names(HOME) == ["daily=5~2", "next=1"]
    ids.state()
    ids.completed("daily", 5)
    assert led.names(HOME) == ["daily=5~2", "next=1"], "that was acknowledged"


@pytest.mark.parametrize("query", ["next", "_6eext", "next=1", "a/b", "ä", "..", "a=b", " ", "n" * 200])
def test_any_name_of_a_query_is_kept_and_apart_from_the_counter(ids: Checkpoints, query: str) -> None:
    ids.completed(query, 3)
    assert ids.next() == 1
    assert dict(ids.state().queries) == {query: 3}
    ids.completed(query, 4)
    assert dict(ids.state().queries) == {query: 4}


def test_names_of_queries_that_cannot_be_stored(ids: Checkpoints) -> None:
    with pytest.raises(InvalidName, match="set queryName"):
        ids.completed("", 1)
    with pytest.raises(InvalidName, match="too long"):
        ids.completed("ä" * 100, 1)


@pytest.mark.parametrize("batch", [-1, 10**18])
def test_batches_that_could_not_be_read_back_are_refused(ids: Checkpoints, led: Place, batch: int) -> None:
    with pytest.raises(InvalidName, match="batch"):
        ids.completed("daily", batch)
    assert led.names(HOME) == ["next=1"]


@given(st.text(min_size=1, max_size=30), st.integers(0, 10**18 - 1))
def test_the_entry_of_a_query_is_never_the_counter(query: str, batch: int) -> None:
    try:
        assert not query_entry(query, batch).startswith("next=")
    except InvalidName:
        return


def test_strays_are_ignored(ids: Checkpoints, led: Place) -> None:
    for stray in ("next=03", "next=", "next=x", "daily=-1", "daily=007", "_zz=3", "=4", "notes", "next=\u0663"):
        led.direct.make_directory(f"{HOME}/{stray}")
    assert ids.next() == 1
    assert ids.state() == CheckpointState("orders", 1, A, 2)


def test_a_missing_counter_hands_out_nothing(ids: Checkpoints, led: Place) -> None:
    """Somebody deleted it: starting again at 1 would hand out ids a second time."""
    led.direct.delete(f"{HOME}/next=1")
    with pytest.raises(NotFound):
        ids.next()


# --- who is told


def test_the_copy_is_told_of_every_publication_and_of_nothing_else(led: Place) -> None:
    told: list[CheckpointState] = []
    ids = Checkpoints(led.files, "orders", DIRECTORY, 10.0, changed=told.append)
    ids.next()
    ids.completed("daily", 3)
    ids.completed("daily", 2)
    ids.state()
    led.faulty.fates.append(REFUSED)
    with pytest.raises(NotWritable):
        ids.next()
    found = [(state.next_id, dict(state.queries)) for state in told]
    assert found == [(2, {}), (2, {"daily": 3}), (2, {"daily": 3})]


# --- the copy


STATES = st.builds(
    CheckpointState,
    job=st.just("orders"),
    epoch=st.integers(1, 9_999_999_999),
    session_id=SESSION_IDS,
    next_id=st.integers(1, 10**18),
    queries=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 10**18)),
)


@given(STATES)
def test_a_copy_is_read_back(state: CheckpointState) -> None:
    found = decode(encode(state), "orders")
    assert found is not None
    assert (found, dict(found.queries)) == (state, dict(state.queries))


GOOD = CheckpointState("orders", 7, A, 3, MappingProxyType({"daily": 2}))


@pytest.mark.parametrize(
    "fields",
    [
        {"format": 2},
        {"job": "payments"},
        {"epoch": 0},
        {"epoch": 10**10},
        {"session_id": "x"},
        {"next_id": 0},
        {"next_id": -1},
        {"next_id": 1.5},
        {"queries": {"daily": -1}},
        {"queries": {"daily": "2"}},
        {"queries": []},
    ],
    ids=str,
)
def test_a_foreign_copy_is_none(fields: dict[str, Any]) -> None:
    assert decode(json.dumps({**json.loads(encode(GOOD)), **fields}).encode(), "orders") is None


@given(st.binary() | st.integers(0, len(encode(GOOD)) - 1).map(lambda length: encode(GOOD)[:length]))
def test_hostile_and_truncated_bytes_are_none(data: bytes) -> None:
    assert decode(data, "orders") is None


def test_a_huge_copy_is_none() -> None:
    assert decode(encode(GOOD) + b" " * 70_000, "orders") is None
    assert decode(b"[" * 60_000, "orders") is None


def test_reading_below_another_leaders_directory_is_not_found(led: Place) -> None:
    with pytest.raises(NotFound):
        checkpoints.read(led.direct, "orders", LeaderDirectory(2, B))
