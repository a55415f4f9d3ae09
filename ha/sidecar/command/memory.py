"""The memory that all descendants of a process take, as Linux counts it.

Memory that processes share is divided among them (proportional set size), so forked Python workers count once. Where
that size cannot be read, the resident set is used, which counts shared memory once a process.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ha.hosts.lacks import lacks

PROC = Path("/proc")
KIB = 1024


def memory_of(parent: int) -> tuple[int, int]:
    """Return the number of descendants of a process, without the process itself, and their memory in bytes."""
    # Zeros if the host lacks a descriptor: it is shown to people, and systemd ends a process whose status fails.
    with suppress(OSError):
        found = [memory for pid in descendants(parent) if (memory := _memory(pid)) is not None]
        return len(found), sum(found)
    return 0, 0


def descendants(parent: int) -> list[int]:
    """Return the process ids of all descendants of a process, children first. OSError: they cannot be known now."""
    children: dict[int, list[int]] = {}
    for pid, its_parent in _parents():
        children.setdefault(its_parent, []).append(pid)
    found = list(children.get(parent, ()))
    for pid in found:  # the list grows in this loop
        found += children.get(pid, ())
    return found


def environment_of(pid: int) -> list[bytes]:
    """Return the variables of a process, each as ``<name>=<value>``; those of one that has ended are empty."""
    return (PROC / f"{pid}" / "environ").read_bytes().split(b"\0")


def stat_of(pid: int) -> list[str]:
    """Return what the kernel says of a process after its name: its state, its parent's process id, and more."""
    # The program's name comes first, in brackets, and may contain anything.
    return (PROC / f"{pid}" / "stat").read_text(errors="replace").rpartition(")")[2].split()


def killed_for_memory(proc: Path = PROC, cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many processes of this process's cgroup the kernel has killed for memory, as cgroup v2 counts them."""
    with suppress(OSError, StopIteration, ValueError):
        lines = (proc / "self" / "cgroup").read_text().splitlines()
        place = next(line[3:] for line in lines if line.startswith("0::"))
        events = (cgroups / place.lstrip("/") / "memory.events").read_text().split()
        return int(events[events.index("oom_kill") + 1])
    return 0


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir(PROC):  # noqa: PTH208  # no path object for each process
        if name.isdecimal():
            try:
                yield int(name), int(stat_of(int(name))[1])
            except OSError as error:
                if lacks(error):
                    raise  # else the process has ended meanwhile


def _memory(pid: int) -> int | None:
    """Return the memory in bytes; None if the process has ended."""
    with suppress(OSError):
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * KIB
    with suppress(OSError):
        pages = int((PROC / str(pid) / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return None
