"""Tests of process identity: only the very same process is seen, signalled or killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ha.sandbox.server_process import Identity, condition, send, spawn, wait_gone
from tests.limits import HANGS_S, killed
from tests.unit.ha.waiting import wait_until

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Identity]:
    identity = spawn(SLEEPER, os.environ, tmp_path / "log")
    yield identity
    send(identity, signal.SIGKILL)
    assert wait_gone(identity, 10)


def test_it_is_up_paused_up_and_down(sleeper: Identity) -> None:
    assert condition(sleeper) == "up"
    assert send(sleeper, signal.SIGSTOP)
    wait_until(lambda: condition(sleeper) == "paused")
    assert not wait_gone(sleeper, 0.01)
    assert send(sleeper, signal.SIGCONT)
    assert send(sleeper, signal.SIGKILL)
    assert wait_gone(sleeper, 10)
    assert condition(sleeper) == "down"
    assert not send(sleeper, signal.SIGTERM)


def test_it_lives_in_a_session_of_its_own(sleeper: Identity) -> None:
    assert os.getsid(sleeper.pid) == sleeper.pid


def test_its_output_goes_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")
    ended = spawn(["/bin/sh", "-c", "echo out; echo err >&2"], os.environ, log)
    assert wait_gone(ended, 10)
    assert log.read_text() == "before\nout\nerr\n"


@pytest.mark.parametrize("change", [{"started": 1}, {"boot": "another boot"}])
def test_another_process_with_the_same_pid_is_left_alone(sleeper: Identity, change: dict[str, object]) -> None:
    former = msgspec.structs.replace(sleeper, **change)
    assert condition(former) == "down"
    assert not send(former, signal.SIGKILL)
    assert wait_gone(former, 10)
    assert condition(sleeper) == "up"


def test_a_dead_child_of_somebody_else_in_this_process_is_not_reaped(tmp_path: Path) -> None:
    with killed(subprocess.Popen(["/bin/sh", "-c", "exit 7"])) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        former = Identity(pid=child.pid, started=1, boot=spawn(["/bin/true"], {}, tmp_path / "log").boot)
        assert condition(former) == "down"
        assert child.wait(HANGS_S) == 7


def test_no_process_is_down() -> None:
    assert condition(None) == "down"
    assert not send(None, signal.SIGKILL)
    assert wait_gone(None, 10)
