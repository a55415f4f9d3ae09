"""Runs a command where the kernel has no pidfds, as on RHEL 8 or behind an older profile: a real filter of seccomp.

Run it as ``python tests/unit/ha/without_pidfds.py ERRNO COMMAND...``.
"""

import ctypes
import os
import struct
import sys

PIDFD_OPEN, PIDFD_SEND_SIGNAL = 434, 424  # on each architecture
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # of the number of the call, which comes first; Linux's filter.rst
REFUSE, ALLOW = 0x0005_0000, 0x7FFF_0000


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def refuse(number: int) -> None:
    """Have both calls refused with an error of that number, in this process and in all that it starts."""
    steps = b"".join(
        struct.pack("HBBI", *step)
        for step in (
            (LOAD, 0, 0, 0),
            (EQUAL, 1, 0, PIDFD_OPEN),
            (EQUAL, 0, 1, PIDFD_SEND_SIGNAL),
            (RETURN, 0, 0, REFUSE | number),
            (RETURN, 0, 0, ALLOW),
        )
    )
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(steps) // 8, steps)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "this kernel takes no filter of calls")


if __name__ == "__main__":
    refuse(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606
