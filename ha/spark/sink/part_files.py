"""PartFiles: the files that one task writes, one for each partition, from batches of Arrow.

Rows are kept until there are many, so that the files of Parquet and ORC have large groups of them. Memory and open
files are bounded: a partition that is closed for that gets another file if more rows of it come.
"""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pyarrow.parquet

from ha.spark.sink.options import SinkOptions
from store.streams import Stream, Streams

MOST_OPEN = 100  # files that a task has open at a time
CLOSED_TOGETHER = 16  # the close of a file in HDFS waits for the NameNode, often 0.4 s
MOST_BYTES = 64 << 20  # of rows that a task keeps in memory, as Arrow counts them
NULL = "__HIVE_DEFAULT_PARTITION__"  # the value of a partition whose column has none, or an empty text

ESCAPED = {*map(chr, range(0x20)), "\x7f", *"\"#%'*/:=?\\{[]^"}
"""Characters that Spark escapes in the names of partitions, and U+0000, which it reads back if it is escaped."""


@dataclass(slots=True)
class _Open:
    """A file that is being written."""

    name: str
    stream: Stream
    encoder: Any  # of Arrow, or a `LineEncoder`
    rows: list[pa.RecordBatch] = field(default_factory=list)


class PartFiles:
    """The files of one try of one task; ``rows`` counts those that were added, by partition."""

    def __init__(self, uri: str, options: SinkOptions, task: int) -> None:
        """Open nothing before there are rows; the URI is that of the folder that holds the partitions."""
        self._uri, self._options = uri, options
        self._streams: Streams | None = None
        self._prefix = f"part-{task:05d}-{uuid.uuid4().hex}"
        self._count = 0
        self._kept = 0
        self._open: dict[str, _Open] = {}  # by partition; the one that was used last is the last
        self._done: dict[str, dict[str, int]] = {}
        self.rows: dict[str, int] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Write the rows of a batch."""
        for partition, rows in split(batch, self._options.partition_by):
            file = self._open.pop(partition, None)
            if file is None:
                if len(self._open) >= MOST_OPEN:
                    self._end(next(iter(self._open))).close()
                file = self._create(partition, rows.schema)
            self._open[partition] = file
            file.rows.append(rows)
            self._kept += rows.nbytes
            self.rows[partition] = self.rows.get(partition, 0) + rows.num_rows
        if self._kept >= MOST_BYTES:
            for file in self._open.values():
                self._flush(file)
            self._kept = 0

    def finish(self) -> dict[str, dict[str, int]]:
        """Close the files; return the bytes of each, by its partition and its name."""
        ended = [self._end(each) for each in list(self._open)]
        with ThreadPoolExecutor(CLOSED_TOGETHER) as pool:
            list(pool.map(Stream.close, ended))
        return self._done

    def _create(self, partition: str, schema: pa.Schema) -> _Open:
        if self._streams is None:
            self._streams = Streams(self._uri)
        kind, compression = self._options.format, self._options.compression
        squeezed = "" if compression == "none" else f".{compression}"
        name = f"{self._prefix}-{self._count}{squeezed}.{'txt' if kind == 'text' else kind}"
        self._count += 1
        stream = self._streams.create(f"{partition}/{name}".lstrip("/"))
        return _Open(name, stream, open_encoder(kind, stream, schema, compression))

    def _flush(self, file: _Open) -> None:
        if file.rows:
            file.encoder.write(pa.Table.from_batches(file.rows))
            file.rows = []

    def _end(self, partition: str) -> Stream:
        """Write all that a file has; return its stream, which is to be closed."""
        file = self._open.pop(partition)
        self._flush(file)
        file.encoder.close()
        self._done.setdefault(partition, {})[file.name] = file.stream.size
        return file.stream


def split(batch: pa.RecordBatch, columns: tuple[str, ...]) -> list[tuple[str, pa.RecordBatch]]:
    """Return the rows of each partition, without its columns, by the partition's path."""
    if not batch.num_rows:
        return []
    if not columns:
        return [("", batch)]
    rest = batch.select([name for name in batch.schema.names if name not in columns])
    paths = _paths(batch, columns).dictionary_encode()
    if len(paths.dictionary) == 1:
        return [(paths.dictionary[0].as_py(), rest)]
    order = pc.sort_indices(paths.indices)
    ordered, counts = rest.take(order), pc.value_counts(paths.indices.take(order))
    found, start = [], 0
    for each in counts.to_pylist():
        found.append((paths.dictionary[each["values"]].as_py(), ordered.slice(start, each["counts"])))
        start += each["counts"]
    return found


def _paths(batch: pa.RecordBatch, columns: tuple[str, ...]) -> Any:
    parts = []
    for name in columns:
        values = pc.cast(batch.column(name), pa.string()).dictionary_encode()
        texts = [f"{escaped(name)}={escaped(each) or NULL}" for each in values.dictionary.to_pylist()]
        texts.append(f"{escaped(name)}={NULL}")
        indices = pc.fill_null(values.indices, len(texts) - 1)
        parts.append(pa.array(texts, pa.string()).take(indices))
    return pc.binary_join_element_wise(*parts, "/")


def escaped(text: str) -> str:
    """Return a text as Spark escapes it in the names of partitions."""
    return "".join(f"%{ord(each):02X}" if each in ESCAPED else each for each in text)


class LineEncoder:
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


def open_encoder(kind: str, stream: Stream, schema: pa.Schema, compression: str) -> Any:
    """Return the encoder of a format of :data:`ha.spark.sink.options.COMPRESSIONS`; its end leaves the stream open."""
    if kind == "parquet":
        return pyarrow.parquet.ParquetWriter(stream, schema, compression=compression, store_schema=False)
    if kind == "orc":
        return pyarrow.orc.ORCWriter(stream, compression="uncompressed" if compression == "none" else compression)
    return LineEncoder(stream)
