"""What a command has left behind: a program that works on, and no JVM that only cleans up."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.sidecar.command.left_behind import left_behind
from ha.sidecar.command.memory import descendants
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

pytestmark = pytest.mark.programs

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
