"""Watch while ZooKeeper is away: it follows the leader's process, and looks for the next leader when that has ended."""

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from leader.layout.contact import ContactAddress, ContactEntry
from leader.layout.lease import Lease, Mode
from leader.lookup.answers import Look
from leader.lookup.hdfs_lookup import SUCCESSOR_WITHIN_S
from leader.lookup.rate_limit import JOB_BURST, JOB_PAUSE_S
from leader.lookup.reader import Reader
from leader.lookup.watch import SUCCESSOR_PAUSE_S
from store.errors import NotSent
from store.zookeeper import Connection
from tests.unit.leader.faulty import Place
from tests.unit.leader.grants import FIRST, LEASE, QUICK, SECOND, Grants, PlayedZooKeeper
from tests.unit.leader.lookup.ticking import Ticking

PROCESS = ContactAddress("127.0.0.1", 7, "0" * 32)


class Away(PlayedZooKeeper):
    state = Connection.SUSPENDED

    def call(self, operation: Any, timeout: float) -> Any:
        raise NotSent(f"{operation}: no connection within {timeout} s.")


class Followed:
    def __init__(self) -> None:
        self.by: dict[ContactAddress, Callable[[ContactAddress], None]] = {}

    def follow(self, contact: ContactAddress, on_gone: Callable[[ContactAddress], None]) -> None:
        assert contact not in self.by
        self.by[contact] = on_gone

    def leave(self, contact: ContactAddress, on_gone: Callable[[ContactAddress], None]) -> None:
        assert self.by.pop(contact) == on_gone

    def forked(self) -> None:
        self.by.clear()


class Outage:
    """A leader whose contact stands in HDFS, a ZooKeeper that is away, and a watch."""

    def __init__(self, place: Place, grants: Grants) -> None:
        self.place, self.grants = place, grants
        self.zookeeper, self.clock, self.processes, self.lists = Away(), Ticking(), Followed(), list[float]()
        grants.lead(FIRST, "a:1")
        self.write_contact(PROCESS)
        dice = random.Random(7)  # noqa: S311
        self.reader = Reader(
            place.files, self.zookeeper.client, QUICK, clock=self.clock, rng=dice, processes=self.processes
        )
        self.reader.rate_limit._unlimited = self.reader.verifications._unlimited = False
        self.looks: Iterator[Look] = self.reader.looks("orders", threading.Event(), 2.0)
        place.faulty.before_list = lambda _: self.lists.append(self.clock.at)

    def write_contact(self, contact: ContactAddress) -> None:
        directory = self.grants.directory
        entry = ContactEntry(directory.epoch, directory.session_id, contact)
        self.place.direct.make_directory(f"{self.grants.record}/{entry.name}")

    def look(self) -> int | None:
        answer = next(self.looks).answer
        return answer.epoch if answer is not None else None

    def long_ago(self) -> None:
        """Let the outage last, until HDFS is asked as seldom as it ever is."""
        end = self.clock.at + 300.0
        while self.clock.at < end:
            assert self.look() == 1
        self.lists.clear()


@pytest.fixture
def outage(place: Place, grants: Grants) -> Outage:
    return Outage(place, grants)


def test_the_next_leader_is_found_at_once_after_the_process_of_the_last_one_has_ended(outage: Outage) -> None:
    outage.long_ago()
    outage.processes.by[PROCESS](PROCESS)
    ended = outage.clock.at
    assert outage.look() == 1, "nobody has taken over yet"
    outage.grants.lead(SECOND, "b:1")
    while outage.look() == 1:
        pass
    assert outage.clock.at - ended <= 2 * 1.2 * SUCCESSOR_PAUSE_S


def test_a_look_in_the_middle_of_the_takeover_does_not_end_the_search(outage: Outage) -> None:
    """The lease is seized, and the directory not yet claimed: nobody leads, which is news, but not the next leader."""
    outage.long_ago()
    outage.processes.by[PROCESS](PROCESS)
    ended = outage.clock.at
    (lease,) = [name for name in outage.place.names(outage.grants.record) if Lease.parse(name)]
    seized = replace(LEASE, sequence=6, owner=SECOND.session_id, mode=Mode.HDFS, attestation="")
    outage.place.direct.rename(f"{outage.grants.record}/{lease}", f"{outage.grants.record}/{seized.name}")
    assert outage.look() is None
    outage.grants.lead(SECOND, "b:1", replace(seized, sequence=7))
    while outage.look() != 2:
        pass
    assert outage.clock.at - ended <= 2 * 1.2 * SUCCESSOR_PAUSE_S


def test_hdfs_is_asked_seldom_if_no_leader_follows(outage: Outage) -> None:
    outage.long_ago()
    outage.processes.by[PROCESS](PROCESS)
    ended = outage.clock.at
    while outage.clock.at < ended + 60.0:
        outage.look()
    soon = [at for at in outage.lists if at < ended + SUCCESSOR_WITHIN_S]
    assert JOB_BURST <= len(soon) <= JOB_BURST + SUCCESSOR_WITHIN_S / JOB_PAUSE_S + 2
    assert len(outage.lists) - len(soon) <= 50.0 / JOB_PAUSE_S, "and then as in any outage"


def test_a_leader_is_followed_only_by_a_watch_and_while_zookeeper_is_away(outage: Outage) -> None:
    assert outage.look() == 1
    assert set(outage.processes.by) == {PROCESS}
    outage.zookeeper.state = Connection.CONNECTED
    outage.look()
    assert not outage.processes.by
    outage.zookeeper.state = Connection.SUSPENDED
    outage.look()
    assert set(outage.processes.by) == {PROCESS}
    outage.looks.close()  # type: ignore[attr-defined]
    assert not outage.processes.by


def test_the_next_leader_is_followed_in_place_of_the_last_one(outage: Outage) -> None:
    outage.look()
    outage.grants.lead(SECOND, "b:1")
    other = ContactAddress("127.0.0.1", 8, "1" * 32)
    outage.write_contact(other)
    while outage.look() == 1:
        pass
    assert set(outage.processes.by) == {other}


def test_a_report_about_another_process_changes_nothing(outage: Outage) -> None:
    outage.long_ago()
    outage.processes.by[PROCESS](ContactAddress("127.0.0.1", 8, "1" * 32))
    end = outage.clock.at + 5.0
    while outage.clock.at < end:
        outage.look()
    assert len(outage.lists) <= 1


def test_without_a_contact_nobody_is_followed(place: Place, grants: Grants) -> None:
    outage = Outage(place, grants)
    (entry,) = [name for name in place.names(grants.record) if name.startswith("contact")]
    place.direct.delete(f"{grants.record}/{entry}")
    outage.look()
    assert not outage.processes.by
