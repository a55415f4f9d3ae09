"""The session socket: who may join, what is passed on, and what is said when either end has gone."""

import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest

from ha.agent import shared_session
from ha.agent.shared_session import LOCK, MOST_LINE_BYTES, SOCKET, Borrower, Hello, Lender, Word, lends, line, send
from ha.config.snapshot_dir import SnapshotDirectory
from leader.contender.contender import Contender
from leader.contender.runtime import Runtime
from leader.election.borrowed_session import Lent
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

BOOT = "this-boot"


def until(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, what=what)


@pytest.fixture
def place(tmp_path: Path) -> SnapshotDirectory:
    return SnapshotDirectory(tmp_path / "snapshots", "cluster", BOOT, 0o700)


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    """A runtime without ZooKeeper: the socket needs none."""
    with BoundedFiles(lambda: LocalFiles(tmp_path / "jobs", durable=False), uri="file:///jobs") as files:
        made = Runtime("agent", Timing(), files, None)
        yield made
        made.close()


@pytest.fixture
def lender(runtime: Runtime, place: SnapshotDirectory) -> Iterator[Lender]:
    made = Lender(runtime, "agent", Timing(), place)
    until(lambda: made.lends, "it lends")
    yield made
    made.close()


class Member:
    def __init__(self, runtime: Runtime, place: SnapshotDirectory) -> None:
        self.lent: list[Lent | None] = []
        self.contender = Contender.make(runtime, "a", Timing(), borrows=True)
        setattr(self.contender, "lent", self.lent.append)  # noqa: B010  # it is told in the contender's place
        self.borrower = Borrower(runtime, self.contender, place)


@pytest.fixture
def member(runtime: Runtime, place: SnapshotDirectory) -> Iterator[Member]:
    made = Member(runtime, place)
    yield made
    made.borrower.close()


def connected(place: SnapshotDirectory) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(PATIENCE_S)
    made.connect(str(place.path / SOCKET))
    return made


def test_the_socket_is_for_its_user_alone_and_goes_with_the_lender(runtime: Runtime, place: SnapshotDirectory) -> None:
    assert lends(place) is False
    lender = Lender(runtime, "agent", Timing(), place)
    until(lambda: lends(place), "it lends")
    assert stat.S_IMODE((place.path / SOCKET).stat().st_mode) == 0o600
    lender.close()
    assert not lends(place)
    assert [each.name for each in place.path.iterdir()] == [LOCK]


def test_an_agent_lends_and_one_takes_its_place(runtime: Runtime, place: SnapshotDirectory, lender: Lender) -> None:
    second = Lender(runtime, "second", Timing(), place)
    runtime.ask(lambda: None, PATIENCE_S)
    assert (lender.lends, second.lends) == (True, False)
    lender.close()
    until(lambda: second.lends, "the second one lends")
    second.close()


def test_a_socket_that_somebody_removes_is_made_again(place: SnapshotDirectory, lender: Lender) -> None:
    (place.path / SOCKET).unlink()
    until(lambda: lends(place), "it is there again")
    assert lender.lends


def test_a_member_joins_and_hears_what_is_lent_and_its_end(runtime: Runtime, lender: Lender, member: Member) -> None:
    until(lambda: lender.members == 1, "it has joined")
    lent = Lent("cafe0123-1001-1", 107.5, 100.25, 10.0)
    runtime.post(lambda: send(next(iter(lender._joined)), lent))
    until(lambda: member.lent, "it is told")
    assert member.lent == [lent]
    lender.close()
    until(lambda: len(member.lent) > 1, "it is told of the end")
    assert member.lent == [lent, None]


def test_a_member_that_is_gone_is_left(lender: Lender, member: Member) -> None:
    until(lambda: lender.members == 1, "it has joined")
    member.borrower.close()
    until(lambda: lender.members == 0, "it has left")
    until(lambda: lender._holder.members == 0, "and so has its node")


@pytest.mark.parametrize(
    "said",
    [line(Hello("a", "another-boot")), b"what?\n", b"{}\n", b"x" * (MOST_LINE_BYTES + 1)],
    ids=["another clock", "no JSON", "no hello", "no end"],
)
def test_who_does_not_belong_here_is_turned_away(place: SnapshotDirectory, lender: Lender, said: bytes) -> None:
    with connected(place) as stranger:
        stranger.sendall(said)
        assert stranger.recv(1) == b""
    assert lender.members == 0


def test_a_process_of_another_user_is_turned_away(place: SnapshotDirectory, lender: Lender) -> None:
    with patch.object(shared_session, "ROOT", -1), patch.object(os, "geteuid", lambda: 4711), connected(place) as other:
        assert other.recv(1) == b""
    assert lender.members == 0


def test_one_that_is_too_many_is_turned_away(
    place: SnapshotDirectory, lender: Lender, member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ha.agent.shared_session.MOST_MEMBERS", 1)
    until(lambda: lender.members == 1, "it has joined")
    with connected(place) as another:
        another.sendall(line(Hello("b", BOOT)))
        assert another.recv(1) == b""
    assert lender.members == 1
    assert member.lent == []


def test_a_member_that_reads_nothing_is_parted(
    runtime: Runtime, place: SnapshotDirectory, lender: Lender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ha.agent.shared_session.MOST_UNREAD_BYTES", 1000)
    with connected(place) as paused:
        paused.sendall(line(Hello("b", BOOT)))
        until(lambda: lender.members == 1, "it has joined")

        def lend_much() -> None:
            for joined in list(lender._joined):
                for number in range(10_000):
                    send(joined, Lent("cafe0123-1001-1", float(number), 100.0, 10.0))

        runtime.post(lend_much)
        until(lambda: lender.members == 0, "it is parted")


def test_a_line_is_what_it_says() -> None:
    lent = Lent("cafe0123-1001-1", 107.5, 100.25, 10.0)
    assert msgspec.json.decode(line(Word(lent)), type=Word).lent == lent
    assert json.loads(line(Word())) == {"lent": None}
