"""Hostile inputs that once caused a traceback, a hang or a wrong belief."""

import math
import struct
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from ha.cli.options import printable
from ha.config.addresses import parse_listen
from ha.config.sources import load
from ha.program.deadline_file import DeadlineReader
from ha.sandbox.polling import SandboxError
from ha.sandbox.state import Directory
from ha.views.ages import at_time
from leader.errors import InvalidName, InvalidSettings, Unreadable
from leader.job import status
from leader.job.admin import JobAdmin
from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import Status, StatusEntry
from leader.layout import checkpoint_list, checkpoint_state
from leader.layout.checkpoint import MAX_ID, Checkpoint, CheckpointEntry
from leader.layout.checkpoint_state import CheckpointState
from leader.layout.information import EndpointEntry, Record
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from store import hadoop_errors as hadoop
from store import paths
from store.bounded import BoundedFiles
from store.errors import Invalid, StoreError, Unknown
from store.files import Entry, Files
from store.hdfs import _classify
from store.open import open_files
from store.zookeeper import Connection, ZooKeeper
from store.zookeeper.address import parse
from tests.patience import FACTOR, PATIENCE_S
from tests.system.hostile.properties import web
from tests.system.hostile.properties.names import OWNER
from tests.system.hostile.properties.remote import answering

DIRECTORY = LeaderDirectory(7, OWNER)


# --- settings


@pytest.mark.parametrize(
    "data",
    [
        b"short_ttl = " + b"9" * 5000, b"short_ttl = 0x" + b"f" * 5000, b"files = [0x" + b"f" * 5000 + b"]",
        b"a = " + b"[" * 5000, b"a = " + b"{a=" * 5000, b"# " + b"x" * 1_000_000,
    ],
    ids=lambda data: str(data[:20]),
)  # fmt: skip
def test_a_file_that_python_cannot_read_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "ha.toml").write_bytes(data)
    with pytest.raises(InvalidSettings) as caught:
        load({}, {"HA_CONFIG": str(tmp_path / "ha.toml")})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500 + len(str(tmp_path))


@pytest.mark.parametrize("path", ["a\0b", "a\nb", "\x1b[2J"])
def test_a_path_that_is_none_is_shown_in_quotes(path: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load({}, {"HA_CONFIG": f"/no/where/{path}"})
    assert str(caught.value).isprintable()


def test_a_variable_that_is_not_utf_8_is_one_sentence() -> None:
    with pytest.raises(InvalidSettings, match=r"short_ttl in the environment is '\\udce4': it must be a number"):
        load({}, {"HA_SHORT_TTL": "\udce4"})


@pytest.mark.parametrize("name", ["stop_grace", "audit"])
def test_no_wait_is_longer_than_a_thread_can_wait(name: str) -> None:
    for value in (math.inf, 1e10):
        with pytest.raises(InvalidSettings, match=f"{name} is .* s: it must be at most 999,999"):
            load({name: value}, {})


def test_the_default_root_is_a_uri_as_hadoop_writes_it(tmp_path: Path) -> None:
    state = tmp_path / "Ä b%20"
    settings = load({}, {"XDG_STATE_HOME": str(state), "HA_CONFIG": ""})
    with open_files(settings.stores.files) as files:
        files.call("make_root", lambda driver: driver.make_root(), PATIENCE_S)
    assert (state / "hybrid-ha" / "jobs").is_dir(), "and not a directory with escapes in its name"


@pytest.mark.parametrize("listen", ["h:" + "1" * 5000, "h:\u0661", "h:007", "\0:1", "\udcff:1", "[[::1]]:1", "[]:1"])
def test_what_is_no_address_to_listen_at(listen: str) -> None:
    with pytest.raises(InvalidSettings, match="it must be host:port"):
        parse_listen(listen)


@pytest.mark.parametrize(
    "uri",
    [
        *("hdfs://ho\nst:8020/ha", "hdfs://host:8020/h\ta", " hdfs://host:8020/ha", "hdfs://host:8020/ha\n"),
        *("hdfs://host:08020/ha", "hdfs://ho st:8020/ha", "webhdfs://a;http://b:1/ha", "webhdfs://a,b:1/ha"),
        *("hdfs://[::1]x:8020/ha", "hdfs://%00:8020/ha", "hdfs://\ud800:8020/ha"),
    ],
)
def test_a_uri_has_no_second_way_to_write_it(uri: str) -> None:
    with pytest.raises(Invalid):
        open_files(uri)


@pytest.mark.parametrize("encoding", ["foo", "utf-7", "utf-32", "idna", "hex", "undefined", "punycode"])
def test_hadoops_configuration_in_an_encoding_that_nobody_reads(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "core-site.xml"
    file.write_text(f'<?xml version="1.0" encoding="{encoding}"?><a/>')
    with pytest.raises(Invalid, match=r"core-site\.xml cannot be read"):
        hadoop._read(file)


@pytest.mark.parametrize("text", ["[.]:1", "[a%b]:1"])
def test_an_ensembles_address_is_printed_so_that_it_is_taken_again(text: str) -> None:
    try:
        address = parse(text, "/ha")
    except Invalid:
        return
    assert parse(str(address), "/ha") == address


# --- names and records


@pytest.mark.parametrize(
    "name",
    [
        "endpoint~0000000007~1~0~rest=a",  # a second way to say that there are none
        "endpoint~0000000007~1~1~=",
        "endpoint~0000000007~1~1~rest=",
        "endpoint~0000000007~1~65~rest=a",
        "endpoint~0000000007~1~1~rest=" + "a" * 220,  # fits only as long as the version has few digits
    ],
)
def test_what_no_leader_publishes_is_no_endpoint(name: str) -> None:
    assert EndpointEntry.parse(name) is None
    assert Record.parse([name]).published("orders", DIRECTORY) is None


def test_of_two_leases_of_one_sequence_all_readers_see_the_same() -> None:
    leases = [Lease(3, Mode.HDFS, 6000, OWNER, "", contender).name for contender in "ab"]
    assert Record.parse(leases) == Record.parse(reversed(leases))


@pytest.mark.parametrize("field", [b'"next_id":3', b'"batch":2'])
def test_numbers_of_a_thousand_digits_are_no_checkpoints(field: bytes) -> None:
    good = checkpoint_state.encode(CheckpointState("orders", 7, OWNER, 3, {"daily": Checkpoint("daily", 2, 1)}))
    assert good is not None
    assert checkpoint_state.decode(good, "orders") is not None
    assert good.count(field) == 1
    assert checkpoint_state.decode(good.replace(field, field + b"0" * 1000), "orders") is None


class Listing:
    def __init__(self, *names: str) -> None:
        self.names = names
        self.renamed: list[tuple[str, str]] = []

    def list(self, _: str) -> list[Entry]:
        return [Entry(name, True, 0, 0) for name in self.names]

    def rename(self, source: str, target: str) -> None:
        self.renamed.append((source, target))

    def close(self) -> None:
        """There is nothing to close."""


def listing(*names: str) -> Files:
    return cast("Files", Listing(*names))


def test_a_counter_at_zero_is_not_ours() -> None:
    with pytest.raises(Unreadable, match="'next=0' among the checkpoints of job 'orders' cannot be read"):
        checkpoint_list.parse(["next=0", "next=5"], "orders", DIRECTORY)
    assert CheckpointEntry.parse("next=0") is None


def test_the_last_id_is_not_followed_by_the_first() -> None:
    """The next number has 19 digits, which no reader accepts."""
    driver = Listing(f"next={MAX_ID}")
    with BoundedFiles(lambda: cast("Files", driver), uri="file:///x") as files:
        ids = Checkpoints(FencedDirectory(files, "orders", DIRECTORY, 10.0))
        with pytest.raises(InvalidName, match="end at 999,999,999,999,999,999"):
            ids.next()
    assert driver.renamed == []


@pytest.mark.parametrize("query", ["next", ".staging", ".staging-x"])
def test_a_query_may_be_called_like_something_else(query: str) -> None:
    entry = CheckpointEntry(Checkpoint(query, 7, 1))
    assert paths.check(entry.name) == entry.name
    found = checkpoint_list.parse([entry.name, "next=1"], "orders", DIRECTORY)
    assert (found.next_id, found.newest(query)) == (1, entry)


def test_of_several_states_the_furthest_counts_in_whatever_order() -> None:
    names = ("status=FINISHED", "status=RUNNING", "status=CREATED")
    for each in (names, names[::-1]):
        assert status.pick(each) == StatusEntry(Status.FINISHED)


def test_strangers_among_the_contenders_are_left_out() -> None:
    """Rich took such a name for markup and raised an error."""

    def call(*_: object) -> list[str]:
        return ["b", "[/red]", "a", "\x1b[2J"]

    zookeeper = SimpleNamespace(start=lambda: None, wait=lambda _: Connection.CONNECTED, call=call)
    found = JobAdmin(cast("BoundedFiles", None), cast("ZooKeeper", zookeeper), 1.0).contenders("orders")
    assert found == ["a", "b"]


@pytest.mark.parametrize("at_ms", [10**30, -(10**18), 2**63 - 1])
def test_a_time_that_no_calendar_has(at_ms: int) -> None:
    assert at_time(at_ms) == "unknown"
    assert at_time(1_600_000_000_000) == "2020-09-13T12:26:40Z"


def test_an_address_prints_as_one_line() -> None:
    assert printable("a:1\norders: epoch 9\x1b[2J ä") == "a:1\\norders: epoch 9\\x1b[2J ä"


# --- the belief


@pytest.mark.parametrize("leads", [math.nan, math.inf, 1e300])
def test_numbers_that_no_sidecar_writes_lead_nobody_and_keep_no_guard_waiting(leads: float, tmp_path: Path) -> None:
    path = tmp_path / "belief"
    path.write_bytes(struct.pack("<Qdddd", 2, leads, leads, 0.0, 0.0))
    assert DeadlineReader(path).read() == (-math.inf, -math.inf)


def test_a_file_that_is_no_belief_leads_nobody(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("perhaps I lead, perhaps not, who knows that?")
    with pytest.raises(OSError, match="too long"):
        DeadlineReader(path)
    path.write_text("perhaps I lead, or perhaps I do not lead")
    assert not DeadlineReader(path).is_leader()


# --- what a NameNode says


def test_a_refusal_that_is_nested_deeply_is_unknown() -> None:
    with pytest.raises(Unknown, match="no reason"):
        answering(404, b"[" * 100_000).rename("a", "b")


@pytest.mark.parametrize("location", ["http://[::1", "http://[", "//[x"])
def test_a_location_that_is_no_uri(location: str) -> None:
    with pytest.raises(StoreError):
        answering(307, b"", Location=location).read("a", 10)


@pytest.mark.parametrize("field", ["pathSuffix", "length", "modificationTime"])
def test_an_entry_without_a_value_is_no_entry(field: str) -> None:
    entry: dict[str, Any] = {"pathSuffix": "a", "type": "FILE", "length": 1, "modificationTime": 1, field: None}
    body = msgspec.json.encode({"FileStatuses": {"FileStatus": [entry]}})
    with pytest.raises(Unknown):
        answering(200, body).list("a")


def test_a_message_of_a_megabyte_is_read_in_no_time() -> None:
    started = time.process_time()
    assert hadoop.refusal("IOException", "Source " + " and destination " * 60_000) is None
    assert time.process_time() - started < 20 * FACTOR


def test_a_backslash_in_a_message_is_one() -> None:
    error = _classify(RuntimeError(r'RPCError("x.IOException", "C:\\new \"dir\" \u{e9}\n\tat x")'))
    assert str(error) == r'x.IOException: C:\new "dir" é'


# --- requests


def test_a_path_with_a_slash_too_many_is_redirected_nowhere() -> None:
    """There was a redirect to the host that the request named, and a query that is not UTF-8 caused a traceback."""
    assert web.ask("GET", b"/livez/", [(b"host", b"elsewhere.example")])[0] == 421, "another host's requests end here"
    assert web.ask("GET", b"/livez/", [(b"host", b"localhost")])[0] == 404
    web.request(b"GET\n%0/\x94\x9a?\x9e\x9aer")
    web.request(b"GET\n/livez/?\x9e")
    web.request(b"GET\n/?\x9e")


# --- the sandbox's own file


@pytest.mark.parametrize(
    "data",
    [
        b'{"user":"a","servers":[],"x":' + b"[" * 100_000,
        b'{"user":"\xff","servers":[]}',
        b'{"user":"a","servers":[],"x":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
    ids=["cut", "not-utf-8", "deep"],
)
def test_a_state_that_cannot_be_read(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "sandbox.json").write_bytes(data)
    with pytest.raises(SandboxError, match=r"sandbox\.json cannot be read"):
        Directory(tmp_path).load()
