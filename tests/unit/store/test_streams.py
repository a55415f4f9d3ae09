"""Streams: new local files of any size; HDFS is in tests/system."""

from pathlib import Path

import pytest

from store.errors import AlreadyExists, Invalid
from store.streams import Streams


def test_a_file_with_the_folders_above_it(tmp_path: Path) -> None:
    stream = Streams((tmp_path / "a").as_uri()).create("b/c")
    assert stream.writable()
    assert stream.write(b"one") == 3
    assert stream.write(memoryview(b"two")) == 3
    assert (stream.tell(), stream.size) == (6, 6)
    stream.close()
    stream.close()
    assert (tmp_path / "a" / "b" / "c").read_bytes() == b"onetwo"


def test_a_write_that_takes_a_part_is_repeated(tmp_path: Path) -> None:
    class Slow:
        def __init__(self) -> None:
            self.got = b""

        def write(self, data: bytes) -> int:
            assert type(data) is bytes, "hdfs-native takes other buffers one byte after the other"
            self.got += data[:2]
            return min(2, len(data))

    stream = Streams(tmp_path.as_uri()).create("x")
    stream._file.close()
    stream._file = slow = Slow()
    assert stream.write(b"12345") == 5
    assert stream.write(memoryview(b"678")) == 3
    assert slow.got == b"12345678"


def test_a_name_is_used_once(tmp_path: Path) -> None:
    Streams(tmp_path.as_uri()).create("x").close()
    with pytest.raises(AlreadyExists):
        Streams(tmp_path.as_uri()).create("x")


def test_what_tasks_cannot_write_to() -> None:
    with pytest.raises(Invalid, match="neither hdfs:// nor file://"):
        Streams("webhdfs://names:1/x")
