"""Lacks: tells what a host may have again in a moment (processes, threads, descriptors, room) from other errors.

This module uses the standard library alone: the guard imports it, and stays small.
"""

import errno

LACKS = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT})


def lacks(error: Exception) -> bool:
    """Whether the host lacks something of that kind."""
    if isinstance(error, OSError):
        return error.errno in LACKS
    return isinstance(error, MemoryError) or "can't start new thread" in f"{error}"
