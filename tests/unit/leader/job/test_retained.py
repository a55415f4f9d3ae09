"""Retained checkpoints: under any faults, a new one exists before the oldest is dropped."""

import random
from collections import deque

import pytest

from leader.errors import Fenced, InvalidName
from leader.job import checkpoints as hand_module
from leader.job.checkpoints import ATTEMPTS, Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout import checkpoint_list
from leader.layout.checkpoint import MAX_ID, Checkpoint, Metadata
from leader.layout.names import RETAINED, LeaderDirectory
from store.bounded import BoundedFiles
from store.counting import REQUESTS, CountedFiles
from store.errors import NotWritable, StoreError, Unknown
from tests.unit.leader.faulty import DROPPED, LATE, LOST, OK, REFUSED, Place
from tests.unit.leader.samples import A, B

DIRECTORY, NEXT = LeaderDirectory(1, A), LeaderDirectory(2, B)
HOME = f"orders/{DIRECTORY.name}/checkpoints"
METADATA = Metadata(850, 7, 20, 4096, "orders=12")


def hand(place: Place, retained: int, directory: LeaderDirectory = DIRECTORY, *, done: int = 0) -> Checkpoints:
    made = Checkpoints(FencedDirectory(place.files, "orders", directory, 10.0), retained=retained)
    for batch in range(done):
        made.completed("daily", batch)
    return made


def entries(place: Place) -> list[str]:
    return [name for name in place.names(HOME) if not name.startswith("next=")]


def batches(checkpoints: Checkpoints) -> list[int]:
    return [each.batch for each in checkpoints.retained("daily")]


def test_the_newest_checkpoints_are_retained_with_their_metadata(led: Place) -> None:
    ids = hand(led, 3)
    for batch in range(8):
        ids.completed("daily", batch, Metadata(rows=batch))
        assert batches(ids) == list(range(max(0, batch - 2), batch + 1))
    assert ids.retained("daily") == [Checkpoint("daily", batch, batch + 1, Metadata(rows=batch)) for batch in (5, 6, 7)]
    assert ids.latest("daily") == Checkpoint("daily", 7, 8, Metadata(rows=7))
    assert ids.latest("hourly") is None


def test_ten_checkpoints_are_retained_by_default(led: Place) -> None:
    ids = Checkpoints(FencedDirectory(led.files, "orders", DIRECTORY, 10.0))
    for batch in range(RETAINED + 5):
        ids.completed("daily", batch)
    assert len(ids.retained("daily")) == RETAINED == 10


def test_each_query_retains_its_own_checkpoints(led: Place) -> None:
    ids = hand(led, 2)
    ids.completed("hourly", 1)
    for batch in range(5):
        ids.completed("daily", batch)
    assert [each.batch for each in ids.retained("hourly")] == [1]
    assert batches(ids) == [3, 4]


def test_the_number_of_queries_is_limited(led: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_module, "MOST_QUERIES", 3)
    ids = hand(led, 2)
    for number in range(3):
        ids.completed(f"query-{number}", 0)
    before = led.names(HOME)
    with pytest.raises(InvalidName, match="has checkpoints of 3 queries, and those of 'query-3' are too many"):
        ids.completed("query-3", 0)
    assert led.names(HOME) == before, "nor does it take an id"
    assert ids.completed("query-0", 1).queries["query-0"] == 1


@pytest.mark.parametrize("retained", [1, 2])
def test_adding_and_dropping_is_one_step(led: Place, retained: int) -> None:
    """A crash comes before it or after it. At no time are there fewer checkpoints than should be retained."""
    ids = hand(led, retained, done=retained)
    before, seen = entries(led), deque[list[str]]()

    def note_before_the_second() -> None:
        led.faulty.before_change = lambda: seen.append(entries(led))

    led.faulty.before_change = note_before_the_second  # the first change is the counter's
    ids.completed("daily", retained)
    assert list(seen) == [before]
    assert len(entries(led)) == len(before) == retained
    assert len(set(entries(led)) & set(before)) == retained - 1


@pytest.mark.parametrize("retained", [1, 2, 3])
@pytest.mark.parametrize("changes", range(1, 14))
def test_a_crash_after_any_change_leaves_all_retained_checkpoints(led: Place, retained: int, changes: int) -> None:
    first, acknowledged = hand(led, retained), changes // 2 - 1  # each batch takes two
    led.faulty.fates.extend([*[OK] * changes, *[DROPPED] * ATTEMPTS])
    for batch in range(acknowledged + 1):
        first.completed("daily", batch, METADATA)
    with pytest.raises(Unknown):
        first.completed("daily", acknowledged + 1, METADATA)
    led.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{NEXT.name}")
    second = hand(led, retained, NEXT)
    assert batches(second) == list(range(max(0, acknowledged - retained + 1), acknowledged + 1))
    second.completed("daily", acknowledged + 1)
    found = second.retained("daily")
    assert len({each.id for each in found}) == len(found) == min(retained, acknowledged + 2)


def test_a_refusal_drops_nothing(led: Place) -> None:
    ids = hand(led, 2, done=2)
    before = entries(led)
    led.faulty.fates.extend([OK, REFUSED])
    with pytest.raises(NotWritable):
        ids.completed("daily", 2)
    assert entries(led) == before


def test_in_steady_state_a_batch_costs_two_requests(led: Place) -> None:
    ids = hand(led, 3, done=3)
    asked: list[str] = []
    counted = CountedFiles(led.direct, REQUESTS["hdfs"], lambda operation, _: asked.append(operation))
    with BoundedFiles(lambda: counted) as files:
        ids = Checkpoints(FencedDirectory(files, "orders", DIRECTORY, 10.0), retained=3)
        ids.completed("daily", 3)  # the first time it looks
        asked.clear()
        for batch in range(4, 9):
            ids.completed("daily", batch, METADATA)
    assert asked == ["rename", "rename"] * 5


def test_a_lower_limit_drops_the_oldest(led: Place) -> None:
    hand(led, 5, done=5)
    few = hand(led, 2)
    few.completed("daily", 5)
    assert batches(few) == [4, 5]
    assert len(entries(led)) == 2


def test_a_higher_limit_retains_more(led: Place) -> None:
    few = hand(led, 1)
    few.completed("daily", 0)
    more = hand(led, 3)
    for batch in range(1, 6):
        more.completed("daily", batch)
    assert batches(more) == [3, 4, 5]


def test_a_failed_deletion_is_repeated_with_the_next_batch(led: Place) -> None:
    hand(led, 4, done=4)
    few = hand(led, 2)
    delete, refused = led.faulty.delete, deque([True])

    def refuse_once(path: str, *, recursive: bool = False) -> None:
        if refused:
            refused.pop()
            raise NotWritable("Safe mode.")
        delete(path, recursive=recursive)

    led.faulty.delete = refuse_once  # type: ignore[method-assign]
    assert few.completed("daily", 4).queries == {"daily": 4}, "the new one counts all the same"
    assert batches(few) == [1, 2, 3, 4]
    few.completed("daily", 5)
    assert batches(few) == [4, 5]


def test_the_next_leader_drops_nothing_until_it_adds(led: Place) -> None:
    hand(led, 3, done=3)
    led.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{NEXT.name}")
    second = hand(led, 1, NEXT)
    assert batches(second) == [0, 1, 2]
    second.next()
    assert batches(second) == [0, 1, 2]
    second.completed("daily", 3)
    assert batches(second) == [3]


def test_a_fenced_leader_drops_nothing(led: Place) -> None:
    first = hand(led, 2, done=2)
    led.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{NEXT.name}")
    second = hand(led, 2, NEXT)
    with pytest.raises(Fenced):
        first.completed("daily", 2)
    assert batches(second) == [0, 1]


def test_a_late_rename_finds_its_source_gone(led: Place) -> None:
    ids = hand(led, 2, done=2)
    led.faulty.fates.extend([OK, LATE])
    ids.completed("daily", 2)
    after = entries(led)
    led.faulty.catch_up()
    assert entries(led) == after
    assert batches(ids) == [1, 2]


def test_an_entry_that_is_created_late_is_dropped_with_the_next_batch(led: Place) -> None:
    ids = hand(led, 2)
    led.faulty.fates.extend([OK, LATE])
    ids.completed("daily", 0)
    led.faulty.catch_up()
    ids.completed("daily", 1)
    assert len(entries(led)) == 3, "it came when nobody looked"
    ids.state()
    ids.completed("daily", 2)
    assert batches(ids) == [1, 2]
    assert len(entries(led)) == 2


def test_metadata_may_be_added_to_a_published_batch(led: Place) -> None:
    ids = hand(led, 2)
    ids.completed("daily", 4)
    assert ids.completed("daily", 4, METADATA).latest["daily"] == Checkpoint("daily", 4, 1, METADATA)
    assert ids.completed("daily", 4, Metadata(rows=1)).latest["daily"].metadata == METADATA, "it is said once"
    assert ids.retained("daily") == [Checkpoint("daily", 4, 1, METADATA)]


@pytest.mark.parametrize("fate", [LOST, LATE, DROPPED])
def test_metadata_may_be_added_after_a_lost_answer(led: Place, fate: str) -> None:
    ids = hand(led, 2)
    led.faulty.fates.extend([OK, *[fate] * ATTEMPTS])
    with pytest.raises(Unknown):
        ids.completed("daily", 4)
    ids.completed("daily", 4, METADATA)
    led.faulty.catch_up()
    assert ids.retained("daily") == [Checkpoint("daily", 4, 1, METADATA)]


def test_metadata_that_fits_into_no_name_is_tried_once(led: Place) -> None:
    ids = hand(led, 2)
    query, known = "q" * 207, Metadata(MAX_ID, MAX_ID, MAX_ID, MAX_ID)
    for _ in range(2):
        ids.completed(query, 4, known)
    assert entries(led) == [f"{query}=4~1~1~~~~~"]


@pytest.mark.parametrize("retained", [1, 2, 5])
@pytest.mark.parametrize("seed", range(5))
def test_the_newest_stay_and_ids_are_unique_under_any_faults(led: Place, seed: int, retained: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # replayed, not secret
    ids, acknowledged = hand(led, retained), -1
    batch_of: dict[int, int] = {}
    for batch in range(40):
        led.faulty.fates.extend(chance.choices([OK, LOST, LATE, DROPPED, REFUSED], [6, 2, 2, 1, 1], k=4))
        if chance.random() < 0.5:
            led.faulty.before_change = led.faulty.catch_up
        try:
            ids.completed("daily", batch, METADATA)
            acknowledged = batch
        except StoreError:
            if chance.random() < 0.5:
                ids = hand(led, retained)  # another process, which remembers nothing
        led.faulty.fates.clear()
        led.faulty.before_change = None
        if chance.random() < 0.5:
            led.faulty.catch_up()
        found = checkpoint_list.parse(led.names(HOME), "orders", DIRECTORY)
        kept = found.retained("daily")
        assert acknowledged == -1 or kept
        assert max((each.batch for each in kept), default=-1) >= acknowledged
        for each in kept:
            assert batch_of.setdefault(each.id, each.batch) == each.batch
            assert each.id < found.next_id
            assert each.metadata == METADATA
    assert acknowledged > 0
