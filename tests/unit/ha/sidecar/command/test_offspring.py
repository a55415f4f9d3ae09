"""The rest of a command, on a host that has no descriptor left: nobody takes it for ended."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ha.sidecar.command import offspring
from ha.sidecar.command.offspring import end_all, end_marked
from tests.lacks import no_descriptor_free
from tests.limits import joined, killed
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
