"""Arrivals: who waits for a snapshot is woken when it is replaced, and only then."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.agent import finder
from ha.agent.finder import Arrivals, names, watch
from ha.config.snapshot_dir import LEADER
from tests.lacks import no_thread_free
from tests.unit.ha.waiting import wait_until


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "AGAIN_S", 0.02)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "snapshots"
    made.mkdir()
    return made


class Waiting:
    def __init__(self, arrived: Arrivals, job: str = "orders") -> None:
        self._arrived, self._job = arrived, job
        self.changed = threading.Event()
        arrived.subscribe(job, self.changed)

    def leave(self) -> None:
        self._arrived.unsubscribe(self._job, self.changed)


@pytest.fixture
def waiting(place: Path) -> Iterator[Waiting]:
    made = Waiting(Arrivals(place))
    yield made
    made.leave()


def replace(place: Path, name: str) -> None:
    staged = place / ".staged"
    staged.write_text("x")
    staged.replace(place / name)


def replace_until(place: Path, *changed: threading.Event) -> None:
    """Replace the snapshot until it is reported: the thread may still be starting."""

    def reported() -> bool:
        replace(place, f"{LEADER}orders")
        return all(each.wait(0.01) for each in changed)

    wait_until(reported)


def runs() -> bool:
    return any(thread.name == "ha-arrivals" for thread in threading.enumerate())


def test_all_that_wait_for_the_job_are_woken_and_nobody_else(place: Path) -> None:
    arrived = Arrivals(place)
    two, other = [Waiting(arrived), Waiting(arrived)], Waiting(arrived, "payments")
    replace_until(place, *(each.changed for each in two))
    replace(place, "want-payments")
    (place / f"{LEADER}payments").touch()  # made, and not moved there
    two[0].changed.clear()
    replace_until(place, two[0].changed)
    assert not other.changed.is_set()
    for each in (*two, other):
        each.leave()


@pytest.mark.usefixtures("quick")
def test_a_directory_that_is_made_later_or_replaced_is_found(place: Path) -> None:
    place.rename(place.with_name("away"))
    waits = Waiting(Arrivals(place))
    for _ in range(2):
        place.mkdir()
        replace_until(place, waits.changed)
        waits.changed.clear()
        place.rename(place.with_name(f"old-{os.urandom(4).hex()}"))
    waits.leave()


@pytest.mark.usefixtures("quick")
def test_the_thread_ends_with_the_last_that_waits_and_begins_anew(place: Path) -> None:
    arrived = Arrivals(place)
    for _ in range(2):
        one, other = Waiting(arrived), Waiting(arrived)
        one.leave()
        replace_until(place, other.changed)
        assert not one.changed.is_set()
        other.leave()
        other.leave()
        wait_until(lambda: not runs())


def test_a_forked_child_begins_anew(place: Path, waiting: Waiting) -> None:
    replace_until(place, waiting.changed)
    child = os.fork()
    if child == 0:
        try:
            own = Waiting(waiting._arrived)
            replace_until(place, own.changed)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_reports_that_were_lost_have_the_directory_watched_anew(place: Path) -> None:
    overflow = finder._EVENT.pack(-1, 0x4000, 0, 0)
    moved = finder._EVENT.pack(1, finder.IN_MOVED_TO, 0, 16) + b"leader-orders".ljust(16, b"\0")
    assert names(moved + moved) == (["leader-orders"] * 2, True)
    assert names(moved + overflow) == (["leader-orders"], False)
    assert watch(place / "missing") == -1


@pytest.mark.usefixtures("quick")
def test_without_a_free_thread_the_next_one_that_waits_begins_for_all(place: Path) -> None:
    arrived = Arrivals(place)
    with no_thread_free():
        first = Waiting(arrived)
    second = Waiting(arrived)
    replace_until(place, first.changed, second.changed)
    first.leave()
    second.leave()
