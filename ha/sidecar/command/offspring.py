"""Offspring: the processes that a command has started on this host, in whatever session, and how they end.

A guard finds them below itself, because it adopts those whose parents have ended. Without the guard they are known by
the path of the deadline file in their environment, which they have from the command.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ha.hosts.held_process import HeldProcess
from ha.sidecar.command.memory import PROC
from store.clock import BOOT_CLOCK, now

MARK = "HA_BELIEF"  # the variable that tells a command its deadline file
END_WITHIN_S = 2.0
LOOK_S = 0.02


def end_all(find: Callable[[], list[int]]) -> None:
    """Kill the processes that ``find`` returns until there are none; name those that are left after some seconds."""
    # Those whose end is not collected yet may be among them.
    end = now() + END_WITHIN_S
    while found := find():
        if now() >= end:
            _tell(found)
            return
        _kill(found, find)
        BOOT_CLOCK.sleep(LOOK_S)


def end_marked(directory: Path) -> None:
    """Kill this user's processes that a sidecar with this directory has started, but no ancestor of this one."""
    mark = os.fsencode(f"{MARK}={directory}/")
    spared = _ancestors()

    def find() -> list[int]:
        numbers = (int(name) for name in os.listdir(PROC) if name.isdecimal())  # noqa: PTH208
        return [pid for pid in numbers if pid not in spared and _is_marked(pid, mark)]

    end_all(find)


def _is_marked(pid: int, mark: bytes) -> bool:
    try:  # that of a process which has ended is empty
        return any(each.startswith(mark) for each in (PROC / f"{pid}" / "environ").read_bytes().split(b"\0"))
    except OSError:
        return False


def _ancestors() -> set[int]:
    found, pid = set[int](), os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            pid = int((PROC / f"{pid}" / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            break
    return found


def _kill(found: list[int], find: Callable[[], list[int]]) -> None:
    processes = {}
    for pid in found:
        with suppress(OSError):  # it has ended
            processes[pid] = HeldProcess(pid)
    again = set(find())  # a number that is not among them may be another process's by now
    for pid, process in processes.items():
        with suppress(OSError):  # it has ended, or may not be killed, which is told at the end
            if pid in again:
                process.kill()
        process.close()


def _tell(pids: list[int]) -> None:
    names = []
    for pid in pids:
        with suppress(OSError):
            names.append(f"{pid} {(PROC / f'{pid}' / 'comm').read_text(errors='replace').strip()!r}")
    with suppress(OSError):  # whoever read it is gone, too
        sys.stderr.write(f"ha: what the command has started cannot be ended, and may still work: {', '.join(names)}.\n")
        sys.stderr.flush()
