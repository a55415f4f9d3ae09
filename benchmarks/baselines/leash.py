"""Program that becomes a command which the kernel kills when its parent ends: ``leash.py PARENT -- COMMAND...``.

A parent-death signal survives ``exec``, so no process is left between the two. This is a program, and not a function
that ``subprocess`` runs after the fork: contenders have threads, and a lock that one of them held would stay locked in
the child for ever. It uses only the standard library, and nothing of this project, so that it starts at once.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
CANNOT_START = 127


def main(arguments: list[str]) -> int:
    """Become the command; return an exit code if that is impossible."""
    parent, command = int(arguments[0]), arguments[arguments.index("--") + 1 :]
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 128 + signal.SIGKILL  # the parent ended before the signal was asked for
    try:
        os.execvp(command[0], command)  # noqa: S606  # the purpose of this program
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}.\n")
        return CANNOT_START


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
