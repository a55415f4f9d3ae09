"""Ports of the sandbox's servers: free now, and free again when a server that was killed is restarted."""

import random
import socket
from pathlib import Path

from ha.sandbox.polling import SandboxError

LOOPBACK = "127.0.0.1"

_LOWEST = 10_000
_FALLBACK_EPHEMERAL = 32_768
_TRIES = 2_000


def free_ports(count: int) -> list[int]:
    """Return distinct ports without a listener."""
    # They lie below the kernel's range for outgoing connections: a restarted server must find its port free.
    highest = max(_ephemeral_start(), _LOWEST + 10_000)
    chosen: set[int] = set()
    for _ in range(_TRIES):
        if len(chosen) == count:
            break
        port = random.randrange(_LOWEST, highest)  # noqa: S311  # two sandboxes at once only need to differ
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


def listens(port: int, seconds: float = 2.0) -> bool:
    """Whether a server accepts a connection there within that time."""
    try:
        with socket.create_connection((LOOPBACK, port), seconds):
            return True
    except OSError:
        return False


def _ephemeral_start() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return _FALLBACK_EPHEMERAL
