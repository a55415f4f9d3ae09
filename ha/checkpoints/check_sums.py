"""Check sums of files: Spark's own (CRC32C, in ``NAME.crc``), and Hadoop's on ``file://`` (``.NAME.crc``). Pure.

A file of check sums that has another form raises :class:`ha.checkpoints.contents.Unreadable`. Neither Python's library
nor Spark's Python packages compute a CRC32C, so it is here. A CRC is linear: the data are cut into lanes that numpy
computes side by side, and a table that appends a lane's length of zeros joins them.
"""

import struct
import zlib
from functools import lru_cache

import msgspec

from ha.checkpoints.contents import Altered, Unreadable

_POLYNOMIAL = 0x82F63B78
_ONES = 0xFFFFFFFF
_LANES = 4096
_SHORT = 64 * _LANES  # bytes from which on lanes are worth while
_HADOOP = struct.Struct(">4sI")
_HADOOP_MAGIC = b"crc\x00"
_NO_STEP = bytes(4)


class SparkSum(msgspec.Struct, frozen=True, rename="camel"):
    """The content of ``NAME.crc`` beside a file; Spark 4.1 and newer writes one beside each changelog and each zip."""

    algorithm: str
    value: int
    main_file_size: int


class SparkSums:
    """Compares a file with what ``NAME.crc`` says, piece by piece."""

    def __init__(self, said: bytes) -> None:
        try:
            self._said = msgspec.json.decode(said, type=SparkSum)
        except msgspec.DecodeError as error:
            raise Unreadable(f"Its check sum has another form ({error}).") from error
        if self._said.algorithm != "CRC32C":
            raise Unreadable(f"Its check sum is of an unknown kind, {self._said.algorithm!r}.")
        self._sum = self._size = 0

    def add(self, piece: bytes) -> None:
        """See the next piece."""
        self._sum = crc32c(piece, self._sum)
        self._size += len(piece)

    def fault(self) -> str:
        """Return what is wrong now that all was seen; empty if nothing is."""
        if self._size != self._said.main_file_size:
            return f"It has {self._size:,} bytes, and had {self._said.main_file_size:,} when Spark wrote it."
        if self._sum != self._said.value & _ONES:  # Java's integers have a sign
            return "It is not what Spark wrote: its check sum is another one."
        return ""


def hadoop_sums(path: str) -> str:
    """Return the path of Hadoop's check sums of a file on ``file://``."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.crc"


def are_hadoops(said: bytes) -> bool:
    """Whether they have the form of Hadoop's check sums; otherwise they are damaged, and tell nothing of their file."""
    return len(said) > _HADOOP.size and len(said) % 4 == 0 and said[:4] == _HADOOP_MAGIC and said[4:8] > _NO_STEP


class HadoopSums:
    """Compares a file on ``file://`` with what ``.NAME.crc`` says, piece by piece."""

    def __init__(self, said: bytes) -> None:
        if not are_hadoops(said):
            raise Unreadable("Hadoop's check sums of it have another form.")
        _, self._step = _HADOOP.unpack_from(said)
        self._sums = struct.unpack_from(f">{(len(said) - _HADOOP.size) // 4}I", said, _HADOOP.size)
        self._rest = b""
        self._seen = 0
        self._fault = ""

    def add(self, piece: bytes) -> None:
        """See the next piece."""
        data = memoryview(self._rest + piece)
        whole = len(data) - len(data) % self._step
        for at in range(0, whole, self._step):
            self._compare(data[at : at + self._step])
        self._rest = bytes(data[whole:])

    def fault(self, *, whole: bool = True) -> str:
        """Return what is wrong now that all was seen, or the head alone; empty if nothing is."""
        if not whole:
            return self._fault
        if self._rest:
            self._compare(memoryview(self._rest))
            self._rest = b""
        if not self._fault and self._seen != len(self._sums):
            self._fault = "It is not as long as when it was written, as Hadoop's check sums say."
        return self._fault

    def _compare(self, part: memoryview) -> None:
        if self._seen >= len(self._sums) or zlib.crc32(part) != self._sums[self._seen]:
            self._fault = self._fault or f"It is not what was written, at byte {self._seen * self._step:,} or later."
        self._seen += 1


def check_hadoop(said: bytes, data: bytes, *, whole: bool) -> None:
    """Raise ``Altered`` if a file on ``file://``, or its head, differs from Hadoop's check sums; Spark ignores them."""
    if not are_hadoops(said):
        return
    sums = HadoopSums(said)
    sums.add(data)
    if fault := sums.fault(whole=whole):
        raise Altered(fault)


def crc32c(data: bytes, before: int = 0) -> int:
    """Return the CRC32C (Castagnoli) of data; ``before`` is that of what comes before them."""
    state = before ^ _ONES
    at = 0
    if len(data) >= _SHORT:
        at = len(data) - len(data) % _LANES
        state = _in_lanes(data, at, state)
    table = _table()
    for byte in data[at:]:
        state = table[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ _ONES


def _in_lanes(data: bytes, size: int, state: int) -> int:
    import numpy as np  # noqa: PLC0415  # takes 60 ms; comes with Spark's packages

    length = size // _LANES
    lanes = np.frombuffer(data, np.uint8, size).reshape(_LANES, length).T.copy()
    table = np.array(_table(), np.uint32)
    states = np.zeros(_LANES, np.uint32)
    states[0] = state
    for column in lanes:
        states = table[(states ^ column) & 0xFF] ^ (states >> 8)
    shift = _zeros(length)
    joined = 0
    for each in states.tolist():
        joined = each ^ (
            shift[0][joined & 0xFF]
            ^ shift[1][joined >> 8 & 0xFF]
            ^ shift[2][joined >> 16 & 0xFF]
            ^ shift[3][joined >> 24]
        )
    return joined


@lru_cache(maxsize=1)
def _table() -> list[int]:
    found = []
    for byte in range(256):
        state = byte
        for _ in range(8):
            state = state >> 1 ^ (_POLYNOMIAL if state & 1 else 0)
        found.append(state)
    return found


@lru_cache(maxsize=8)
def _zeros(length: int) -> list[list[int]]:
    """Return what so many bytes of zeros make of each byte of a state, in each of its four places."""
    table = _table()
    square = [table[state & 0xFF] ^ (state >> 8) for state in (1 << n for n in range(32))]  # of one byte, by bit
    result = [1 << n for n in range(32)]
    while length:
        if length & 1:
            result = [_apply(square, each) for each in result]
        square = [_apply(square, each) for each in square]
        length >>= 1
    return [[_apply(result, byte << place) for byte in range(256)] for place in (0, 8, 16, 24)]


def _apply(matrix: list[int], state: int) -> int:
    found, bit = 0, 0
    while state:
        if state & 1:
            found ^= matrix[bit]
        state, bit = state >> 1, bit + 1
    return found
