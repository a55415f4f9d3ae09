"""Caches of Kerberos tickets, byte by byte."""

import struct


def counted(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def principal(*parts: str) -> bytes:
    return struct.pack(">II", 1, len(parts)) + b"".join(counted(each.encode()) for each in ("HA.LAB", *parts))


def ticket(server: tuple[str, ...], begins: int, ends: int) -> bytes:
    times = struct.pack(">IIII", begins - 1, begins, ends, 0)
    rest = b"\0" + struct.pack(">I", 0) + struct.pack(">I", 1) + b"\0\2" + counted(b"addr") + struct.pack(">I", 0)
    return (
        principal("me") + principal(*server) + b"\0\x12" + counted(b"key") + times + rest + counted(b"t") + counted(b"")
    )


def cache(*tickets: bytes) -> bytes:
    header = b"\0\1\0\4abcd"
    return b"\5\4" + struct.pack(">H", len(header)) + header + principal("me") + b"".join(tickets)
