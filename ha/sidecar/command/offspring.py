"""Offspring: the processes that a command has started on this host, in whatever session, and how they end.

A guard finds them below itself, because it adopts those whose parents have ended. Without the guard they are known by
the path of the deadline file in their environment, which they have from the command. What a command's script has put
into the background is named, for it works for nobody.
"""

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

from ha.hosts.held_process import HeldProcess
from ha.hosts.lacks import lacks, patiently
from ha.sidecar.command.memory import PROC, descendants, environment_of, stat_of
from store.clock import BOOT_CLOCK, now

GATEWAY = b"_PYSPARK_DRIVER_CONN_INFO_PATH="
"""Begins a variable of the JVM that a Python program has started (``pyspark.java_gateway``): it ends after it."""

LONGEST = 60  # letters of a name
REMEDY = "Start the program in the foreground: a script that ends with `exec`, or waits for it, without `&`"

MARK = "HA_BELIEF"  # the variable that tells a command its deadline file
END_WITHIN_S = 2.0
LOOK_S = 0.02


def end_all(find: Callable[[], list[int]]) -> None:
    """Kill the processes that ``find`` returns until there are none; name those that are left after some seconds."""
    # Those whose end is not collected yet may be among them. While they cannot be known nothing else is done: whoever
    # waits for their end would start the command beside them.
    found = patiently(find, LOOK_S, lambda error: _say(f"what the command has left is not known yet: {error}."))
    end = now() + END_WITHIN_S
    while found:
        if now() >= end:
            _tell(found)
            return
        try:
            _kill(found, find)
        except OSError:  # not all of them can be held at once
            patiently(partial(_kill, found[:1], find), LOOK_S)
        BOOT_CLOCK.sleep(LOOK_S)
        found = patiently(find, LOOK_S)


def end_marked(directory: Path) -> None:
    """Kill this user's processes that a sidecar with this directory has started, but no ancestor of this one."""
    mark = os.fsencode(f"{MARK}={directory}/")
    spared = patiently(_ancestors, LOOK_S)

    def find() -> list[int]:
        numbers = (int(name) for name in os.listdir(PROC) if name.isdecimal())  # noqa: PTH208
        return [pid for pid in numbers if pid not in spared and _is_marked(pid, mark)]

    end_all(find)


def _is_marked(pid: int, mark: bytes) -> bool:
    try:  # that of a process which has ended is empty
        return any(each.startswith(mark) for each in environment_of(pid))
    except OSError as error:
        if lacks(error):
            raise
        return False


def _ancestors() -> set[int]:
    found, pid = set[int](), os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        try:
            pid = int(stat_of(pid)[1])
        except OSError as error:
            if lacks(error):
                raise
            break
    return found


def _kill(found: list[int], find: Callable[[], list[int]]) -> None:
    """Kill them if they are still found; OSError: the host lacks the descriptors to hold them."""
    with ExitStack() as held:
        processes = {}
        for pid in found:
            try:
                processes[pid] = held.enter_context(closing(HeldProcess(pid)))
            except OSError as error:
                if lacks(error):
                    raise  # else it has ended
        again = set(find())  # a number that is not among them may be another process's by now
        for pid in again & processes.keys():
            with suppress(OSError):  # it has ended, or may not be killed, which is told at the end
                processes[pid].kill()


def _tell(pids: list[int]) -> None:
    names = []
    for pid in pids:
        with suppress(OSError):
            names.append(f"{pid} {(PROC / f'{pid}' / 'comm').read_text(errors='replace').strip()!r}")
    _say(f"what the command has started cannot be ended, and may still work: {', '.join(names)}.")


def _say(text: str) -> None:
    with suppress(OSError):  # whoever read it is gone, too
        sys.stderr.write(f"ha: {text}\n")
        sys.stderr.flush()


def tell_left_behind(guard: int, grace: float) -> str:
    """Tell the sidecar what works on ``grace`` seconds after a command has ended with 0; returns a line for people.

    It is a failure, unless the program has said how it ends. Empty if nothing works on.
    """
    if not (left := left_behind(guard)):
        return ""
    from ha.program import end_file  # noqa: PLC0415  # a guard is to stay small, and few come here

    said = f"it left programs behind, which were ended after {grace:g} s: {', '.join(left)}."
    report = os.environ.get("HA_QUERIES")
    if report and (not end_file.of(Path(report)).exists() or end_file.told(Path(report)).inside):
        end_file.tell(end_file.End(said, REMEDY))
    return f"ha: the command has ended with 0, but {said} {REMEDY}.\n"


def left_behind(guard: int) -> list[str]:
    """Return the programs below a guard that still work, without the command's own JVM and what is below that."""
    found = descendants(guard)  # first: what a JVM starts meanwhile is none of them
    cleaning = [pid for pid in found if _parent(pid) == guard and _is_gateway(pid)]
    spared = {*cleaning, *(below for pid in cleaning for below in descendants(pid))}
    return [name for pid in found if pid not in spared and (name := _name(pid))]


def _parent(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):  # it has ended
        return int(stat_of(pid)[1])
    return -1


def _is_gateway(pid: int) -> bool:
    with suppress(OSError):
        return any(each.startswith(GATEWAY) for each in environment_of(pid))
    return False


def _name(pid: int) -> str:
    """Return a process's program without its folder, its words and its number; nothing if it has ended."""
    with suppress(OSError, IndexError):
        program, *words = os.fsdecode((PROC / f"{pid}" / "cmdline").read_bytes()).rstrip("\0").split("\0")
        if stat_of(pid)[0] not in "ZX" and program:
            return f"{' '.join([os.path.basename(program), *words])[:LONGEST]!r} ({pid})"  # noqa: PTH119
    return ""
