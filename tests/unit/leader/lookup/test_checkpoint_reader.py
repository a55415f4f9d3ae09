"""CheckpointReader: its answers never go back, although a NameNode may forget listed changes."""

import pytest

from leader.errors import NoLeader, Unreadable
from leader.layout import tree as job
from leader.layout.checkpoint import Checkpoint, Metadata
from leader.layout.names import HISTORY, LeaderDirectory
from leader.layout.tree import NOBODY
from leader.lookup.checkpoint_reader import CheckpointReader
from leader.lookup.reader import Reader
from leader.timing import Timing
from tests.unit.leader.faulty import Place
from tests.unit.leader.samples import A, B, C

FIRST, SECOND = LeaderDirectory(1, A), LeaderDirectory(2, B)


class Shown:
    """A job whose names the test sets to those that the present NameNode knows."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._directory = LeaderDirectory(0, NOBODY)
        self._entries = ["next=1"]
        self.reader = CheckpointReader(place.files, None, Reader(place.files, None, Timing()))
        job.create(place.direct, "orders")

    def show(self, directory: LeaderDirectory, *entries: str) -> None:
        files = self._place.direct
        if directory != self._directory:
            files.rename(f"orders/{self._directory.name}", f"orders/{directory.name}")
        home = f"orders/{directory.name}/checkpoints"
        for entry in self._entries:
            files.delete(f"{home}/{entry}")
        for entry in entries:
            files.make_directory(f"{home}/{entry}")
        self._directory, self._entries = directory, list(entries)

    def remember(self, directory: LeaderDirectory) -> None:
        """Write a leadership into the history, which a claim takes along."""
        self._place.direct.make_directory(f"orders/{self._directory.name}/{HISTORY}/{directory.name}~released~a")

    def told(self) -> tuple[int, int, dict[str, int]]:
        state = self.reader.checkpoint("orders")
        return state.epoch, state.next_id, state.queries


@pytest.fixture
def shown(place: Place) -> Shown:
    return Shown(place)


def test_a_forgotten_batch_stays_known(shown: Shown) -> None:
    shown.show(FIRST, "next=9", "daily=4~1~1~~~~~", "hourly=7~1~1~~~~~")
    assert shown.told() == (1, 9, {"daily": 4, "hourly": 7})
    shown.show(FIRST, "next=8", "daily=3~1~2~~~~~", "weekly=0~1~1~~~~~")
    assert shown.told() == (1, 9, {"daily": 4, "hourly": 7, "weekly": 0})
    shown.show(SECOND, "next=10", "daily=3~1~1~~~~~")
    assert shown.told() == (2, 10, {"daily": 4, "hourly": 7, "weekly": 0})


def test_a_forgotten_claim_leaves_the_known_checkpoints(shown: Shown) -> None:
    shown.show(FIRST, "next=8", "daily=3~1~1~~~~~")
    shown.told()
    shown.show(SECOND, "next=9", "daily=4~1~1~~~~~")
    shown.told()
    shown.show(FIRST, "next=8", "daily=3~1~1~~~~~")
    assert shown.told() == (1, 9, {"daily": 4})


@pytest.mark.parametrize("epoch", [1, 2])
def test_another_claim_after_a_forgotten_one_leaves_them_as_well(shown: Shown, epoch: int) -> None:
    """The reader has seen neither that claim's session nor, many times, any other than the one before."""
    for _ in range(5):
        shown.show(FIRST, "next=8", "daily=3~1~1~~~~~")
        shown.told()
    shown.remember(FIRST)
    shown.show(SECOND, "next=9", "daily=4~1~1~~~~~")
    shown.told()
    shown.show(LeaderDirectory(epoch, C), "next=8", "daily=3~1~1~~~~~", "hourly=0~1~1~~~~~")
    assert shown.told() == (epoch, 9, {"daily": 4, "hourly": 0})


@pytest.mark.parametrize("epoch", [1, 2])
def test_another_job_of_the_same_name_begins_anew(shown: Shown, epoch: int) -> None:
    """Somebody has deleted the job's directory, and started it again."""
    shown.show(LeaderDirectory(2, A), "next=9", "daily=4~1~1~~~~~")
    shown.told()
    shown.show(LeaderDirectory(epoch, B), "next=2")
    assert shown.told() == (epoch, 2, {})


def test_a_checkpoint_comes_with_its_metadata(shown: Shown) -> None:
    shown.show(FIRST, "next=9", "daily=3~7~1~~~~~", "daily=4~8~1~850~7~20~4096~orders_3d12")
    told = shown.reader.checkpoint("orders").latest["daily"]
    assert told == Checkpoint("daily", 4, 8, Metadata(850, 7, 20, 4096, "orders=12"))


def test_all_retained_checkpoints_are_read_from_the_file_system(shown: Shown) -> None:
    shown.show(FIRST, "next=9", "daily=10~8~1~~~~~", "daily=9~7~1~~~~~", "daily=10~8~2~~~~~", "hourly=3~2~1~~~~~")
    retained = shown.reader.retained("orders")
    assert retained == {
        "daily": [Checkpoint("daily", 9, 7), Checkpoint("daily", 10, 8)],
        "hourly": [Checkpoint("hourly", 3, 2)],
    }
    with pytest.raises(NoLeader):
        shown.reader.retained("payments")


def test_readers_skip_no_unreadable_checkpoint(shown: Shown) -> None:
    shown.show(FIRST, "next=9", "daily=4", "daily=3~7~1~~~~~")
    for ask in (shown.reader.checkpoint, shown.reader.retained):
        with pytest.raises(Unreadable, match="'daily=4' among the checkpoints of job 'orders' cannot be read"):
            ask("orders")
