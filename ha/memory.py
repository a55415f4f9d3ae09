"""How much memory a process's children take, with all theirs: as Linux counts it.

What several processes share is divided among them (proportional set size), so forked Python workers are not counted
as often as there are of them. Where that may not be read, the resident set is taken, which counts it again and again.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
KIB = 1024


def memory_of(parent: int) -> tuple[int, int]:
    """Return how many processes descend from this one, itself left out, and their memory in bytes."""
    found = [memory for pid in descendants(parent) if (memory := _memory(pid)) is not None]
    return len(found), sum(found)


def descendants(parent: int) -> list[int]:
    """Return the process ids of all that descend from this one, nearest first."""
    children: dict[int, list[int]] = {}
    for pid, its_parent in _parents():
        children.setdefault(its_parent, []).append(pid)
    found = list(children.get(parent, ()))
    for pid in found:  # grows meanwhile
        found += children.get(pid, ())
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for name in os.listdir(PROC):  # noqa: PTH208  # a path for each process would be made for nothing
        if name.isdecimal():
            with suppress(OSError):  # it has ended meanwhile
                # The program's name comes before, in brackets, and may hold anything.
                yield int(name), int((PROC / name / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])


def _memory(pid: int) -> int | None:
    """Bytes; None if it has ended."""
    with suppress(OSError):
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * KIB
    with suppress(OSError):
        pages = int((PROC / str(pid) / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return None
