"""Lacks: tells what a host may have again in a moment (processes, threads, descriptors, room) from other errors.

This module uses the standard library alone: the guard imports it, and stays small.
"""

import errno
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LACKS = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT})
SAID = ("can't start new thread", "failed to map segment")  # by Python, and by the loader of a library


def lacks(error: Exception) -> bool:
    """Whether the host lacks something of that kind."""
    if isinstance(error, OSError):
        return error.errno in LACKS
    return isinstance(error, MemoryError) or any(each in f"{error}" for each in SAID)


def patiently(do: Callable[[], T], pause: float, say: Callable[[Exception], object] | None = None) -> T:
    """Return what a function returns, which is called again while the host lacks what it needs; that is said once."""
    while True:
        try:
            return do()
        except Exception as error:
            if not lacks(error):
                raise
            if say is not None:
                say(error)
                say = None
        time.sleep(pause)
