"""The memory that all descendants of a process take, as Linux counts it.

Memory that processes share is divided among them (proportional set size), so that the memory of forked Python workers
is counted once. Where that size cannot be read, the resident set is used, which counts shared memory once a process.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
KIB = 1024


def memory_of(parent: int) -> tuple[int, int]:
    """Return the number of descendants of a process, without the process itself, and their memory in bytes."""
    found = [memory for pid in descendants(parent) if (memory := _memory(pid)) is not None]
    return len(found), sum(found)


def descendants(parent: int) -> list[int]:
    """Return the process ids of all descendants of a process, children first."""
    children: dict[int, list[int]] = {}
    for pid, its_parent in _parents():
        children.setdefault(its_parent, []).append(pid)
    found = list(children.get(parent, ()))
    for pid in found:  # the list grows in this loop
        found += children.get(pid, ())
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir(PROC):  # noqa: PTH208  # no path object for each process
        if name.isdecimal():
            with suppress(OSError):  # the process has ended meanwhile
                # The program's name comes first, in brackets, and may contain anything.
                yield int(name), int((PROC / name / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])


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
