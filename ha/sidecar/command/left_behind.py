"""Left-behind programs: what a command's script has put into the background is named, for it works for nobody."""

import os
from contextlib import suppress
from pathlib import Path

from ha.program import end_file
from ha.sidecar.command.memory import PROC, descendants, environment_of, stat_of

GATEWAY = b"_PYSPARK_DRIVER_CONN_INFO_PATH="
"""Begins a variable of the JVM that a Python program has started (``pyspark.java_gateway``): it ends after it."""

LONGEST = 60  # letters of a name
REMEDY = "Start the program in the foreground: a script that ends with `exec`, or waits for it, without `&`"


def told(guard: int, grace: float) -> str:
    """Tell the sidecar what works on ``grace`` seconds after a command has ended with 0; returns a line for people.

    It is a failure, unless the program has said how it ends. Empty if nothing works on.
    """
    if not (left := left_behind(guard)):
        return ""
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
