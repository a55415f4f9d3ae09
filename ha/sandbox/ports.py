"""Ports of the sandbox's servers: free now, and free again when a server that was killed is started anew."""

import random
import socket
from pathlib import Path

from ha.sandbox.polling import SandboxError

LOOPBACK = "127.0.0.1"

_LOWEST = 10_000
_FALLBACK_EPHEMERAL = 32_768
_TRIES = 2_000


def free_ports(count: int) -> list[int]:
    """Return distinct ports without a listener.

    They lie below the range that the kernel gives to outgoing connections: a server that was killed must find its port
    free when it is started again.

    Raises:
        SandboxError: there are not enough.
    """
    highest = max(_ephemeral_start(), _LOWEST + 10_000)
    chosen: set[int] = set()
    for _ in range(_TRIES):
        if len(chosen) == count:
            break
        port = random.randrange(_LOWEST, highest)  # noqa: S311  # two sandboxes at once must differ, no more
        if is_free(port):
            chosen.add(port)
    if len(chosen) < count:
        raise SandboxError(f"There are no {count} free ports between {_LOWEST} and {highest}.")
    return list(chosen)


def is_free(port: int) -> bool:
    """Return whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return _FALLBACK_EPHEMERAL
