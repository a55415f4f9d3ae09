"""The sidecar's watch of a driver's heartbeat, with a test's own time: what hangs, and what does not."""

import os
import signal
from pathlib import Path

import pytest

from ha.program.heartbeat import LONGEST_LOOK_S, Beat, Heartbeat, Watch, newest
from tests.lacks import fill, small_disk
from tests.unit.ha.waiting import wait_until

TIMEOUT = 5.0


@pytest.fixture
def watch() -> Watch:
    made = Watch(TIMEOUT)
    assert not made.hangs(100.0, Beat(1))
    return made


def test_a_driver_hangs_once_its_silence_is_as_long_as_the_time_out(watch: Watch) -> None:
    assert [watch.hangs(100.0 + second, Beat(1)) for second in range(1, 7)] == [False] * 4 + [True] * 2


def test_a_beat_begins_the_silence_anew(watch: Watch) -> None:
    for second in range(1, 20):
        assert not watch.hangs(100.0 + second, Beat(1 + second // 4))
    assert [watch.hangs(119.0 + second, Beat(5)) for second in (1, 2)] == [False, True]


def test_a_program_that_never_beats_is_not_watched() -> None:
    watch = Watch(TIMEOUT)
    assert not any(watch.hangs(float(second), None) for second in range(100))


def test_a_program_that_has_left_its_block_is_not_watched(watch: Watch) -> None:
    assert not watch.hangs(104.0, Beat(1))
    assert not any(watch.hangs(104.0 + second, None) for second in range(1, 100))


def test_nothing_hangs_when_it_is_switched_off() -> None:
    watch = Watch(0.0)
    assert not any(watch.hangs(float(second), Beat(1)) for second in range(100))


def test_a_pause_of_the_sidecar_does_not_count(watch: Watch) -> None:
    for second in range(1, 5):
        assert not watch.hangs(100.0 + second, Beat(1))
    assert not watch.hangs(500.0, Beat(1)), "the driver may have been paused with it"
    assert watch.hangs(501.0, Beat(1)), "but what came before the pause counts"


def test_a_look_just_as_late_as_allowed_counts(watch: Watch) -> None:
    assert not watch.hangs(100.0 + LONGEST_LOOK_S, Beat(1))
    assert watch.silence == LONGEST_LOOK_S
    assert not watch.hangs(100.1 + 2 * LONGEST_LOOK_S, Beat(1))
    assert watch.silence == LONGEST_LOOK_S


def test_a_damaged_file_is_no_beat(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    assert newest(file) is None
    file.write_bytes(b'{"count":3,"python":4,"jvm":5}')
    assert newest(file) == Beat(3, 4, 5)
    file.write_bytes(b"\xff")
    assert newest(file) is None


@pytest.mark.parametrize(("timeout", "interval"), [(5.0, 1.0), (50.0, 10.0), (600.0, 10.0)])
def test_a_time_out_has_room_for_five_beats_and_none_is_later_than_flinks(
    tmp_path: Path, timeout: float, interval: float
) -> None:
    assert Heartbeat(tmp_path / "heartbeat", timeout, 0, bool)._interval == interval


def count(file: Path) -> int:
    beat = newest(file)
    return beat.count if beat is not None else 0


@pytest.fixture
def no_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave this process's signal as it is, as in a program that handles it itself."""
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)


@pytest.mark.usefixtures("no_stacks")
def test_a_driver_on_a_disk_that_is_full_beats_on(tmp_path: Path) -> None:
    """It would be taken for one that hangs, and killed."""
    file = tmp_path / "heartbeat"
    with small_disk(tmp_path), Heartbeat(file, 0.1, 7, bool):
        before = wait_until(lambda: count(file), what="the first beat")
        fill(tmp_path / "rest")
        wait_until(lambda: count(file) > before + 1, what="beats")


@pytest.mark.usefixtures("no_stacks")
def test_a_beat_is_to_be_found_where_it_was_looked_for(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    with Heartbeat(file, 0.1, 7, bool):
        wait_until(lambda: count(file), what="the first beat")
        file.unlink()
        beat = wait_until(lambda: newest(file), what="another one")
    assert beat == Beat(beat.count if beat else 0, os.getpid(), 7)
    assert newest(file) is None
