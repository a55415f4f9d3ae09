"""A process that is waited for, or killed, with a pidfd and without one."""

import errno
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from ha.hosts.held_process import HeldProcess, ending_of
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

Process = subprocess.Popen[bytes]


@pytest.fixture(params=[None, errno.ENOSYS, errno.EPERM], ids=["pidfd", "ENOSYS", "EPERM"], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(pid: int, flags: int = 0) -> int:
        del pid, flags
        raise OSError(request.param, os.strerror(request.param))

    if request.param is not None:
        monkeypatch.setattr(os, "pidfd_open", refuses)


@pytest.fixture
def process() -> Iterator[Process]:
    made = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    with made:
        yield made
        made.kill()


def test_its_end_is_told_before_it_is_collected(process: Process) -> None:
    ended = ending_of(process.pid)
    assert select.select([ended], [], [], 0.1)[0] == []
    process.kill()
    assert select.select([ended], [], [], PATIENCE_S)[0] == [ended]
    os.close(ended)


def test_one_that_is_not_there_is_no_process() -> None:
    with pytest.raises(ProcessLookupError):
        ending_of(2**22 + 1)
    with pytest.raises(ProcessLookupError):
        HeldProcess(2**22 + 1)


def test_it_is_killed_once_and_nobody_else(process: Process) -> None:
    held = HeldProcess(process.pid)
    held.kill()
    assert process.wait(PATIENCE_S) == -9
    with pytest.raises(ProcessLookupError):
        held.kill()
    held.close()


def test_nothing_waits_on_once_nobody_listens(process: Process) -> None:
    def looking() -> int:
        return sum(each.name == "ha-ending" for each in threading.enumerate())

    before = looking()
    os.close(ending_of(process.pid))
    wait_until(lambda: looking() <= before)
