"""Background: how a sidecar's children that nobody waits for behave: last in line, and gone with their parent."""

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1


def in_background() -> None:
    """Give this process the lowest priority, and have it killed when its parent ends; for ``preexec_fn``."""
    os.nice(19)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
