"""A guard of the port by which Spark's JVM calls Python: connections of other users of the host are refused.

py4j does not authenticate there. So any user of the host could release the program's objects: its queries would fail,
or its listener would hear nothing. The kernel knows the owner of the other end of a connection.

``import ha.spark`` installs it. For a program that imports nothing of ours, ``ha run`` copies this file for its Python:
see :mod:`ha.hook.entry`. So it uses the standard library alone, and Python 3.8.
"""

from __future__ import annotations

import io
import logging
import os
import socket
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

MODULE = "py4j.clientserver"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
"""The kernel's connections. Java's are usually in the second one, where an address of version 4 ends a longer one."""

ESTABLISHED = 1
SAY_EVERY_S = 60.0

_log = logging.getLogger("ha")
_said: dict[str, float] = {}


def stranger(connection: socket.socket, tables: Iterable[str] = TABLES) -> str | None:
    """Return who has connected from this host, if it is not this user; None if it is, or if the kernel does not say."""
    gone = "A process that has gone"
    try:
        here, there = (_written(connection, name) for name in (connection.getsockname(), connection.getpeername()))
    except OSError:
        return gone
    found: str | None = gone
    try:
        for table in tables:
            with open(table, encoding="ascii") as lines:  # noqa: PTH123  # shorter than the import
                for part in map(str.split, lines):
                    if part[1].endswith(there) and part[2].endswith(here):
                        found = None if _is_ours(part) else f"The user with the number {part[7]}"
    except OSError as error:
        _say(f"Other users of this host may call this program, because the kernel does not say who calls: {error}")
        return None
    # Asked last: as long as this end is connected, no other user can have had that port.
    state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return found if state == ESTABLISHED else gone


def changes(_: object = None) -> dict[str, Callable[[Any], None]]:
    """Return what is changed in py4j: see :mod:`ha.hook.entry`."""
    return {MODULE: guard}


def guard(module: Any) -> None:
    """Have py4j's server read nothing from strangers; it then ends the connection itself."""
    create = module.PythonServer._create_connection  # noqa: SLF001  # there is no public seam

    def create_connection(self: Any, connection: socket.socket, stream: Any) -> Any:
        who = stranger(connection)
        if who is not None:
            _say(f"{who} has connected to the port by which Spark calls this program, and is refused.")
            stream.close()
            stream = io.BytesIO()
        return create(self, connection, stream)

    if not hasattr(create, "guarded"):
        create_connection.guarded = True  # type: ignore[attr-defined]
        module.PythonServer._create_connection = create_connection  # noqa: SLF001


def _is_ours(part: Sequence[str]) -> bool:
    """Whether a line is of a living socket of this user; a closed one has root's number, and no inode."""
    return int(part[3], 16) == ESTABLISHED and int(part[7]) == os.geteuid() and part[9] != "0"


def _written(connection: socket.socket, name: tuple[str, int]) -> str:
    """Return an address and port as the kernel writes them: numbers of 32 bits in this machine's order."""
    raw = socket.inet_pton(connection.family, name[0])
    words = [int.from_bytes(raw[at : at + 4], sys.byteorder) for at in range(0, len(raw), 4)]
    return "".join(f"{each:08X}" for each in words) + f":{name[1]:04X}"


def _say(sentence: str) -> None:
    if time.monotonic() >= _said.get(sentence, 0.0):
        _said[sentence] = time.monotonic() + SAY_EVERY_S
        _log.warning("%s", sentence)
