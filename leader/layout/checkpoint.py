"""One completed checkpoint, and the name of the entry that holds all of it.

    <query>=<batch>~<id>~<writing>~<duration ms>~<rows>~<state rows>~<state bytes>~<offsets>

So a checkpoint needs no DataNode, and it is there as a whole or not at all. Unknown fields are empty. If the name does
not fit, the offsets are shortened, then dropped, and then the other metadata are dropped.
"""

import re
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from leader.errors import InvalidName
from leader.layout import names
from store.files import MAX_COMPONENT_BYTES
from store.paths import STAGING

MAX_ID = 10**18 - 1  # numbers in names have at most 18 digits; Spark's own ids are 64-bit integers from 0
_NUMBER = r"(0|[1-9][0-9]{0,17})"
_ID = r"([1-9][0-9]{0,17})"
_WRITING = r"([1-9][0-9]{0,3})"
_ENTRY = re.compile(rf"([A-Za-z0-9._-]+)={_NUMBER}~{_ID}~{_WRITING}" + rf"~(?:{_NUMBER})?" * 4 + r"~([A-Za-z0-9._-]*)")
_FIRST_LETTERS = {"_6e": "n", "_2e": "."}  # only at the start of names that mean something else; see `_escape`

_CUT = "..."

_PARSED = 4096  # names whose entries are remembered: leaders and readers list the same ones again and again


@dataclass(frozen=True, slots=True)
class Metadata:
    """The description of a completed batch beside its number; unknown fields are None or empty.

    Attributes:
        duration_ms: how long the batch took, in milliseconds.
        rows: read from the sources in this batch.
        state_rows: in all state stores of the query after it.
        state_bytes: of memory that these use.
        offsets: a short text that says how far the sources were read; a longer one is cut.
    """

    duration_ms: int | None = None
    rows: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    offsets: str = ""

    @property
    def rows_per_second(self) -> float | None:
        """Rows read by the duration of the batch, as Spark's ``processedRowsPerSecond``; None if either is unknown."""
        return None if self.rows is None or not self.duration_ms else self.rows * 1000 / self.duration_ms


NOTHING = Metadata()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One completed checkpoint.

    Attributes:
        query: the query's name.
        batch: Spark's id of the batch, from 0.
        id: the checkpoint's, from the job's counter.
        metadata: what else is known of it.
    """

    query: str
    batch: int
    id: int
    metadata: Metadata = NOTHING

    @property
    def order(self) -> tuple[int, int]:
        """Of two checkpoints of one query, the newer one has the greater order."""
        return self.batch, self.id


@dataclass(frozen=True, slots=True)
class CheckpointEntry:
    """One entry of a query; several of the same checkpoint differ in their ``writing`` alone, see ``names.written``."""

    checkpoint: Checkpoint
    writing: int = 1

    @property
    def order(self) -> tuple[int, int, int]:
        """Of several entries of one query, the one with the greatest order counts."""
        return *self.checkpoint.order, self.writing

    @property
    def name(self) -> str:
        """The entry's name."""
        return _name(self.checkpoint, self.writing)

    @classmethod
    @lru_cache(_PARSED)
    def parse(cls, name: str) -> "CheckpointEntry | None":
        """Read a name; None if :attr:`name` would not write it exactly like this."""
        match = _ENTRY.fullmatch(name)
        if not match:
            return None
        batch, number, writing = int(match[2]), int(match[3]), int(match[4])
        first = _FIRST_LETTERS.get(match[1][:3])
        try:
            query = first + names.unescape(match[1][3:]) if first else names.unescape(match[1])
            duration, rows, state_rows, state_bytes = (int(each) if each else None for each in match.groups()[4:8])
            known = Metadata(duration, rows, state_rows, state_bytes, names.unescape(match[9]))
            entry = cls(Checkpoint(query, batch, number, known), writing)
            return entry if fit(entry.checkpoint) == entry.checkpoint and entry.name == name else None
        except InvalidName:
            return None


def fit(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint with as much of its metadata as its entry's name can hold; InvalidName if nothing helps."""
    if not checkpoint.query:
        raise InvalidName("A query needs a name to have its checkpoints published: set queryName.")
    if not 0 <= checkpoint.batch <= MAX_ID:
        raise InvalidName(f"{checkpoint.batch} is not the id of a batch: those are from 0 to {MAX_ID:,}.")
    _check_numbers(checkpoint.metadata)
    longest = Checkpoint(checkpoint.query, MAX_ID, MAX_ID)  # refused at its first batch, and not at some later one
    names.check_component(_name(longest, names.MAX_WRITING), f"The name of query {checkpoint.query!r}")
    bare = replace(checkpoint, metadata=replace(checkpoint.metadata, offsets=""))
    room = MAX_COMPONENT_BYTES - len(_name(bare, names.MAX_WRITING))
    if room < 0:
        return replace(checkpoint, metadata=NOTHING)
    return replace(bare, metadata=replace(bare.metadata, offsets=_cut(checkpoint.metadata.offsets, room)))


def _check_numbers(metadata: Metadata) -> None:
    for field in fields(Metadata):
        value = getattr(metadata, field.name)
        if isinstance(value, int) and not 0 <= value <= MAX_ID:
            raise InvalidName(f"{field.name} of a checkpoint is {value}: it must be from 0 to {MAX_ID:,}, or None.")


def _cut(text: str, room: int) -> str:
    """As much of the text as fits into so many bytes once it is escaped; a text that was cut ends with dots."""
    if len(names.escape(text)) <= room:
        return text
    short = text[: max(room - len(_CUT), 0)]
    while short and len(names.escape(short)) > room - len(_CUT):
        short = short[:-1]
    return short + _CUT if short else ""


def _name(checkpoint: Checkpoint, writing: int) -> str:
    known = checkpoint.metadata
    numbers = (known.duration_ms, known.rows, known.state_rows, known.state_bytes)
    texts = ("" if number is None else str(number) for number in numbers)
    return "~".join(
        (
            f"{_escape(checkpoint.query)}={checkpoint.batch}",
            str(checkpoint.id),
            str(writing),
            *texts,
            names.escape(known.offsets),
        )
    )


def _escape(query: str) -> str:
    """Escape a query's name; also one that is called like the counter, or like the drivers' own files."""
    if query == "next" or query.startswith(STAGING):
        return f"_{ord(query[0]):02x}{names.escape(query[1:])}"
    return names.escape(query)
