"""Fuzzing targets: families of decoders. Each family takes the same bytes, and starts from what the encoders write.

The properties are those of ``tests/system/hostile``. Here an engine searches for an input that breaks one, guided by
the lines of our code and the comparisons that it reaches.
"""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass

from leader.job import results
from leader.job.results import Result
from leader.job.status import Status
from leader.layout import checkpoint_state, information
from leader.layout.checkpoint import Checkpoint, CheckpointEntry, Metadata
from leader.layout.checkpoint_state import CheckpointState
from leader.layout.contact import ContactAddress, ContactEntry
from leader.layout.information import EndpointEntry, LeaderInformation
from leader.layout.lease import Lease, Mode, first_lease
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from leader.lookup.answers import Snapshot

# The properties are imported by the target that needs them: each is fuzzed in a process of its own, and some need much.
# ruff: noqa: PLC0415

OWNER = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"

Bytes = Callable[[bytes], None]
Text = Callable[[str], None]


@dataclass(frozen=True)
class Target:
    """One family of decoders.

    Attributes:
        holds: what must hold of any bytes.
        seeds: what the search starts with.
    """

    holds: tuple[Bytes, ...]
    seeds: tuple[bytes, ...]

    def check(self, data: bytes) -> None:
        """Raise an error unless every property of the family holds."""
        for each in self.holds:
            each(data)


def _of_text(holds: Text) -> Bytes:
    """Let a property take bytes as text: bytes that are not UTF-8 become lone surrogates, as in arguments and paths."""
    return lambda data: holds(data.decode("utf-8", "surrogateescape"))


def _texts(*each: Text) -> tuple[Bytes, ...]:
    return tuple(map(_of_text, each))


def _names() -> Target:
    from tests.system.hostile.properties import names

    directory = LeaderDirectory(42, OWNER)
    lease = Lease(7, Mode.ZOOKEEPER, 60_000, OWNER, "cafe0123-1001-2", "host-1", "_any")
    endpoint = EndpointEntry(42, 3, 1, "rest", "http://[::1]:8081/ä")
    none = EndpointEntry(42, 3, 0, "", "")
    contact = ContactEntry(42, OWNER, ContactAddress("2001:db8::1", 4711, "5eed" * 8))
    listing = (first_lease(NOBODY).name, lease.name, endpoint.name, none.name, contact.name)
    known = Metadata(850, 7, 100, 4096, "orders=12")
    queries = [
        CheckpointEntry(Checkpoint(query, 12, 3, known), 2).name for query in ("daily", "next", ".staging", "a b/ä")
    ]
    seeds = (
        *listing, "\n".join(listing), directory.name, f"{directory.name}~first-~host-1", *queries, "orders", "a/b.c",
        "status=FINISHED~cleaning-0123abcd~2", "state/0/0/7_3f2b-9a.zip", "sources/0/9.compact",
    )  # fmt: skip
    return Target(_texts(*names.ALL), tuple(each.encode() for each in seeds))


def _records() -> Target:
    from ha.agent import snapshots as wire
    from tests.system.hostile.properties import records

    leader = LeaderInformation("orders", 42, OWNER, {"jobmaster": "host:6123", "rest": "ä\0"}, 3)
    state = CheckpointState("orders", 42, OWNER, 8, {"daily": Checkpoint("daily", 7, 6)})
    belief = struct.pack("<Qdddd", 2, 1e6, 1e6, 1e6, 1e6)
    told = Snapshot("orders", 42, OWNER, leader, 1.0, 2.0, verified=True)
    sealed = (wire.encode(told, records.ORIGIN, 30.0), wire.encode_beat(records.ORIGIN, 1, 2.0, ""))
    bodies = tuple(each[9:-1] for each in sealed)
    greeting = ContactAddress("2001:db8::1", 4711, "5eed" * 8).greeting
    ended = results.encode(Result(Status.FAILED, b"why"))
    store = {"stateSchemaFilePaths": ["hdfs://n:1/a/state/0/_stateSchema/default/0_1"]}
    operator = f"v2\n{json.dumps({'stateStoreInfo': [store]})}".encode()
    copies = (information.encode(leader), checkpoint_state.encode(state) or b"")
    plain = (*copies, greeting, ended, operator, b"cafe0123", belief, b"")
    return Target(records.ALL, (*plain, *sealed, *bodies))


def _configuration() -> Target:
    from tests.system.hostile.properties import configuration

    seeds = (
        b"short_ttl = 6.5\n[a.b]\nc = [1, 0x1F, '''x''', 1979-05-27T07:32:00Z]\n",
        b'zookeeper = "zk:2181"\n',
        b'<?xml version="1.0" encoding="utf-8"?><a><property><name>b</name><value>c</value></property></a>',
        *(b"6e0", b"127.0.0.1:8300", b"[::1]:0", b"a:1,[fe80::1]:2/c", b"hdfs://host:8020/ha", b"file:///var/lib/ha"),
        *(b"webhdfs://[::1]:9870/a", b"jobmaster=host:6123", b"host-1", b"short_ttl", b"0.5"),
    )
    return Target((*configuration.BYTES, *_texts(*configuration.TEXTS)), seeds)


def _remote() -> Target:
    from tests.system.hostile.properties import remote

    entry = {"pathSuffix": "a", "type": "DIRECTORY", "length": 0, "modificationTime": 1_600_000_000_000}
    answers = (
        {"FileStatuses": {"FileStatus": [entry]}},
        {"boolean": True},
        {"RemoteException": {"exception": "FileNotFoundException", "message": "File does not exist: /ha/a"}},
    )
    sayings = (
        b"Source /a and destination /b must both be directories",
        b'RPCError("java.io.FileNotFoundException", "rename source /a is not found.\\n\\tat x\\u{e9}")',
        b"Connection refused (os error 111)",
        b"http://127.0.0.1:9864/webhdfs/v1/a?op=OPEN",
    )
    encoded = tuple(json.dumps(each).encode() for each in answers)
    return Target((*remote.BYTES, *_texts(*remote.TEXTS)), (*encoded, *sayings))


def _web() -> Target:
    from tests.system.hostile.properties import web

    seeds = (
        b"GET\n/api/v1/jobs/orders/leader\nHost\nexample:8300\n",
        b"POST\n/api/v1/jobs/orders?x=1\nTransfer-Encoding\nchunked\n0\r\n\r\n",
        b"HEAD\n/livez/\nHost\n[::1]\n",
        b"GET\n/metrics\nAccept\n*/*\n",
        b"GET\n/api/v1/jobs/%E4%00/leader",
        b"orders",
    )
    return Target(web.ALL, seeds)


TARGETS: dict[str, Callable[[], Target]] = {
    "names": _names,
    "records": _records,
    "configuration": _configuration,
    "remote": _remote,
    "web": _web,
}
