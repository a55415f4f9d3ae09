"""The memory of a command: of all its descendants, and of no other process."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.sidecar.command.memory import descendants, killed_for_memory, memory_of
from tests.limits import HANGS_S, killed

MIB = 2**20
PARENT = """
import subprocess, sys
held = bytearray(int(sys.argv[1]))
held[::4096] = b"x" * len(held[::4096])
child = subprocess.Popen([sys.executable, "-c", sys.argv[2], sys.argv[1]], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
"""
CHILD = """
import os, sys, time
os.setpgid(0, 0)  # as PySpark's daemon does
held = bytearray(int(sys.argv[1]))
held[::4096] = b"x" * len(held[::4096])
if os.fork():
    print("ready", flush=True)
os.read(0, 1)
"""


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """A process with a child and a grandchild, which take 64 MiB each; the last two share theirs."""
    command = [sys.executable, "-c", PARENT, str(64 * MIB), CHILD]
    with killed(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)) as parent:
        assert parent.stdout is not None
        yield parent.pid, int(parent.stdout.readline())
        parent.communicate(timeout=HANGS_S)


def test_all_that_descend_from_a_process_count_also_in_a_process_group_of_their_own(family: tuple[int, int]) -> None:
    parent, child = family
    found = descendants(parent)
    assert found[0] == child
    assert len(found) == 2
    assert parent not in found
    assert os.getpgid(child) != os.getpgid(parent)
    assert set(found) < set(descendants(os.getpid()))


def test_those_that_the_host_has_no_descriptor_to_look_at_are_not_taken_for_ended(
    family: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "read_text", refused)  # /proc is listed, and then there is none left
    with pytest.raises(OSError, match="Too many open files"):
        descendants(family[0])
    assert memory_of(family[0]) == (0, 0)


def test_what_they_share_counts_once(family: tuple[int, int]) -> None:
    processes, memory = memory_of(family[0])
    assert processes == 2
    assert 64 * MIB <= memory < 120 * MIB


def test_who_is_gone_takes_nothing() -> None:
    with killed(subprocess.Popen([sys.executable, "-c", ""])) as gone:
        gone.wait(HANGS_S)
    assert memory_of(gone.pid) == (0, 0)


@pytest.mark.parametrize(
    ("cgroup", "events", "killed"),
    [
        ("0::/system.slice/ha.service", "low 0\noom 4\noom_kill 3\noom_group_kill 0\n", 3),
        ("0::/", "oom_kill 1\n", 1),
        ("4:memory:/old", "oom_kill 3\n", 0),
        ("0::/gone", None, 0),
        ("0::/", "high 0\n", 0),
    ],
)
def test_what_the_kernel_has_killed_for_memory(tmp_path: Path, cgroup: str, events: str | None, killed: int) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"9:name=systemd:/\n{cgroup}\n")
    place = tmp_path / "cgroups" / cgroup.partition("::/")[2]
    place.mkdir(parents=True)
    if events is not None:
        (place / "memory.events").write_text(events)
    assert killed_for_memory(tmp_path / "proc", tmp_path / "cgroups") == killed
