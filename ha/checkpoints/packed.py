"""Packed files of state: blocks of Java's LZ4BlockOutputStream, each with a check sum, or Zstandard. Pure.

The sum of a block is 28 bits of the xxHash of what it unpacks to. An empty block ends the file, so a part of a file is
noticed as well. A file of Zstandard is only unpacked. One that is damaged, or a part of itself, raises ``Unreadable``.
"""

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ha.checkpoints.contents import Unreadable

if TYPE_CHECKING:
    import numpy as np

_MAGIC = b"LZ4Block"
_ZSTANDARD = b"\x28\xb5\x2f\xfd"
_OTHERS = (b"\x82SNAPPY\x00", b"ZV")  # snappy and LZF: nothing here can unpack these
_HEADER = struct.Struct("<8sBIII")
_PLAIN = 0x10
_SEED = 0x9747B28C
_SUM_BITS = 0x0FFFFFFF
_MOST_PLAIN = 32 << 20  # longest block that LZ4BlockOutputStream can write

# Steps in which sums are computed, some seconds: one for 16 bytes of all blocks of 32 MiB, which side by side are fast
# if they have 32 KiB, as Spark writes them, and slow if they are long.
_MOST_STEPS = 1_000_000

_MOST_MIB = 16 << 10  # to which a file unpacks that is kept to be looked at: as a file of LZ4 of that length could

_P1, _P2, _P3, _P4, _P5 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1


def check_packed(data: bytes) -> bool | None:
    """Unpack all of a file, and compare its check sums; returns whether it has some, None if it is unreadable here."""
    if data.startswith(_ZSTANDARD):
        _unpack_zstandard(data)
        return False
    if data.startswith(_OTHERS):
        return None
    if not data.startswith(_MAGIC):
        raise Unreadable("It begins like no file of state." if data else "It is empty.")
    lot: list[tuple[bytes, int]] = []
    size = steps = 0
    for block, expected in _blocks(data):
        lot.append((block, expected))
        size += len(block)
        if size > _MOST_PLAIN:  # a small file may unpack to more than the memory has
            steps = _compare(lot, steps)
            lot, size = [], 0
    return _compare(lot, steps) <= _MOST_STEPS


def _compare(lot: list[tuple[bytes, int]], steps: int) -> int:
    """Compare the sums of blocks, unless too many steps were taken; returns those that were taken by then."""
    sums: dict[int, list[tuple[bytes, int]]] = {}
    for block, expected in lot:
        sums.setdefault(len(block), []).append((block, expected))
    for length, blocks in sums.items():
        steps += length // 16
        if steps > _MOST_STEPS:
            break
        found = xxh32([block for block, _ in blocks], _SEED)
        if any(each & _SUM_BITS != expected for each, (_, expected) in zip(found, blocks, strict=True)):
            raise Unreadable("It is not what was written: the check sum of a block is another one.")
    return steps


def _blocks(data: bytes) -> Iterator[tuple[bytes, int]]:
    import pyarrow as pa  # noqa: PLC0415  # takes 60 ms

    codec, at = pa.Codec("lz4_raw"), 0
    while True:
        try:
            magic, token, packed, plain, expected = _HEADER.unpack_from(data, at)
        except struct.error as error:
            raise Unreadable("It is a part of itself: its last block is missing.") from error
        at += _HEADER.size
        block = data[at : at + packed]
        if magic != _MAGIC or len(block) != packed or plain > _MOST_PLAIN:
            raise Unreadable(f"It is damaged or a part of itself, before byte {at + packed:,}.")
        at += packed
        if not plain:
            if at != len(data):
                raise Unreadable(f"It goes on after its last block, at byte {at:,}.")
            return
        try:
            unpacked = block if token & 0xF0 == _PLAIN else codec.decompress(block, plain, asbytes=True)
        except OSError as error:
            raise Unreadable(f"A block of it cannot be unpacked ({error}).") from error
        if len(unpacked) != plain:
            raise Unreadable(f"A block of it has {len(unpacked):,} bytes, and should have {plain:,}.")
        yield unpacked, expected


def _unpack_zstandard(data: bytes) -> None:
    import pyarrow as pa  # noqa: PLC0415

    try:
        with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
            for _ in range(_MOST_MIB):
                if not stream.read(1 << 20):
                    return
    except OSError as error:
        raise Unreadable(f"It cannot be unpacked ({error}).") from error
    raise Unreadable(f"It unpacks to more than {_MOST_MIB:,} MiB.")


def xxh32(blocks: list[bytes], seed: int) -> list[int]:
    """Return the xxHash (32 bits) of each block; all have the same length, so numpy computes them side by side."""
    import numpy as np  # noqa: PLC0415  # takes 60 ms

    length = len(blocks[0])
    stripes = length // 16
    data = np.frombuffer(b"".join(blocks), np.uint8).reshape(len(blocks), length)
    if stripes:
        words = np.ascontiguousarray(data[:, : stripes * 16]).view("<u4").reshape(len(blocks), stripes, 4)
        lanes = np.empty((len(blocks), 4), np.uint32)
        lanes[:] = [(seed + each) & 0xFFFFFFFF for each in (_P1 + _P2, _P2, 0, -_P1)]
        for stripe in words.transpose(1, 0, 2).copy():
            lanes = _turned(lanes + stripe * np.uint32(_P2), 13) * np.uint32(_P1)
        turned = [_turned(lanes[:, n], by) for n, by in enumerate((1, 7, 12, 18))]
        found: np.ndarray[Any, Any] = turned[0] + turned[1] + turned[2] + turned[3]
    else:
        found = np.full(len(blocks), (seed + _P5) & 0xFFFFFFFF, np.uint32)
    found = found + np.uint32(length)
    at = stripes * 16
    for place in range(at, length - 3, 4):
        word = np.ascontiguousarray(data[:, place : place + 4]).view("<u4")[:, 0]
        found = _turned(found + word * np.uint32(_P3), 17) * np.uint32(_P4)
    for place in range(length - length % 4, length):
        found = _turned(found + data[:, place].astype(np.uint32) * np.uint32(_P5), 11) * np.uint32(_P1)
    for by, prime in ((15, _P2), (13, _P3)):
        found = (found ^ (found >> np.uint32(by))) * np.uint32(prime)
    return [int(each) for each in found ^ (found >> np.uint32(16))]


def _turned(values: "np.ndarray[Any, Any]", by: int) -> "np.ndarray[Any, Any]":
    import numpy as np  # noqa: PLC0415

    return (values << np.uint32(by)) | (values >> np.uint32(32 - by))
