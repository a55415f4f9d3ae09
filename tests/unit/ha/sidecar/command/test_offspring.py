"""What a command has started: a program that works on is named, and what is left is ended, whatever the host lacks."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.sidecar.command import offspring
from ha.sidecar.command.memory import descendants
from ha.sidecar.command.offspring import end_all, end_marked, left_behind
from tests.lacks import no_descriptor_free
from tests.limits import joined, killed
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

pytestmark = pytest.mark.programs

STAYS = [sys.executable, "-c", "import signal; print(flush=True); signal.pause()"]


def test_what_a_killed_guard_has_left_is_waited_for_until_it_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = list[str]()
    monkeypatch.setattr(offspring, "_say", said.append)
    monkeypatch.setattr(offspring, "_ancestors", set)  # of the test: none is marked
    environment = {**os.environ, "HA_BELIEF": f"{tmp_path}/deadline"}
    with killed(subprocess.Popen(STAYS, stdout=subprocess.PIPE, env=environment)) as left:
        assert left.stdout is not None
        left.stdout.readline()
        ends = threading.Thread(target=end_marked, args=[tmp_path])
        with no_descriptor_free():
            ends.start()
            wait_until(lambda: said, what="it says that it waits")
            assert left.poll() is None
        wait_until(lambda: left.poll() is not None, what="its end")
        joined(ends)
    assert said == ["what the command has left is not known yet: [Errno 24] Too many open files: '/proc'."]


def test_those_that_cannot_be_held_at_once_are_ended_one_after_the_other() -> None:
    children = [subprocess.Popen(STAYS, stdout=subprocess.DEVNULL) for _ in range(4)]
    with no_descriptor_free(2):
        end_all(lambda: [each.pid for each in children if each.poll() is None])
    assert all(each.poll() is not None for each in children)


WAITS = "import sys; sys.stdin.read()"
GUARD = """
import ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE)
print(os.getpid(), flush=True)
sys.stdin.read()
child.stdin.close()
child.wait()
"""
PARENT = f"import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', '{WAITS}']).wait()"


@pytest.fixture(params=[WAITS, PARENT], ids=["alone", "with a child"])
def guard(request: pytest.FixtureRequest) -> Iterator[int]:
    """Start a process that has a child, which is a driver's JVM if the test says so in the environment."""
    command = [sys.executable, "-c", GUARD, request.param]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        yield int(process.stdout.readline())
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


def test_each_program_is_named_with_its_number(guard: int) -> None:
    (first, *_) = wait_until(lambda: [each for each in left_behind(guard) if "sys.stdin" in each])
    assert first.startswith(f"'{Path(sys.executable).name} -c ")
    number = first.rpartition("(")[2].rstrip(")")
    assert Path(f"/proc/{number}").exists()


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_PYSPARK_DRIVER_CONN_INFO_PATH", os.devnull)


def test_a_drivers_jvm_and_what_is_below_it_are_left_out(gateway: None, guard: int) -> None:
    del gateway
    child = wait_until(lambda: descendants(guard))[0]
    wait_until(lambda: b"sys.stdin" in Path(f"/proc/{child}/cmdline").read_bytes())
    assert left_behind(guard) == []


def test_one_that_has_ended_is_not_there() -> None:
    assert left_behind(2**22 + 1) == []
