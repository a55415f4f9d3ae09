"""The checkpoint counter and the published checkpoints: numbers as numbers, and nothing older for want of something."""

from collections.abc import Callable

import pytest

from leader.errors import Fenced, NoLeader, Unreachable
from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout import checkpoint_list
from leader.layout.checkpoint import Checkpoint
from leader.layout.checkpoint_state import CheckpointState, encode
from leader.layout.names import LeaderDirectory
from leader.layout.znodes import checkpoints_path
from leader.lookup.checkpoint_reader import CheckpointReader
from leader.lookup.reader import Reader
from leader.timing import Timing
from store.errors import StoreError
from tests.system.flink_scenarios.copies import Copies
from tests.unit.leader.faulty import LATE, Place
from tests.unit.leader.samples import A, B

DIRECTORY, NEXT = LeaderDirectory(1, A), LeaderDirectory(2, B)
HOME = f"orders/{DIRECTORY.name}/checkpoints"


def fence(place: Place) -> None:
    place.direct.rename(f"orders/{DIRECTORY.name}", f"orders/{NEXT.name}")


def test_ids_and_batches_are_compared_as_numbers(ids: Checkpoints, led: Place) -> None:
    for batch in (9, 10, 99, 100):
        ids.completed("daily", batch)
    assert [each.batch for each in ids.retained("daily")] == [9, 10, 99, 100]
    led.direct.make_directory(f"{HOME}/next=9")
    led.direct.make_directory(f"{HOME}/next=10")
    found = checkpoint_list.parse(led.names(HOME), "orders", DIRECTORY).state("orders", DIRECTORY)
    assert (found.queries, found.next_id) == ({"daily": 100}, 10)


def test_at_first_nothing_is_complete(ids: Checkpoints) -> None:
    assert ids.state() == CheckpointState("orders", 1, A, 1)
    assert (ids.latest("daily"), ids.retained("daily")) == (None, [])


@pytest.mark.parametrize(
    "change",
    [lambda ids: ids.next(), lambda ids: ids.set(9), lambda ids: ids.completed("daily", 2)],
    ids=["id", "set", "batch"],
)
def test_what_comes_after_the_fence_changes_nothing(
    ids: Checkpoints, led: Place, change: Callable[[Checkpoints], object]
) -> None:
    ids.completed("daily", 1)
    led.faulty.fates.append(LATE)

    def fence_before_the_next_try() -> None:
        led.faulty.before_change = lambda: fence(led)

    led.faulty.before_change = fence_before_the_next_try
    with pytest.raises(Fenced):
        change(ids)
    assert len(led.faulty.late) == 1
    led.faulty.catch_up()
    assert led.names(f"orders/{NEXT.name}/checkpoints") == ["daily=1~1~1~~~~~", "next=2"]


@pytest.fixture
def copies() -> Copies:
    return Copies()


@pytest.fixture
def reader(led: Place, copies: Copies) -> CheckpointReader:
    timing = Timing(short_ttl=0.6, long_ttl=10, session_timeout=2)
    return CheckpointReader(led.files, copies.client, Reader(led.files, copies.client, timing))


def put(copies: Copies, next_id: int, batch: int, directory: LeaderDirectory = DIRECTORY) -> None:
    latest = {"daily": Checkpoint("daily", batch, 1)}
    data = encode(CheckpointState("orders", directory.epoch, directory.session_id, next_id, latest))
    assert data is not None
    copies.nodes[checkpoints_path("orders")] = data


def newest(reader: CheckpointReader) -> tuple[int, int, int]:
    state = reader.checkpoint("orders", 30)
    return state.epoch, state.next_id, state.queries["daily"]


def test_the_copy_is_believed_and_costs_the_file_system_nothing(reader: CheckpointReader, copies: Copies) -> None:
    put(copies, 7, 5)
    assert newest(reader) == (1, 7, 5)
    put(copies, 8, 6)
    assert newest(reader) == (1, 8, 6)


@pytest.mark.parametrize(("next_id", "batch"), [(2, 5), (3, 1), (1, 1)])
def test_a_copy_that_is_older_than_what_is_known_is_not_believed(
    reader: CheckpointReader, copies: Copies, ids: Checkpoints, next_id: int, batch: int
) -> None:
    ids.next()
    ids.completed("daily", 5)
    put(copies, 3, 5)
    assert newest(reader) == (1, 3, 5)
    put(copies, next_id, batch)
    assert newest(reader) == (1, 3, 5)


def test_a_dead_leaders_copy_is_not_believed_once_the_next_is_known(
    reader: CheckpointReader, copies: Copies, ids: Checkpoints, led: Place
) -> None:
    ids.completed("daily", 5)
    fence(led)
    Checkpoints(FencedDirectory(led.files, "orders", NEXT, 10.0)).completed("daily", 6)
    put(copies, 3, 6, NEXT)
    assert newest(reader) == (2, 3, 6)
    put(copies, 9, 9, DIRECTORY)
    assert newest(reader) == (2, 3, 6)


def test_what_is_unreadable_is_an_error(reader: CheckpointReader, copies: Copies, ids: Checkpoints, led: Place) -> None:
    ids.completed("daily", 5)
    assert newest(reader) == (1, 2, 5)
    led.faulty.unreachable = True
    put(copies, 1, 4)
    with pytest.raises(Unreachable, match="The checkpoints of job 'orders' cannot be read"):
        reader.checkpoint("orders", 30)
    with pytest.raises(StoreError):
        ids.state()


def test_without_a_job_there_are_no_checkpoints(reader: CheckpointReader) -> None:
    with pytest.raises(NoLeader, match="There is no job 'payments'"):
        reader.checkpoint("payments", 30)
