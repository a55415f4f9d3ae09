"""Packed names: values of any length, compressed and cut into the names of empty folders. Pure.

A folder costs one request to the NameNode, and is there at once or not at all; a file costs four or more, and half a
second. A long value takes several names, ``<word>=<part>~<of>~<text>``, which one rename of their folder moves:
decision 51.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from leader.errors import Unreadable

TEXT = 220  # characters of text in one name: a name may have 255 bytes
MOST = 64 << 20  # longest value: about a million files. A longer one is not what this module has written
_PART = re.compile(r"([a-z]+)=([1-9][0-9]{0,4})~([1-9][0-9]{0,4})~([A-Za-z0-9_-]+)")

T = TypeVar("T")


def pack(value: Any) -> str:
    """Return a value as text of letters, digits, hyphens and underscores."""
    return base64.urlsafe_b64encode(zlib.compress(msgspec.json.encode(value), 9)).decode().rstrip("=")


def unpack(text: str, kind: type[T]) -> T:
    """Return the value that was packed; Unreadable if it was not packed here, or is no such value."""
    try:
        inflating = zlib.decompressobj()
        plain = inflating.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), MOST)
        if not inflating.eof:
            raise Unreadable("They do not hold a whole text.")
        return msgspec.json.decode(plain, type=kind)
    except (binascii.Error, zlib.error, msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise Unreadable(f"They were not made by this package: {error}") from error


def written(word: str, value: Any) -> list[str]:
    """Return the names that hold a value; the word of lower-case letters says which value it is."""
    packed = pack(value)
    parts = [packed[start : start + TEXT] for start in range(0, len(packed), TEXT)]
    return [f"{word}={number}~{len(parts)}~{part}" for number, part in enumerate(parts, 1)]


def read(word: str, kind: type[T], names: Iterable[str]) -> T | None:
    """Return the value in these names; None if no name is of that word, Unreadable if a name is missing or foreign."""
    parts = [(int(found[2]), int(found[3]), found[4]) for name in names if (found := _PART.fullmatch(name)) is not None
             and found[1] == word]  # fmt: skip
    if not parts:
        return None
    parts.sort()
    if [(number, of) for number, of, _ in parts] != [(number, len(parts)) for number in range(1, len(parts) + 1)]:
        raise Unreadable(
            f"{len(parts)} of {parts[0][1]} folders {word}=... are there: somebody has deleted or made some."
        )
    try:
        return unpack("".join(part for _, _, part in parts), kind)
    except Unreadable as error:
        raise Unreadable(f"The folders {word}=... cannot be read. {error}") from error
