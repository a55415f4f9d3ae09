"""Contacts: where leaders' processes listen, in HDFS, and their greetings."""

from dataclasses import replace

import pytest

from leader.layout.contact import (
    GREETING_BYTES,
    MOST_NOTICE_BYTES,
    ContactAddress,
    ContactEntry,
    ReleaseNotice,
    entries,
    greeted_by,
    holders,
)
from leader.layout.information import Record
from leader.layout.lease import Lease, Mode
from leader.layout.names import MAX_EPOCH, MAX_REACHED, LeaderDirectory
from store.files import MAX_COMPONENT_BYTES
from tests.unit.leader.samples import A, B

PROCESS = "0123456789abcdef" * 2
WHERE = ContactAddress("10.0.0.1", 4711, PROCESS)
DIRECTORY = LeaderDirectory(7, A)
ENTRY = ContactEntry(7, A, WHERE)
LEASE = Lease(5, Mode.HDFS, 6000, A, "", "a")


def record(*entries: ContactEntry, lease: Lease | None = LEASE) -> Record:
    names = [each.name for each in entries]
    return Record.parse([*names, lease.name] if lease else names)


@pytest.mark.parametrize("host", ["10.0.0.1", "2001:db8::1", "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"])
def test_a_contact_is_read_back_and_fits_into_a_name(host: str) -> None:
    entry = ContactEntry(MAX_EPOCH, A, ContactAddress(host, 65535, PROCESS))
    assert ContactEntry.parse(entry.name) == entry
    assert ":" not in entry.name, "Hadoop refuses it"
    assert len(entry.name) < MAX_COMPONENT_BYTES


@pytest.mark.parametrize(
    "name",
    [
        f"contact~0000000007~{A}~10.0.0.1~4711~{PROCESS} ",
        f"contact~0000000007~{A}~10.0.0.1~4711~{PROCESS}\n",
        f"contact~7~{A}~10.0.0.1~4711~{PROCESS}",
        f"contact~0000000007~{A[:-1]}-~10.0.0.1~4711~{PROCESS}",
        f"contact~0000000007~{A}~10.0.0.1~65536~{PROCESS}",
        f"contact~0000000007~{A}~10.0.0.1~04711~{PROCESS}",
        f"contact~0000000007~{A}~10.0.0.01~4711~{PROCESS}",
        f"contact~0000000007~{A}~10.0.0~4711~{PROCESS}",
        f"contact~0000000007~{A}~localhost~4711~{PROCESS}",
        f"contact~0000000007~{A}~fe80_3a_3a1_25eth0~4711~{PROCESS}",
        f"contact~0000000007~{A}~2001_3aDB8_3a_3a1~4711~{PROCESS}",
        f"contact~0000000007~{A}~0_3a0_3a0_3a0_3a0_3a0_3a0_3a1~4711~{PROCESS}",
        f"contact~0000000007~{A}~_ff_ff~4711~{PROCESS}",
        f"contact~0000000007~{A}~10.0.0.1~4711~{PROCESS.upper()}",
        f"contact~0000000007~{A}~10.0.0.1~4711~{PROCESS[1:]}",
        "contact~",
        "",
    ],
)
def test_a_name_of_another_form_is_ignored(name: str) -> None:
    assert ContactEntry.parse(name) is None
    assert entries(Record.parse([name])) == frozenset()


def test_the_contact_of_the_leader_that_holds_the_lease_counts() -> None:
    assert holders(record(ENTRY), DIRECTORY) == WHERE
    assert holders(record(replace(ENTRY, epoch=6), ENTRY), DIRECTORY) == WHERE


@pytest.mark.parametrize(
    "found",
    [
        record(),
        record(replace(ENTRY, epoch=6)),
        record(replace(ENTRY, epoch=8)),
        record(replace(ENTRY, session_id=B)),
        record(ENTRY, lease=None),
        record(ENTRY, lease=Lease(5, Mode.HDFS, 6000, B, "", "b")),
        record(ENTRY, replace(ENTRY, contact=ContactAddress("10.0.0.2", 4711, PROCESS))),
    ],
    ids=["none", "earlier-epoch", "later-epoch", "other-session", "no-lease", "lease-was-seized", "two"],
)
def test_no_other_contact_counts(found: Record) -> None:
    assert holders(found, DIRECTORY) is None


def test_only_the_greeting_identifies_a_process() -> None:
    assert greeted_by(WHERE.greeting) == PROCESS
    assert len(WHERE.greeting) == GREETING_BYTES
    for said in (b"", WHERE.greeting[:-1], WHERE.greeting + b"x", b"SSH-2.0-OpenSSH_9.2\r\n", WHERE.greeting.upper()):
        assert greeted_by(said) is None


RELEASED = Lease(8, Mode.RELEASED, 0, A, "", "a", "b")


def test_a_notice_is_read_back_and_is_never_too_long() -> None:
    notice = ReleaseNotice("orders", RELEASED)
    assert ReleaseNotice.parse(notice.line.removesuffix(b"\n")) == notice
    longest = ReleaseNotice("j" * 255, Lease(MAX_REACHED, Mode.RELEASED, 10**9 - 1, A, "f" * 40, "a" * 64, "b" * 64))
    assert ReleaseNotice.parse(longest.line[:-1]) == longest
    assert len(longest.line) <= MOST_NOTICE_BYTES


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"released orders",
        b"released orders lease",
        f"claimed orders {RELEASED.name}".encode(),
        f"released orders {RELEASED.name} ".encode(),
        f"released orders/../payments x {RELEASED.name}".encode(),
        f"released orders {LEASE.name}".encode(),
        f"released orders {RELEASED.name}/..".encode(),
        "released orders l\u00e9ase".encode(),
    ],
)
def test_another_line_is_no_notice(line: bytes) -> None:
    assert ReleaseNotice.parse(line) is None
