"""The sidecar's watch of a driver's heartbeat, with a test's own time: what hangs, and what does not."""

from pathlib import Path

import pytest

from ha.sidecar.heartbeat import LONGEST_LOOK_S, Beat, Watch, read

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
    assert read(file) is None
    file.write_bytes(b'{"count":3,"python":4,"jvm":5}')
    assert read(file) == Beat(3, 4, 5)
    file.write_bytes(b"\xff")
    assert read(file) is None
