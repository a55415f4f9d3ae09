"""Nothing in tests and benchmarks waits without end."""

import subprocess
import sys
import threading

import pytest

from tests.limits import at_most, joined, killed

STAYS = [sys.executable, "-c", "import signal; print('here', flush=True); signal.pause()"]


def stays() -> "subprocess.Popen[str]":
    return subprocess.Popen(STAYS, stdout=subprocess.PIPE, text=True)


@pytest.mark.programs
def test_a_process_ends_with_its_block_whatever_happens_in_it() -> None:
    process = stays()
    with pytest.raises(ZeroDivisionError), killed(process):
        raise ZeroDivisionError
    assert process.returncode == -9


@pytest.mark.programs
def test_what_waits_for_a_process_goes_on_when_that_hangs() -> None:
    with killed(stays(), limit_s=2) as process:
        assert process.stdout is not None
        assert process.stdout.read() in {"here\n", ""}  # without end, but for the kill
        assert process.wait(60) == -9


def test_a_block_that_ends_in_time_is_left_alone() -> None:
    ended, threads = threading.Event(), threading.active_count()
    with at_most(3600, ended.set):
        pass
    assert not ended.is_set()
    assert threading.active_count() == threads


def test_a_thread_that_hangs_is_named() -> None:
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait, args=(60,), name="slow one")
    thread.start()
    with pytest.raises(AssertionError, match="The thread slow one hangs"):
        joined(thread, limit_s=0.01)
    go_on.set()
    joined(thread)
