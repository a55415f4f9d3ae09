"""Ends of threads and processes that are waited for with a limit: it says that something hangs, never that it is slow.

A test's own limit is an alarm in the test itself. No fixture has one, and what a ``with`` waits for after the alarm has
none any more.
"""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import AnyStr

HANGS_S = 300.0


def joined(*threads: threading.Thread, limit_s: float = HANGS_S) -> None:
    """Wait until these threads have ended."""
    for each in threads:
        each.join(limit_s)
        assert not each.is_alive(), f"The thread {each.name} hangs."


@contextmanager
def at_most(limit_s: float, end: Callable[[], object]) -> Iterator[None]:
    """Call ``end`` on another thread if the block takes longer: it ends what the block waits for."""
    overdue = threading.Timer(limit_s, end)
    overdue.daemon = True
    overdue.start()
    try:
        yield
    finally:
        overdue.cancel()
        joined(overdue)


@contextmanager
def killed(process: "subprocess.Popen[AnyStr]", limit_s: float = HANGS_S) -> Iterator["subprocess.Popen[AnyStr]"]:
    """Kill the process at the end of the block, and in it after so many seconds: then what waits for it goes on.

    ``with Popen(...)`` alone waits at its end for whatever the process does, also if the block has failed.
    """
    with process, at_most(limit_s, process.kill):
        try:
            yield process
        finally:
            process.kill()
