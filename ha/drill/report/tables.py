"""Tables of events: a history as a Parquet file, one row for each event, in the order of time.

A column that an event's kind does not have is null in its row. So is an empty text, number or map: a lookup without a
leader has no epoch. A boolean is never null where the kind has it. Where the end of a belief is null, the contender
believes nothing.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ha.drill.outcome import Outcome
from ha.history.events import Event

_MAX_STEM = 100
"""Characters of a file's name that come from the drill: with a hash and a suffix, any file system takes it."""


class Key(NamedTuple):
    """The key of an outcome within one report; a plain tuple of the three is as good.

    Attributes:
        drill: its name.
        environment: where it ran.
        provider: what kept the job available.
    """

    drill: str
    environment: str
    provider: str

    @classmethod
    def of(cls, outcome: Outcome) -> "Key":
        """Return the key of an outcome."""
        return cls(outcome.drill, outcome.environment, outcome.provider)

    @property
    def stem(self) -> str:
        """A name for files and anchors, in ASCII; what had to be changed for it is told apart by a hash."""
        plain = "-".join(self)
        clean = re.sub(r"[^A-Za-z0-9_.-]+", "-", plain).strip("-.")[:_MAX_STEM]
        if clean == plain:
            return plain
        digest = hashlib.sha256("\0".join(self).encode("utf-8", "surrogatepass")).hexdigest()
        return f"{clean}-{digest[:8]}"

    @property
    def table(self) -> str:
        """Path of its Parquet file, relative to the report's folder."""
        return f"events/{self.stem}.parquet"


_MEANINGS: Mapping[str, tuple[pa.DataType, str]] = {
    "drill": (pa.string(), "name of the drill"),
    "environment": (pa.string(), "where it ran"),
    "provider": (pa.string(), "what kept the job available"),
    "at": (pa.float64(), "boot-clock seconds of the host; of a call: when it began"),
    "kind": (pa.string(), "of event: believed, granted, lookedup, ..."),
    "job": (pa.string(), "the job; null if it concerns all"),
    "who": (pa.string(), "contender or reader; null if nobody in particular"),
    "ended": (pa.float64(), "of a call: when it ended, on the same clock as at"),
    "epoch": (pa.int64(), "of the leader"),
    "session_id": (pa.string(), "of the leader"),
    "reason": (pa.string(), "of a grant or a revocation"),
    "leads_until": (pa.float64(), "believed: until then it leads; null if it does not"),
    "holds_until": (pa.float64(), "believed: until then nobody else can lead; null if anybody can"),
    "running": (pa.bool_(), "ran: whether the command was started, or has ended"),
    "outcome": (pa.string(), "lookedup: leader, none or unreachable"),
    "source": (pa.string(), "lookedup: snapshot, zookeeper or hdfs"),
    "verified": (pa.bool_(), "lookedup: whether HDFS has said the same"),
    "stale": (pa.bool_(), "lookedup: whether it is only the last that was known"),
    "timeout": (pa.float64(), "lookedup: seconds that it was given"),
    "endpoints": (pa.map_(pa.string(), pa.string()), "addresses by name"),
    "query": (pa.string(), "completed: the streaming query"),
    "batch": (pa.int64(), "completed: the batch"),
    "id": (pa.int64(), "counted: the checkpoint id"),
    "next_id": (pa.int64(), "checkpointsread: the next checkpoint id"),
    "queries": (pa.map_(pa.string(), pa.int64()), "checkpointsread: newest batch by query"),
    "operation": (pa.string(), "stored, copied: what the store executed"),
    "path": (pa.string(), "stored, copied: on what; a rename's source"),
    "target": (pa.string(), "stored: a rename's destination"),
    "by": (pa.string(), "stored: the process that sent it"),
    "owner": (pa.int64(), "copied: session of the node, 0 if it is not ephemeral"),
    "session": (pa.int64(), "copied: of who changed it, 0 if unknown"),
    "data": (pa.string(), "copied: what the node holds now"),
    "what": (pa.string(), "fault: what was broken or mended"),
}

SCHEMA = pa.schema([pa.field(name, kind, metadata={"comment": says}) for name, (kind, says) in _MEANINGS.items()])
"""The columns of every file, each with its meaning as the field's metadata."""

_WHO = {"contender", "reader"}


def write_events(events: Sequence[Event], key: Key | tuple[str, str, str], path: Path) -> None:
    """Write a history into one file; a file that is there is overwritten.

    Args:
        events: in any order.
        key: drill, environment and provider, the same in every row.
        path: of the file; its folder exists.

    Raises:
        ValueError: a number is too large for its column.
        OSError: the file cannot be written.
    """
    rows = [_row(event, key) for event in sorted(events, key=lambda event: event.at)]
    columns = {name: [row.get(name) for row in rows] for name in SCHEMA.names}
    try:
        table = pa.table(columns, schema=SCHEMA)
    except (OverflowError, pa.ArrowException) as error:
        raise ValueError(f"The history of drill {key[0]!r} does not fit its columns: {error}.") from error
    pq.write_table(table, path, compression="zstd")


def read_events(path: Path) -> list[Event]:
    """Read a history back, in the order of time.

    Raises:
        ValueError: the file is not one that :func:`write_events` wrote.
        OSError: it cannot be read.
    """
    try:
        table = pq.ParquetFile(path).read()
        found = [event for kind in pc.unique(table["kind"]).to_pylist() for event in _events(table, _KINDS[kind])]
    except (pa.ArrowException, KeyError, msgspec.ValidationError) as error:
        raise ValueError(f"{path.name} holds no history: {error}.") from error
    return [event for _, event in sorted(found, key=lambda numbered: numbered[0])]


def _row(event: Event, key: tuple[str, str, str]) -> dict[str, Any]:
    blanks = _BLANKS[event.__class__]
    row = {name: _said(value, blanks[name]) for name, value in msgspec.structs.asdict(event).items()}
    for name in _WHO & row.keys():
        row["who"] = row.pop(name)
    row["drill"], row["environment"], row["provider"] = key
    row["kind"] = event.__struct_config__.tag
    return row


def _said(value: Any, blank: Any) -> Any:
    if isinstance(value, float):
        return None if math.isnan(value) or value == -math.inf else value
    return None if value == blank and not isinstance(value, bool) else value


def _events(table: pa.Table, kind: type[Event]) -> Iterator[tuple[int, Event]]:
    """Yield all events of a kind with the numbers of their rows; other kinds' columns are not read."""
    blanks = _BLANKS[kind]
    mask = pc.equal(table["kind"], kind.__struct_config__.tag)
    rows = table.filter(mask).select(["who" if name in _WHO else name for name in blanks]).rename_columns([*blanks])
    said = [
        {name: blanks[name] if value is None else value for name, value in row.items()}
        for row in rows.to_pylist(maps_as_pydicts="strict")
    ]
    numbers = pc.indices_nonzero(mask).to_pylist()
    yield from zip(numbers, msgspec.convert(said, list[kind]), strict=True)  # type: ignore[valid-type]  # known at run time


def _blank(field: msgspec.structs.FieldInfo) -> Any:
    """Return the value of a field that says nothing."""
    if field.default is not msgspec.NODEFAULT:
        return field.default
    if field.type is str:
        return ""
    return {} if get_origin(field.type) is Mapping else None


_KINDS: Mapping[str, type[Event]] = {kind.__struct_config__.tag: kind for kind in get_args(Event)}
_BLANKS = {kind: {each.name: _blank(each) for each in msgspec.structs.fields(kind)} for kind in _KINDS.values()}
