"""Check sums: those of Spark, of Hadoop and of LZ4 blocks agree with known values, and show any change."""

import json
import struct
import zlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.checkpoints.check_sums import HadoopSums, SparkSums, crc32c
from ha.checkpoints.contents import Unreadable
from ha.checkpoints.file_check import check_packed, xxh32
from tests.unit.ha.checkpoints.simulated_spark import lz4


def spark_sum(data: bytes) -> bytes:
    """Return what Spark writes beside a file; its integers have a sign."""
    (value,) = struct.unpack(">i", struct.pack(">I", crc32c(data)))
    return json.dumps({"algorithm": "CRC32C", "value": value, "mainFileSize": len(data), "timestampMs": 1}).encode()


def hadoop_sums(data: bytes, step: int = 512) -> bytes:
    """Return what Hadoop writes beside a file on ``file://``."""
    sums = [zlib.crc32(data[at : at + step]) for at in range(0, len(data), step)]
    return struct.pack(f">4si{len(sums)}I", b"crc\x00", step, *sums)


def test_a_crc32c_has_the_known_values() -> None:
    # RFC 3720, B.4
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


def test_lanes_give_the_same_crc32c() -> None:
    data = Random(0).randbytes(300_001)  # noqa: S311
    pieces = 0
    for at in range(0, len(data), 1000):  # too short for lanes
        pieces = crc32c(data[at : at + 1000], pieces)
    assert crc32c(data) == pieces
    assert crc32c(data[7:], crc32c(data[:7])) == pieces


def test_an_xxhash_has_the_known_values() -> None:
    assert xxh32([b""], 0) == [0x02CC5D05]
    assert xxh32([b"abc", b"abc"], 0) == [0x32D153FF] * 2
    assert xxh32([b"Nobody inspects the spammish repetition"], 0) == [0xE2293B2F]


@given(st.binary(min_size=1, max_size=5000), st.randoms(use_true_random=False))
def test_any_changed_bit_is_seen(data: bytes, random: Random) -> None:
    at, bit = random.randrange(len(data)), 1 << random.randrange(8)
    changed = bytes([*data[:at], data[at] ^ bit, *data[at + 1 :]])
    for seen, good in ((data, True), (changed, False), (data[:-1], False), (data + b"?", False)):
        for sums in (SparkSums(spark_sum(data)), HadoopSums(hadoop_sums(data))):
            cut = random.randrange(len(seen) + 1)
            sums.add(seen[:cut])
            sums.add(seen[cut:])
            assert (sums.fault() == "") is good


def test_a_fault_says_where() -> None:
    data = bytes(2000)
    sums = HadoopSums(hadoop_sums(data))
    sums.add(data[:700] + b"?" + data[701:])
    assert sums.fault() == "It is not what was written, at byte 512 or later."


@pytest.mark.parametrize("said", [b"", b"{}", b'{"algorithm":"MD5","value":1,"mainFileSize":1}', b"\xff"])
def test_a_check_sum_in_another_form_is_told(said: bytes) -> None:
    with pytest.raises(Unreadable, match="check sum"):
        SparkSums(said)


@pytest.mark.parametrize("said", [b"", b"crc\x00", b"crc\x00\x00\x00\x00\x00", b"crc\x00\x00\x00\x02\x00\x01"])
def test_hadoops_check_sums_in_another_form_are_told(said: bytes) -> None:
    with pytest.raises(Unreadable, match="another form"):
        HadoopSums(said)


def test_a_packed_file_is_unpacked_to_its_end() -> None:
    data = lz4(b"changes" * 100)
    assert check_packed(data) is True
    for part in range(len(data)):
        with pytest.raises(Unreadable):
            check_packed(data[:part])
    with pytest.raises(Unreadable, match="goes on after its last block"):
        check_packed(data + b"?")


@given(st.binary(min_size=1, max_size=2000), st.randoms(use_true_random=False))
def test_a_changed_bit_of_a_block_is_seen(data: bytes, random: Random) -> None:
    (found,) = xxh32([data], 0x9747B28C)
    block = struct.pack("<8sBIII", b"LZ4Block", 0x15, len(data), len(data), found & 0x0FFFFFFF) + data
    whole = block + struct.pack("<8sBIII", b"LZ4Block", 0x15, 0, 0, 0)
    assert check_packed(whole) is True
    at, bit = random.randrange(9, len(block)), 1 << random.randrange(8)
    with pytest.raises(Unreadable):
        check_packed(bytes([*whole[:at], whole[at] ^ bit, *whole[at + 1 :]]))


def test_blocks_that_are_not_packed_are_compared_as_well() -> None:
    (found,) = xxh32([b"hello"], 0x9747B28C)
    block = struct.pack("<8sBIII", b"LZ4Block", 0x15, 5, 5, found & 0x0FFFFFFF) + b"hello"
    end = struct.pack("<8sBIII", b"LZ4Block", 0x15, 0, 0, 0)
    assert check_packed(block + end) is True
    with pytest.raises(Unreadable, match="check sum of a block"):
        check_packed(block.replace(b"hello", b"hallo") + end)


def test_what_cannot_be_unpacked_here_is_said() -> None:
    assert check_packed(b"\x82SNAPPY\x00...") is None
    assert check_packed(b"ZV...") is None
    with pytest.raises(Unreadable, match="like no file of state"):
        check_packed(b"?" * 30)


def test_zstandard_is_unpacked_without_a_sum() -> None:
    import pyarrow as pa  # noqa: PLC0415

    data: bytes = pa.Codec("zstd").compress(b"changes" * 100, asbytes=True)
    assert check_packed(data) is False
    with pytest.raises(Unreadable, match="cannot be unpacked"):
        check_packed(data[:8] + b"\xff" * 20)
