"""Slots: which command a new sidecar meets on its host, and which one it takes up."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.program.deadline_file import DeadlineWriter
from ha.sidecar.command.guarded_command import Door, GuardedCommand
from ha.sidecar.command.slot import LEFT, Left, RunOrder, Slot, place_of, take
from ha.sidecar.command.succession import Succession
from leader.errors import InvalidName, InvalidSettings
from leader.job.programs import Program
from leader.layout.contact import ContactAddress
from leader.layout.names import LeaderDirectory
from store.clock import now
from tests.unit.ha.programs import alive
from tests.unit.ha.waiting import wait_until

pytestmark = pytest.mark.programs

JOB = "orders"
STAYS = [sys.executable, "-c", "import signal\nwhile True: signal.pause()"]
LEADER = LeaderDirectory(3, "01234567-89ab-4def-8123-456789abcdef")
LONG = 3600.0


class Host:
    def __init__(self, directory: Path) -> None:
        self.stores = Stores(Settings.of(files=directory.as_uri(), adopt_within=LONG, snapshots="off"))
        self.directory = directory / "ha-files"
        self.directory.mkdir()
        self.deadline = DeadlineWriter(self.directory / "deadline")
        self.deadline.write(now() + LONG, now() + LONG)
        self.place = place_of(self.stores.files.uri, None)
        self.guards: list[GuardedCommand] = []
        self.connected: list[Succession] = []

    def take(self) -> Slot:
        slot, guard = take(self.place, JOB)
        assert guard is None
        return slot

    def leave(
        self,
        run: RunOrder | None = None,
        *,
        dies: bool = True,
        listener: socket.socket | None = None,
        contact: bool = False,
    ) -> tuple[Slot, GuardedCommand]:
        slot = self.take()
        held = [listener.fileno()] if listener is not None else []
        address = ContactAddress("127.0.0.1", 4711, "0" * 32) if contact else None
        with slot.open_door() as made:
            door = Door(made.fileno(), LONG)
            guard = GuardedCommand(STAYS, {}, self.deadline.path, held, None, None, door)
        slot.leave(
            Left(LEADER, run or RunOrder(Program(STAYS), place=os.getcwd()), str(self.directory), 7, "", address)  # noqa: PTH109
        )
        wait_until(lambda: Path(f"/proc/{guard.pid}/task/{guard.pid}/children").read_text())
        if dies:
            slot.give_back()  # as the kernel does when the sidecar dies
            guard.abandon()
        self.guards.append(guard)
        return slot, guard

    def succeed(self, command: list[str] = STAYS, **options: Any) -> Succession:
        made = Succession(JOB, command, **options)
        self.connected.append(made)
        socket_of_it = made.liveness_socket(self.stores)
        if socket_of_it is not None:
            socket_of_it.close()
        return made

    def end(self) -> None:
        for guard in self.guards:
            os.kill(guard.pid, signal.SIGKILL)
            guard.wait()
        for each in self.connected:
            if each.orphan is not None:
                each.orphan.wait()
            each.close()
        if self.directory.exists():
            self.deadline.close()
        self.stores.close()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setattr("ha.sidecar.command.slot.own_base", lambda: tmp_path / "shared")
    made = Host(tmp_path)
    yield made
    made.end()


def test_each_sidecar_has_a_slot_and_gives_it_back(host: Host) -> None:
    first, second = host.take(), host.take()
    assert first.path != second.path
    assert first.path.stat().st_mode & 0o777 == 0o700
    first.close()
    third = host.take()
    assert third.path == first.path
    second.close()
    third.close()
    assert not list(host.place.path.iterdir()), "nothing is left"


def test_a_host_without_a_free_slot_is_no_endless_search(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ha.sidecar.command.slot.MOST", 1)
    only = host.take()
    with pytest.raises(OSError, match="no free slot"):
        host.take()
    made = host.succeed()
    with made.door() as door:
        assert door is None, "its command ends with it"
    only.close()


def test_a_lock_that_was_removed_meanwhile_is_no_lock(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sidecars must not hold the same slot because one has opened the file that the other one removes."""
    path = host.take().path  # held for the whole test by this process
    opened = os.open(path / "lock", os.O_RDWR)
    (path / "lock").unlink()
    real = os.open
    monkeypatch.setattr(os, "open", lambda name, *rest, **more: (
        os.dup(opened) if Path(name) == path / "lock" else real(name, *rest, **more)))  # fmt: skip
    other = host.take()
    assert other.path != path
    other.close()
    os.close(opened)


def test_the_same_command_is_taken_up(host: Host) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        slot, guard = host.leave(listener=listener, contact=True)
        made = host.succeed()
        orphan = made.orphan
        assert orphan is not None
        assert (orphan.left.leader, orphan.left.starts, orphan.pid) == (LEADER, 7, guard.pid)
        assert (slot.path / "door").stat().st_mode & 0o777 == 0o600
        orphan.terminate()
        assert orphan.wait() == 128 + signal.SIGTERM
        assert guard.wait() == 128 + signal.SIGTERM
        host.guards.clear()


def test_the_listener_is_handed_over_with_its_word(host: Host) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host.leave(listener=listener, contact=True)
        made = Succession(JOB, STAYS)
        host.connected.append(made)
        taken = made.liveness_socket(host.stores)
        assert taken is not None
        with socket.create_connection(listener.getsockname()) as standby:
            assert standby.recv(100) == b"hybrid-ha " + b"0" * 32 + b"\n"
        assert (taken.contact.host, taken.contact.port) == ("127.0.0.1", 4711)
        taken.close()


@pytest.mark.parametrize("what", ["command", "spark", "engine", "savepoint", "place"])
def test_what_is_not_to_run_here_is_killed(
    host: Host, what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, guard = host.leave()
    if what == "place":
        monkeypatch.chdir(tmp_path)
    command = [*STAYS, "more"] if what == "command" else STAYS
    others: dict[str, Any] = {"spark": {"spark": True}, "engine": {"engine": True}, "savepoint": {"savepoint": "s1"}}
    made = host.succeed(command, **others.get(what, {}))
    assert made.orphan is None
    assert guard.wait() == 128 + signal.SIGKILL
    host.guards.clear()


@pytest.mark.parametrize("damage", ["garbage", "missing", "format", "deadline", "listener"])
def test_what_cannot_be_taken_up_is_killed(host: Host, damage: str) -> None:
    slot, guard = host.leave(contact=damage == "listener")
    match damage:
        case "garbage":
            (slot.path / LEFT).write_bytes(b"{")
        case "missing":
            (slot.path / LEFT).unlink()
        case "format":
            left = msgspec.json.decode((slot.path / LEFT).read_bytes())
            (slot.path / LEFT).write_bytes(msgspec.json.encode({**left, "format": 2}))
        case "deadline":
            host.deadline.path.unlink()
        case _:
            pass
    made = host.succeed()
    assert made.orphan is None
    assert guard.wait() == 128 + signal.SIGKILL
    host.guards.clear()


def test_a_command_whose_guard_is_gone_leaves_nothing(host: Host) -> None:
    """As after the host was started anew: the file is there, and nobody waits at the door."""
    slot, guard = host.leave()
    os.kill(guard.pid, signal.SIGKILL)
    guard.wait()
    host.guards.clear()
    assert host.succeed().orphan is None
    assert not host.directory.exists()
    assert slot.left() is None


def test_a_living_sidecar_keeps_its_command(host: Host) -> None:
    slot, guard = host.leave(dies=False)
    made = host.succeed()
    assert made.orphan is None
    assert alive(guard.pid)
    slot.close()


def test_the_command_that_waits_comes_before_an_empty_slot(host: Host) -> None:
    empty = host.take()
    host.leave()
    empty.give_back()  # a slot of a lower number, whose sidecar was killed while it stood by
    assert host.succeed().orphan is not None


def test_a_guard_that_is_killed_has_ended_its_command(host: Host) -> None:
    _, guard = host.leave()
    orphan = host.succeed().orphan
    assert orphan is not None
    os.kill(guard.pid, signal.SIGKILL)
    assert orphan.wait() == 128 + signal.SIGKILL
    guard.wait()
    host.guards.clear()


def test_without_the_setting_nothing_is_left_and_nothing_taken(host: Host, tmp_path: Path) -> None:
    host.leave()
    host.stores = Stores(Settings.of(files=tmp_path.as_uri(), snapshots="off"))
    made = host.succeed()
    assert made.orphan is None
    with made.door() as door:
        assert door is None


def test_a_directory_in_which_others_can_write_is_not_used(host: Host) -> None:
    host.place.base.mkdir(mode=0o700)
    host.place.path.mkdir(mode=0o777)
    host.place.path.chmod(0o777)
    made = host.succeed()
    assert made.orphan is None
    with made.door() as door:
        assert door is None
    host.place.path.chmod(0o700)


def test_a_job_without_a_valid_name_has_no_slot() -> None:
    with pytest.raises(InvalidName):
        Succession("../orders", STAYS)


@pytest.mark.parametrize(("longest", "allowed"), [(400.0, True), (400.1, False)])
def test_the_durations_must_allow_it(longest: float, *, allowed: bool) -> None:
    settings = Settings.of(short_ttl=6, long_ttl=6 * longest)
    settings.validate()
    chosen = settings.replace(adopt_within=2.0)
    if allowed:
        chosen.validate()
    else:
        with pytest.raises(InvalidSettings, match="adopt_within"):
            chosen.validate()
