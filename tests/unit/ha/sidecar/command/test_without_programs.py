"""What of commands needs no process to be tried: a guard's orders, slots, stored programs, and who gives no stacks."""

import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.sidecar.command import thread_dumps
from ha.sidecar.command.guard_orders import GREETING, KILL, NEVER, TERMINATE, Orders
from ha.sidecar.command.memory import PROC
from ha.sidecar.command.newest_program import StoredProgram
from ha.sidecar.command.slot import DOOR, LOCK, Left, RunOrder, Slot, place_of, take
from leader.errors import InvalidSettings, Unreadable
from leader.job.programs import Program, ProgramFile, Programs, digest
from leader.layout.names import LeaderDirectory
from store.clock import now
from tests.patience import PATIENCE_S
from tests.unit.ha.outputs.place import Place

LONG = 3600.0


class Guard:
    """Orders with a sidecar at the other end of the pipe, and a door below a slot."""

    def __init__(self, folder: Path) -> None:
        self.address = f"{folder}/door"
        door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        door.bind(self.address)
        door.listen(4)
        pipe, self.sidecar = os.pipe()
        self.orders = Orders(pipe, door=door.detach(), within=LONG)

    def connect(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        made.settimeout(PATIENCE_S)
        made.connect(self.address)
        return made

    def close(self) -> None:
        for each in (self.orders._door, self.orders._connection):
            if each is not None:
                each.close()


@pytest.fixture
def guard(tmp_path: Path) -> Iterator[Guard]:
    with closing(Guard(tmp_path)) as made:
        yield made


def test_a_guard_whose_sidecar_is_gone_kills_unless_that_one_led(guard: Guard) -> None:
    os.write(guard.sidecar, TERMINATE)
    assert (guard.orders.take(granted=True), guard.orders.until) == (TERMINATE, NEVER)
    os.close(guard.sidecar)
    assert guard.orders.take(granted=False) == KILL
    assert guard.orders.take(granted=True) == b""
    assert now() + LONG - PATIENCE_S < guard.orders.until <= now() + LONG
    assert Orders(os.open(os.devnull, os.O_RDONLY)).take(granted=True) == KILL, "nobody can come without a door"


@pytest.mark.parametrize(
    ("code", "asked", "told"),
    [(0, False, 0), (0, True, 128 + signal.SIGTERM), (3, True, 3), (3, False, 3), (137, False, 137)],
)
def test_a_successor_is_greeted_gives_orders_and_is_told_the_code(
    guard: Guard, code: int, asked: bool, told: int
) -> None:
    os.close(guard.sidecar)
    guard.orders.take(granted=True)
    with closing(guard.connect()) as successor:
        guard.orders.take(granted=True)
        assert successor.recv(100) == f"{GREETING} {os.getpid()}\n".encode()
        assert guard.orders.until == NEVER
        if asked:
            successor.send(TERMINATE)
            assert guard.orders.take(granted=True) == TERMINATE
        successor.shutdown(socket.SHUT_WR)
        guard.orders.report(code, granted=True, deadline=now())
        with closing(guard.connect()) as second:
            guard.orders.report(code, granted=True, deadline=now() + 0.2)
            assert [each for each in (answer(successor), answer(second)) if len(each) == 1] == [bytes([told])]


def answer(connection: socket.socket) -> bytes:
    connection.settimeout(0.2)
    try:
        found = connection.recv(100)
        return connection.recv(100) if found.startswith(GREETING.encode()) else found
    except TimeoutError:
        return b""


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    (tmp_path / "jobs").mkdir(exist_ok=True)
    with closing(Stores(Settings.of(files=(tmp_path / "jobs").as_uri(), snapshots="off"))) as made:
        yield made


def test_slots_are_this_user_s_alone_and_no_two_sidecars_have_one(stores: Stores) -> None:
    """Jobs whose names begin alike have slots of their own; a free one is taken before another is made."""
    place = place_of(stores.files.uri, None)
    taken = [take(place, job)[0] for job in ("orders", "orders", "orders2", "orders")]
    assert [each.path.name for each in taken] == ["orders~0", "orders~1", "orders2~0", "orders~2"]
    for each in taken:
        with closing(each.open_door()):
            modes = [path.stat().st_mode & 0o777 for path in (each.path, each.path / LOCK, each.path / DOOR)]
        assert modes == [0o700, 0o600, 0o600]
        assert each.connect() is None, "nobody listens there any more"
    taken[1].give_back()
    assert take(place, "orders")[0].path.name == "orders~1"
    taken[0].close()
    assert not taken[0].path.exists()
    assert take(place, "orders")[0].path.name == "orders~0"


def test_what_a_sidecar_leaves_is_read_as_it_was_or_not_at_all(stores: Stores) -> None:
    slot: Slot = take(place_of(stores.files.uri, None), "orders")[0]
    left = Left(LeaderDirectory(3, "01234567-89ab-4def-8123-456789abcdef"), RunOrder(Program(["a"])), "/d", 7, "", None)
    assert slot.left() is None
    slot.leave(left)
    assert slot.left() == left
    for content in (b"\xff", b"{}", (slot.path / "left").read_bytes().replace(b'"format":', b'"format":9')):
        (slot.path / "left").write_bytes(content)
        assert slot.left() is None
    slot.forget()
    slot.forget()
    assert not (slot.path / "left").exists()


@pytest.fixture
def stored(place: Place, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StoredProgram]:
    monkeypatch.setenv("XDG_CACHE_HOME", f"{place.root}/cache")
    stores = Stores(Settings.of(files=(place.root / "jobs").as_uri(), snapshots="off"))

    def store(command: list[str], **files: bytes) -> StoredProgram:
        listed = [ProgramFile(name, digest(data), len(data)) for name, data in files.items()]
        if command:
            contents = {digest(data): data for data in files.values()}
            Programs(place.directory()).add(Program(command, files=listed), contents)
        return StoredProgram(stores, "orders")

    return store


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    for each in made.opened:
        each.close()


def test_the_newest_stored_program_runs_as_it_was_stored(
    stored: Callable[..., StoredProgram], place: Place, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSettings, match="has no stored program"):
        stored([]).newest()
    first = stored(["./main", "x"], main=b"one").newest()
    found = stored([sys.executable, "main"], main=b"two", more=b"one")
    newest = found.newest(first)
    assert (newest.version, found.newest(newest) is newest, found.version(1)) == (first.version + 1, True, first)
    with pytest.raises(InvalidSettings, match="has no stored version 9"):
        found.version(9)
    (copy,) = (tmp_path / "cache/hybrid-ha/programs").glob(digest(b"two"))
    copy.write_bytes(b"bad")
    found.unpack(newest, tmp_path / "run")
    assert {each.name: each.read_bytes() for each in (tmp_path / "run").iterdir()} == {"main": b"two", "more": b"one"}
    (blob,) = [each for each in place.home.rglob(f"*{digest(b'two')}*") if each.is_file()]
    copy.unlink()
    blob.unlink()
    with pytest.raises(Unreadable):
        found.newest()


@pytest.mark.parametrize(("command", "runs"), [("./main", True), ("main", False), ("./other", False), ("sh", True)])
def test_a_command_that_this_host_does_not_have_is_refused(
    stored: Callable[..., StoredProgram], command: str, runs: bool
) -> None:
    program = stored([command], main=b"one")
    if runs:
        assert program.newest().command == [command]
    else:
        with pytest.raises(InvalidSettings, match="there is no such command on this host"):
            program.newest()


def test_who_gives_no_stacks_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = "its process has ended, or is not known."
    assert thread_dumps.thread_dumps(0, 1 << 30, tmp_path) == f"Python: {gone}\n\nJVM: {gone}"
    me = os.getpid()
    assert f"Python, process {me}:\nno stacks: it does not lead by ha.spark.lead" in thread_dumps.thread_dumps(
        me, 0, tmp_path / "none"
    )
    for state in "Tt":
        monkeypatch.setattr(thread_dumps, "_state", lambda _, state=state: state)
        assert "is stopped, as by SIGSTOP, and gives no stacks" in thread_dumps.thread_dumps(me, 0, tmp_path / "none")
    assert thread_dumps.first_of("python", [1 << 30, me]) == (
        me if "python" in f"{(PROC / f'{me}/exe').readlink()}" else 0
    )
    assert thread_dumps.first_of("java", [me]) == 0
