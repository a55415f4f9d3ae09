"""The format of snapshot files: a checksum, and JSON that people can read. No I/O.

A file counts only as an agent wrote it: half a file, a changed byte, another format, job, cluster or boot void it.
"""

import zlib
from types import MappingProxyType

import msgspec

from leader.errors import InvalidName
from leader.layout import names
from leader.layout.information import MAX_RECORD_BYTES, MAX_VERSION, LeaderInformation, check_endpoints
from leader.lookup.answers import Snapshot
from leader.timing import LONGEST

FORMAT = 1  # readers ignore fields that they do not know, and snapshots of another format

MAX_SNAPSHOT_BYTES = MAX_RECORD_BYTES + 4096
"""Longer files are not parsed. The longest record fits, with all that is said about it."""

_CHECKSUM = 9  # bytes of the checksum: eight hexadecimal digits and a line break


class Origin(msgspec.Struct, frozen=True):
    """Whose snapshots count: those of an agent that asks the same stores, in the same boot of the same host."""

    cluster: str  # see :class:`ha.config.snapshot_dir.SnapshotDirectory`
    boot: str  # see :class:`ha.config.snapshot_dir.SnapshotDirectory`


class _Wire(msgspec.Struct, frozen=True):
    format: int
    cluster: str
    boot: str
    job: str
    epoch: int
    session_id: str
    version: int
    endpoints: dict[str, str] | None
    at: float
    good_until: float
    verified: bool
    audit: float


class _Beat(msgspec.Struct, frozen=True):
    format: int
    cluster: str
    boot: str
    pid: int
    good_until: float
    http: str


_decoder = msgspec.json.Decoder(_Wire)
_beat_decoder = msgspec.json.Decoder(_Beat)


def encode(snapshot: Snapshot, origin: Origin, audit: float) -> bytes:
    """Return a snapshot as bytes; ``audit`` is the time in seconds within which the agent corrects what is stale."""
    information = snapshot.information
    return _sealed(
        msgspec.json.encode(
            _Wire(
                FORMAT,
                origin.cluster,
                origin.boot,
                snapshot.job,
                snapshot.epoch,
                snapshot.session_id,
                information.version if information is not None else 0,
                dict(sorted(information.endpoints.items())) if information is not None else None,
                snapshot.at,
                snapshot.good_until,
                snapshot.verified,
                audit,
            )
        )
    )


def decode(data: bytes, job: str, origin: Origin, audit: float) -> Snapshot | None:
    """Return the snapshot; None unless it is of this job and origin, and corrected within ``audit`` seconds."""
    body = _unsealed(data)
    if body is None:
        return None
    try:
        wire = _decoder.decode(body)
        endpoints = check_endpoints(wire.endpoints) if wire.endpoints is not None else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidName):
        return None
    ours = (wire.format, wire.cluster, wire.boot, wire.job) == (FORMAT, origin.cluster, origin.boot, job)
    if not ours or not _makes_sense(wire) or wire.audit > audit:
        return None
    information = None
    if endpoints is not None:
        information = LeaderInformation(job, wire.epoch, wire.session_id, MappingProxyType(endpoints), wire.version)
    return Snapshot(job, wire.epoch, wire.session_id, information, wire.at, wire.good_until, wire.verified)


def _makes_sense(wire: _Wire) -> bool:
    """Whether an agent can have written these values; a comparison with a NaN is false."""
    in_time = 0 < wire.audit <= LONGEST and 0 <= wire.at <= wire.good_until <= wire.at + wire.audit
    if wire.epoch == 0:
        return in_time and wire.session_id == "" and wire.endpoints is None
    leads = wire.endpoints is None or 0 < wire.version <= MAX_VERSION
    return in_time and leads and 0 < wire.epoch <= names.MAX_EPOCH and names.is_session_id(wire.session_id)


def encode_beat(origin: Origin, pid: int, good_until: float, http: str) -> bytes:
    """Return the bytes that say until when there is an agent, and where its HTTP API answers."""
    return _sealed(msgspec.json.encode(_Beat(FORMAT, origin.cluster, origin.boot, pid, good_until, http)))


def decode_beat(data: bytes, origin: Origin) -> float:
    """Return until when there is an agent, in boot-clock seconds; minus infinity if the bytes do not say."""
    body = _unsealed(data)
    if body is not None:
        try:
            beat = _beat_decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return float("-inf")
        if (beat.format, beat.cluster, beat.boot) == (FORMAT, origin.cluster, origin.boot):
            return beat.good_until
    return float("-inf")


def _sealed(body: bytes) -> bytes:
    return b"%08x\n%b\n" % (zlib.crc32(body), body)


def _unsealed(data: bytes) -> bytes | None:
    body = data[_CHECKSUM:-1]
    return body if len(data) <= MAX_SNAPSHOT_BYTES and _sealed(body) == data else None
