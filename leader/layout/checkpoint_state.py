"""Checkpoint state: a job's checkpoints as readers get them. The mirror in ZooKeeper holds exactly this."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import msgspec

from leader.layout import names
from leader.layout.checkpoint import MAX_ID, Checkpoint, Metadata
from leader.layout.information import MAX_RECORD_BYTES

FORMAT = 2  # version of the record in ZooKeeper. Readers ignore fields they do not know, and records of another format


@dataclass(frozen=True, slots=True)
class CheckpointState:
    """A job's checkpoints."""

    job: str  # the job's name
    epoch: int  # of the leader that wrote them
    session_id: str  # of the same leader
    next_id: int = 1  # the checkpoint id that will be handed out next
    # the newest completed checkpoint by query
    latest: Mapping[str, Checkpoint] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def queries(self) -> dict[str, int]:
        """The newest completed batch by query."""
        return {query: checkpoint.batch for query, checkpoint in self.latest.items()}


class _Latest(msgspec.Struct, frozen=True, omit_defaults=True):
    batch: int
    id: int
    duration_ms: int | None = None
    rows: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    offsets: str = ""


class _Wire(msgspec.Struct, frozen=True):
    format: int
    job: str
    epoch: int
    session_id: str
    next_id: int
    latest: dict[str, _Latest]


_decoder = msgspec.json.Decoder(_Wire)


def encode(state: CheckpointState) -> bytes | None:
    """Write the record for ZooKeeper; for many queries without metadata, for too many None: readers then ask HDFS."""
    for told in (_with_metadata, _without):
        latest = {query: told(checkpoint) for query, checkpoint in sorted(state.latest.items())}
        data = msgspec.json.encode(_Wire(FORMAT, state.job, state.epoch, state.session_id, state.next_id, latest))
        if len(data) <= MAX_RECORD_BYTES:
            return data
    return None


def _with_metadata(checkpoint: Checkpoint) -> _Latest:
    known = checkpoint.metadata
    return _Latest(
        checkpoint.batch,
        checkpoint.id,
        known.duration_ms,
        known.rows,
        known.state_rows,
        known.state_bytes,
        known.offsets,
    )


def _without(checkpoint: Checkpoint) -> _Latest:
    return _Latest(checkpoint.batch, checkpoint.id)


def decode(data: bytes, job: str) -> CheckpointState | None:
    """Read a record from ZooKeeper; None if it is not a valid record of this job in a format we know."""
    if not data or len(data) > MAX_RECORD_BYTES:
        return None
    try:
        wire = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if wire.format != FORMAT or wire.job != job or not names.is_session_id(wire.session_id):
        return None
    if not 0 < wire.epoch <= names.MAX_EPOCH or not 0 < wire.next_id <= MAX_ID:
        return None
    if not all(map(_in_range, wire.latest.values())):
        return None
    latest = {query: _checkpoint(query, told) for query, told in wire.latest.items()}
    return CheckpointState(job, wire.epoch, wire.session_id, wire.next_id, MappingProxyType(latest))


def _in_range(told: _Latest) -> bool:
    """Whether a name could hold these numbers; JSON sets no limit to integers."""
    numbers = (told.batch, told.duration_ms, told.rows, told.state_rows, told.state_bytes)
    return 0 < told.id <= MAX_ID and all(number is None or 0 <= number <= MAX_ID for number in numbers)


def _checkpoint(query: str, told: _Latest) -> Checkpoint:
    known = Metadata(told.duration_ms, told.rows, told.state_rows, told.state_bytes, told.offsets)
    return Checkpoint(query, told.batch, told.id, known)
