"""Driver's Python: whether one has joined the JVM that has started it, as ``spark-submit`` does."""

import os
from collections.abc import Iterator
from contextlib import suppress

from ha.sidecar.command.memory import PROC, descendants

GATEWAY = b"PYSPARK_GATEWAY_PORT="  # in the environment of the process that Spark's PythonRunner starts
ESTABLISHED = "01"  # state of a connection, as Linux's tcp_states.h counts


def has_joined() -> bool:
    """Whether a process below this one is connected to the gateway of its JVM. OSError: it cannot be known now."""
    ports = {port for pid in descendants(os.getpid()) if (port := _gateway_of(pid))}
    return bool(ports) and not ports.isdisjoint(_connected())


def _gateway_of(pid: int) -> int:
    with suppress(OSError, ValueError):  # it has ended, or is another's
        for each in (PROC / f"{pid}" / "environ").read_bytes().split(b"\0"):
            if each.startswith(GATEWAY):
                return int(each.removeprefix(GATEWAY))
    return 0


def _connected() -> Iterator[int]:
    """Return the remote ports of the established connections of this host, or container."""
    for family in ("tcp", "tcp6"):
        with suppress(FileNotFoundError):  # a kernel without it
            for line in (PROC / "self" / "net" / family).read_text().splitlines()[1:]:
                _, _, remote, state, *_ = line.split()
                if state == ESTABLISHED:
                    yield int(remote.rpartition(":")[2], 16)
