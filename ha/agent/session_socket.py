"""The session socket: where it is on a host, who may use it, and the lines that go over it.

It lies beside the snapshots, in a directory that only this user or root can write, and is for this user alone (0600).
A member sends one line that says who it is; the holder sends a line for each change of what it lends.
"""

import os
import socket
import struct

import msgspec

from ha.config.snapshot_dir import ROOT, OpenDirectory, SnapshotDirectory, open_directory
from leader.election.borrowed_session import Lent

SOCKET = "session"
LOCK = "session.lock"
MOST_LINE_BYTES = 1024
ANSWERS_WITHIN_S = 1.0  # seconds in which the kernel connects to a socket on which somebody listens

_CREDENTIALS = struct.Struct("3i")


class Hello(msgspec.Struct, frozen=True):
    """A member's first line."""

    name: str  # of the contender, for people
    boot: str  # its boot clock: one of another clock cannot use the holder's times


class Word(msgspec.Struct, frozen=True):
    """A holder's line."""

    lent: Lent | None = None  # the newest confirmation; None if nothing is lent for now


def line(message: Hello | Word) -> bytes:
    """Return a message as a line."""
    return msgspec.json.encode(message) + b"\n"


def path_in(directory: OpenDirectory) -> str:
    """Return the socket's path, short enough for a socket's name wherever the directory is."""
    return f"/proc/self/fd/{directory.descriptor}/{SOCKET}"


def is_own(connected: socket.socket) -> bool:
    """Whether the process at the other end is this user's, or root's."""
    given = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(given)[1] in (os.geteuid(), ROOT)


def lends(place: SnapshotDirectory) -> bool:
    """Whether an agent of this user or of root lends its session there now."""
    try:
        directory = open_directory(place)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
            asked.settimeout(ANSWERS_WITHIN_S)
            asked.connect(path_in(directory))
            return is_own(asked)
    except OSError:
        return False
