"""Becomes a program that the kernel kills when whoever started it ends: ``python leash.py PARENT -- COMMAND...``.

A parent-death signal survives ``exec``, so nothing is left between the two. It is a program, and not a function that
``subprocess`` runs after the fork: guards have threads, and what these held would be held in the child for ever.
Only the standard library, and nothing of this project, so that it starts at once.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
CANNOT_START = 127


def main(arguments: list[str]) -> int:
    """Become the command; returns what to exit with if that is impossible."""
    parent, command = int(arguments[0]), arguments[arguments.index("--") + 1 :]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 128 + signal.SIGKILL  # it ended before that could be asked for
    try:
        os.execvp(command[0], command)  # noqa: S606  # which is what this is for
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}.\n")
        return CANNOT_START


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
