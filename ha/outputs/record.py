"""Record: what a batch consists of, kept in the names of empty folders beside its rows.

A folder costs one request to the NameNode, and is there at once or not at all; a file costs six requests, and half a
second. So a record is compressed and cut into names: ``files=<part>~<of>~<text>``. The rename that decides a batch
takes them along. See decision 51.
"""

import base64
import binascii
import re
import zlib
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from leader.errors import Unreadable

FILES = "files"
"""First word of the names that hold a :class:`Record`."""

TARGET = "target"
"""Likewise a :class:`Target`."""

LOST = "lost"
"""Likewise the files whose loss an operator has accepted: a :class:`Record`."""

TEXT = 220
"""Characters of text in one name: a name may have 255 bytes."""

MOST = 64 << 20
"""Longest text: about a million files. A longer one is not what this module has written."""

_PART = re.compile(r"([a-z]+)=([1-9][0-9]{0,4})~([1-9][0-9]{0,4})~([A-Za-z0-9_-]+)")

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True):
    """The files of a batch.

    Attributes:
        partitions: by the partition's path, such as ``day=1/hour=2``, or empty: of each file its bytes.
    """

    partitions: dict[str, dict[str, int]]

    @property
    def files(self) -> int:
        """How many there are."""
        return sum(len(each) for each in self.partitions.values())

    @property
    def bytes(self) -> int:
        """How much is in them."""
        return sum(sum(each.values()) for each in self.partitions.values())

    def without(self, other: "Record") -> "Record":
        """Return the files that the other does not have, or not as long."""
        left = {
            partition: {
                name: size for name, size in files.items() if other.partitions.get(partition, {}).get(name) != size
            }
            for partition, files in self.partitions.items()
        }
        return Record({partition: files for partition, files in left.items() if files})

    def paths(self) -> list[str]:
        """Return the path of each file, sorted."""
        return sorted(
            f"{partition}/{name}".lstrip("/") for partition, files in self.partitions.items() for name in files
        )


class Target(msgspec.Struct, frozen=True):
    """Where an output's batches appear.

    Attributes:
        path: of the directory, in the file system of the job.
    """

    path: str


def written(word: str, value: Record | Target) -> list[str]:
    """Return the names that hold a value."""
    packed = base64.urlsafe_b64encode(zlib.compress(msgspec.json.encode(value), 9)).decode().rstrip("=")
    parts = [packed[start : start + TEXT] for start in range(0, len(packed), TEXT)]
    return [f"{word}={number}~{len(parts)}~{part}" for number, part in enumerate(parts, 1)]


def read(word: str, kind: type[T], names: Iterable[str]) -> T | None:
    """Return the value in these names; None if no name is of that word.

    Raises:
        Unreadable: some of its names are missing, or somebody else has made some.
    """
    parts = [(int(found[2]), int(found[3]), found[4]) for name in names if (found := _PART.fullmatch(name)) is not None
             and found[1] == word]  # fmt: skip
    if not parts:
        return None
    parts.sort()
    if [(number, of) for number, of, _ in parts] != [(number, len(parts)) for number in range(1, len(parts) + 1)]:
        raise Unreadable(
            f"{len(parts)} of {parts[0][1]} folders {word}=... are there: somebody has deleted or made some."
        )
    text = "".join(part for _, _, part in parts)
    try:
        unpack = zlib.decompressobj()
        plain = unpack.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), MOST)
        if not unpack.eof:
            raise Unreadable(f"The folders {word}=... do not hold a whole text.")
        return msgspec.json.decode(plain, type=kind)
    except (binascii.Error, zlib.error, msgspec.MsgspecError, UnicodeDecodeError, ValueError) as error:
        raise Unreadable(f"The folders {word}=... were not made by this package: {error}") from error
