"""Bombs: small files that would unpack to more than the memory has, or in more time than anybody waits."""

import io
import json
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa
import pytest

from ha.checkpoints import contents, file_check
from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.contents import Unreadable
from ha.checkpoints.file_check import Checked, ContentCheck
from ha.checkpoints.replica_round import surplus
from ha.preflight import scratch
from tests.patience import FACTOR
from tests.unit.ha.checkpoints.simulated_spark import lz4, utf

MIB = 1 << 20
MOST_S = 20 * FACTOR
"""Seconds of a core, far more than it takes: a bomb takes minutes, or never ends."""


@contextmanager
def bounded(most: int) -> Iterator[None]:
    """Check that a block takes no more memory than that at any moment, and little time."""
    began = time.process_time()
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most
    assert time.process_time() - began < MOST_S


def zipped(method: int, size: int, members: int = 1) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for number in range(members):
            archive.writestr(f"other-{number}" if number else "metadata", bytes(size))
    return made.getvalue()


def listed(members: int) -> bytes:
    """Return a zip that only lists members; each takes 47 bytes of it, and ten times that of the memory."""
    one = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, members & 0xFFFF, members & 0xFFFF, len(one) * members, 0, 0)
    return one * members + end


def checked(path: str, data: bytes) -> Checked:
    check = ContentCheck(path, len(data))
    check.add(data)
    return check.result()


ZIPS: dict[str, Callable[[], bytes]] = {
    "deflated": lambda: zipped(zipfile.ZIP_DEFLATED, 200 * MIB),
    "bzip2": lambda: zipped(zipfile.ZIP_BZIP2, 200 * MIB),
    "lzma": lambda: zipped(zipfile.ZIP_LZMA, 200 * MIB),
    "many": lambda: listed(200_000),
}


@pytest.mark.parametrize("kind", ZIPS)
def test_a_zip_fills_no_memory(kind: str) -> None:
    data = ZIPS[kind]()
    with bounded(16 * MIB), pytest.raises(Unreadable):
        contents.whole(data)
    with bounded(64 * MIB):
        assert checked("state/0/0/1.zip", data).fault


def test_a_zip_that_says_it_unpacks_to_too_much_is_not_unpacked() -> None:
    data = bytearray(zipped(zipfile.ZIP_DEFLATED, MIB))
    at = data.rindex(b"PK\1\2") + 24
    data[at : at + 4] = struct.pack("<I", (1 << 32) - 2)
    with bounded(16 * MIB):
        assert checked("state/0/0/1.zip", bytes(data)).fault == "It unpacks to more than 1,073,741,824 bytes."


@pytest.mark.parametrize("plain", [33 * MIB, (1 << 31) - 1, (1 << 32) - 1])
def test_a_block_of_lz4_that_announces_a_huge_size_is_not_unpacked(plain: int) -> None:
    data = bytearray(lz4(b"changes" * 10))
    struct.pack_into("<I", data, 13, plain)
    with bounded(MIB):
        assert checked("state/0/0/1.delta", bytes(data)).fault.startswith("It is damaged or a part of itself")
    with bounded(MIB), pytest.raises(Unreadable):
        contents.lineage(bytes(data))


def blocks(number: int, plain: int) -> bytes:
    block = pa.Codec("lz4_raw").compress(bytes(plain), asbytes=True)
    end = struct.pack("<8sBiii", b"LZ4Block", 0x15, 0, 0, 0)
    head = struct.pack("<8sBiii", b"LZ4Block", 0x25, len(block), plain, 1)
    return b"".join([head, block] * number + [end])


def test_long_blocks_of_lz4_are_unpacked_and_not_compared() -> None:
    """Spark writes 32 KiB: the sums of long ones would take an hour."""
    with bounded(100 * MIB):
        assert checked("state/0/0/1.delta", blocks(20, 32 * MIB)) == Checked(formed=True)
    with bounded(300 * MIB):
        assert "check sum" in checked("state/0/0/1.delta", blocks(2000, 32 << 10)).fault


def test_a_file_of_zstandard_is_unpacked_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    data = pa.Codec("zstd").compress(bytes(64 * MIB), asbytes=True)
    assert checked("state/0/0/1.delta", data) == Checked(formed=True)
    monkeypatch.setattr(file_check, "_MOST_MIB", 32)
    with bounded(16 * MIB):
        assert checked("state/0/0/1.delta", data).fault == "It unpacks to more than 32 MiB."


@pytest.mark.parametrize(
    "data",
    [
        utf("v3") + struct.pack(">H", 60_000),
        utf("v3") + utf("[" * 60_000),
        utf("v3") + utf(json.dumps([{"version": 10**400, "checkpointUniqueId": "a"}] * 100)),
    ],
)
def test_a_lineage_that_announces_more_than_it_has_is_read_in_bounds(data: bytes) -> None:
    with bounded(4 * MIB), suppress(Unreadable):
        contents.lineage(lz4(data))


LONG = 100_000


@pytest.mark.parametrize("part", ["a/", "0/", "_metadata/", "state/0/", "SSTs/", "_", "0", "-"])
def test_no_name_takes_long_to_be_told(part: str) -> None:
    """A pattern that goes back over what it has taken, once for each place, takes hours for such names."""
    paths = [f"{begin}{part * (LONG // len(part))}" for begin in ("", "state/0/", "state/0/0/", "sources/0/")]
    with bounded(64 * MIB):
        names = CheckpointFiles(dict.fromkeys(paths, 1))
        assert names.batches == []
        surplus(paths, [])
        for path in paths:
            scratch._DESCRIBED.fullmatch(path)
            names.state_file(path)
