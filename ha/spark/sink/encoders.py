"""Encoders: turn tables of Arrow into the bytes of a file that Spark reads."""

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet

from store.streams import Stream


class Encoder(Protocol):
    """Writes one file."""

    def write(self, table: pa.Table) -> object:
        """Write rows."""

    def close(self) -> object:
        """Write what ends the file; the stream stays open."""


class Lines:
    """One line for each row of a single column of texts; an absent text is an empty line, as Spark has it."""

    def __init__(self, stream: Stream) -> None:
        """Write to a stream."""
        self._stream = stream

    def write(self, table: pa.Table) -> None:
        """Write rows."""
        texts = table.column(0).to_pylist()
        self._stream.write("".join(f"{text or ''}\n" for text in texts).encode())

    def close(self) -> None:
        """Write nothing more."""


def open_encoder(kind: str, stream: Stream, schema: pa.Schema, compression: str) -> Encoder:
    """Return the encoder of a format of :data:`ha.spark.sink.options.COMPRESSIONS`."""
    return _ENCODERS[kind](stream, schema, compression)


def _parquet(stream: Stream, schema: pa.Schema, compression: str) -> Encoder:
    made: Encoder = pyarrow.parquet.ParquetWriter(stream, schema, compression=compression, store_schema=False)
    return made


def _orc(stream: Stream, _: pa.Schema, compression: str) -> Encoder:
    made: Encoder = pyarrow.orc.ORCWriter(stream, compression="uncompressed" if compression == "none" else compression)
    return made


def _text(stream: Stream, _: pa.Schema, __: str) -> Encoder:
    return Lines(stream)


_ENCODERS: dict[str, Callable[[Stream, pa.Schema, str], Encoder]] = {"parquet": _parquet, "orc": _orc, "text": _text}
