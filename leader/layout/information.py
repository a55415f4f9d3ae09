"""Leader information: job, epoch, session id and endpoints, as names in HDFS and as a record in ZooKeeper."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import msgspec

from leader.errors import InvalidName
from leader.layout import names
from leader.layout.lease import Lease, Mode

FORMAT = 1  # version of the record in ZooKeeper. Readers ignore fields they do not know, and records of another format
MAX_RECORD_BYTES = 65_536  # larger data in ZooKeeper is not ours and is not parsed; 250 of the longest endpoints fit
MAX_VERSION = 999_999_999  # publications within one session: one a second for thirty years
MAX_ENDPOINTS = 64  # more endpoints than that in one job is a mistake of the caller

_ENDPOINT = re.compile(
    r"endpoint~([0-9]{10})~([1-9][0-9]{0,8})~(0|[1-9][0-9]?)~([A-Za-z0-9][A-Za-z0-9._-]{0,63}|)=([A-Za-z0-9._-]*)"
)


class LeaderInformation(msgspec.Struct, frozen=True):
    """The leader of a job, and its addresses."""

    job: str  # the job's name
    epoch: int  # orders versions; a later leader has a higher one
    session_id: str  # the leader session's UUID, the version of this information
    # address by name; addresses are opaque
    endpoints: Mapping[str, str] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    version: int = 1  # counts the publications within the session, from 1


def check_endpoints(endpoints: Mapping[str, str]) -> dict[str, str]:
    """Return the endpoints if they can be published; InvalidName says which name or address cannot be stored."""
    if len(endpoints) > MAX_ENDPOINTS:
        raise InvalidName(f"{len(endpoints)} endpoints are too many: at most {MAX_ENDPOINTS} are allowed.")
    for name, address in endpoints.items():
        _check_endpoint(name, address, len(endpoints))
    return dict(endpoints)


def _check_endpoint(name: str, address: str, count: int) -> None:
    """Raise :class:`InvalidName` unless this one of ``count`` endpoints can be published at any epoch and version."""
    names.check_word(name, "an endpoint")
    if not address:
        raise InvalidName(f"The address of endpoint {name!r} is {address!r}: give a text that is not empty.")
    entry = EndpointEntry(names.MAX_EPOCH, MAX_VERSION, count, name, address).name
    names.check_component(entry, f"The address of endpoint {name!r}")


CONTACT = "contact~"  # begins the name of an entry that says where the leader's process listens
PAUSE = "paused~"
BAR = "barred~"

REMEMBERED = 1024  # parsed names that are kept: a reader of a record has read most of its names before


class EndpointEntry(msgspec.Struct, frozen=True, order=True):
    """One entry of a publication, which counts only when all its ``count`` entries are there."""

    # Without endpoints: one entry with an empty name and the count 0.

    epoch: int
    version: int
    count: int
    endpoint: str
    address: str

    @property
    def name(self) -> str:
        """The entry's name."""
        return f"endpoint~{self.epoch:010d}~{self.version}~{self.count}~{self.endpoint}={names.escape(self.address)}"

    @classmethod
    @lru_cache(maxsize=REMEMBERED)
    def parse(cls, name: str) -> "EndpointEntry | None":
        """Read a name; None if no leader could have published it."""
        match = _ENDPOINT.fullmatch(name)
        if not match:
            return None
        epoch, version, count, endpoint = int(match[1]), int(match[2]), int(match[3]), match[4]
        if count == 0:
            return cls(epoch, version, 0, "", "") if not endpoint and not match[5] else None
        try:
            address = names.unescape(match[5])
            _check_endpoint(endpoint, address, count)
        except InvalidName:
            return None
        return cls(epoch, version, count, endpoint, address) if count <= MAX_ENDPOINTS else None


def endpoint_entries(information: LeaderInformation) -> frozenset[EndpointEntry]:
    """The entries that publish the information."""
    epoch, version, endpoints = information.epoch, information.version, information.endpoints
    if not endpoints:
        return frozenset({EndpointEntry(epoch, version, 0, "", "")})
    count = len(endpoints)
    return frozenset(EndpointEntry(epoch, version, count, name, address) for name, address in endpoints.items())


class Record(msgspec.Struct, frozen=True, cache_hash=True):
    """One listing of the record directory."""

    lease: Lease | None  # the lease entry; None if somebody outside the protocol has deleted it
    entries: frozenset[EndpointEntry]  # all endpoint entries, including those of earlier epochs
    # names of all contact entries, old ones too; `leader.layout.contact` reads them, for standbys
    contacts: frozenset[str] = frozenset()
    # names of what operators have said of pauses; `leader.layout.pause` reads them
    pauses: frozenset[str] = frozenset()
    bars: frozenset[str] = frozenset()  # names of entries that bar a contender; `leader.layout.bar` reads them

    @classmethod
    def parse(cls, entry_names: Iterable[str]) -> "Record":
        """Read the names of the directory's entries; names that are not ours are ignored."""
        return cls._parse(tuple(entry_names))

    @classmethod
    @lru_cache(maxsize=REMEMBERED)
    def _parse(cls, entry_names: tuple[str, ...]) -> "Record":
        lease: Lease | None = None
        entries, contacts, pauses, bars = set(), set(), set(), set()
        for name in entry_names:
            if found := Lease.parse(name):
                # Only damage from outside makes two leases of one sequence. The name decides: lists have no order.
                lease = max(lease, found, key=lambda each: (each.sequence, each.name)) if lease else found
            elif entry := EndpointEntry.parse(name):
                entries.add(entry)
            elif name.startswith(CONTACT):
                contacts.add(name)
            elif name.startswith(PAUSE):
                pauses.add(name)
            elif name.startswith(BAR):
                bars.add(name)
        return cls(lease, frozenset(entries), frozenset(contacts), frozenset(pauses), frozenset(bars))

    @lru_cache(maxsize=REMEMBERED)  # noqa: B019  # records are values, and few
    def published(self, job: str, directory: names.LeaderDirectory) -> LeaderInformation | None:
        """The newest complete publication of the directory's own epoch; None before the first."""
        # Also None if another session holds the lease: it has seized the lease but not yet claimed the directory.
        if self.lease is not None and self.lease.owner != directory.session_id:
            return None
        versions: dict[int, list[EndpointEntry]] = {}
        for entry in self.entries:
            if entry.epoch == directory.epoch:
                versions.setdefault(entry.version, []).append(entry)
        complete = [version for version, found in versions.items() if _complete(found)]
        if not complete:
            return None
        version = max(complete)
        endpoints = {entry.endpoint: entry.address for entry in versions[version] if entry.count}
        return LeaderInformation(job, directory.epoch, directory.session_id, MappingProxyType(endpoints), version)

    @property
    def released(self) -> bool:
        """Whether the lease says that it has no holder."""
        return self.lease is not None and self.lease.mode is Mode.RELEASED


def _complete(found: list[EndpointEntry]) -> bool:
    """Whether the entries make up a whole version: all there, agreeing on their count, no name twice."""
    counts = {max(1, entry.count) for entry in found}
    return counts == {len(found)} and len({entry.endpoint for entry in found}) == len(found)


class _Wire(msgspec.Struct, frozen=True):
    format: int
    job: str
    epoch: int
    session_id: str
    version: int
    endpoints: dict[str, str]


_decoder = msgspec.json.Decoder(_Wire)


def encode(information: LeaderInformation) -> bytes:
    """Write the record for ZooKeeper: JSON, because people read it when they are paged at night."""
    endpoints = dict(sorted(information.endpoints.items()))
    return msgspec.json.encode(
        _Wire(FORMAT, information.job, information.epoch, information.session_id, information.version, endpoints)
    )


def decode(data: bytes, job: str) -> LeaderInformation | None:
    """Read a record from ZooKeeper; None if it is not a valid record of this job in a format we know."""
    if not data or len(data) > MAX_RECORD_BYTES:
        return None
    try:
        wire = _decoder.decode(data)
        endpoints = check_endpoints(wire.endpoints)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidName):
        return None
    if wire.format != FORMAT or wire.job != job or not names.is_session_id(wire.session_id):
        return None
    if not 0 < wire.epoch <= names.MAX_EPOCH or not 0 < wire.version <= MAX_VERSION:
        return None
    return LeaderInformation(job, wire.epoch, wire.session_id, MappingProxyType(endpoints), wire.version)
