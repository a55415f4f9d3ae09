"""What the sandbox remembers on disk: its directory, its servers, their ports and processes."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import msgspec
import tenacity

from ha.sandbox.errors import SandboxError
from ha.sandbox.ports import free_ports
from ha.sandbox.process import Identity

Kind = Literal["zookeeper", "journalnode", "namenode", "datanode"]

JOURNALNODES = 3
"""With two NameNodes: the smallest number that survives the loss of one."""

LOCK_TIMEOUT_S = 120.0
"""Longer than any command holds it."""

_SAFE_PATH = re.compile(r"[A-Za-z0-9._/+=@~-]+")
"""A DataNode fails in a directory with a space, escaped or not; a colon ends an entry of Java's class path."""

_PORTS: dict[Kind, tuple[str, ...]] = {
    "zookeeper": ("client", "quorum", "election"),
    "journalnode": ("rpc", "http"),
    "namenode": ("rpc", "http"),
    "datanode": ("data", "http", "ipc"),
}


class Server(msgspec.Struct):
    """One server process.

    Attributes:
        name: kind and number, such as ``zookeeper-1``.
        kind: what it is.
        number: counts from 1 within its kind.
        ports: purpose -> port on loopback; the same for as long as the sandbox's data lives.
        process: the process that runs it, or ran it last.
    """

    name: str
    kind: Kind
    number: int
    ports: dict[str, int]
    process: Identity | None = None


class State(msgspec.Struct):
    """The content of ``sandbox.json``.

    Attributes:
        user: the HDFS superuser: whoever made the sandbox.
        servers: all servers, in the order in which they are started.
        formatted: whether the NameNodes have their namespace.
    """

    user: str
    servers: list[Server]
    formatted: bool = False

    def of(self, kind: Kind) -> list[Server]:
        """Return the servers of one kind."""
        return [server for server in self.servers if server.kind == kind]

    def named(self, name: str) -> Server:
        """Return the server of that name.

        Raises:
            SandboxError: there is none.
        """
        for server in self.servers:
            if server.name == name:
                return server
        known = ", ".join(server.name for server in self.servers)
        raise SandboxError(f"The sandbox has no server {name!r}; it has {known}.")


def check_numbers(zookeepers: int, namenodes: int) -> None:
    """Accept the numbers of servers that make sense.

    Raises:
        SandboxError: these do not.
    """
    if zookeepers not in {1, 3} or namenodes not in {1, 2}:
        raise SandboxError("A sandbox has 1 or 3 ZooKeeper servers and 1 or 2 NameNodes.")


def new_state(user: str, zookeepers: int, namenodes: int) -> State:
    """Return the state of a sandbox that was never up, with ports chosen.

    Raises:
        SandboxError: a number is not one of those that make sense, or there are no free ports.
    """
    check_numbers(zookeepers, namenodes)
    counts: dict[Kind, int] = {
        "zookeeper": zookeepers,
        "journalnode": JOURNALNODES if namenodes > 1 else 0,
        "namenode": namenodes,
        "datanode": 1,
    }
    free = iter(free_ports(sum(count * len(_PORTS[kind]) for kind, count in counts.items())))
    servers = [
        Server(name=f"{kind}-{number}", kind=kind, number=number, ports={use: next(free) for use in _PORTS[kind]})
        for kind, count in counts.items()
        for number in range(1, count + 1)
    ]
    return State(user=user, servers=servers)


class Directory:
    """The sandbox's directory and the names in it."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.conf = self.root / "conf"
        self.data = self.root / "data"
        self.logs = self.root / "logs"
        self.temporary = self.root / "tmp"
        self._state = self.root / "sandbox.json"
        self._lock = self.root / "sandbox.lock"

    def log(self, name: str) -> Path:
        """Return the file that takes a server's output."""
        return self.logs / f"{name}.log"

    def load(self) -> State | None:
        """Return what is remembered; None if there is no sandbox here.

        Raises:
            SandboxError: it cannot be read.
        """
        try:
            return msgspec.json.decode(self._state.read_bytes(), type=State)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SandboxError(f"{self._state} cannot be read: {error}.") from error

    def save(self, state: State) -> None:
        """Remember it, so that a reader sees the old state or the new one.

        Raises:
            SandboxError: it cannot be written.
        """
        staged = self._state.with_suffix(".json.new")
        try:
            staged.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n")
            staged.replace(self._state)
        except OSError as error:
            raise SandboxError(f"{self._state} cannot be written: {error}.") from error

    def wipe(self) -> None:
        """Delete what the sandbox made, and the directory itself if nothing else is in it."""
        for folder in (self.conf, self.data, self.logs, self.temporary):
            shutil.rmtree(folder, ignore_errors=True)
        self._state.unlink(missing_ok=True)
        self._lock.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # somebody else's files stay, and so does the directory
            self.root.rmdir()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other commands from changing this sandbox meanwhile.

        Raises:
            SandboxError: another command did not finish within two minutes, or the directory cannot be used.
        """
        if not _SAFE_PATH.fullmatch(str(self.root)):
            raise SandboxError(
                f"Hadoop cannot keep its data in {self.root}: "
                "choose a directory whose path has only ASCII letters, digits and the characters . _ - + = @ ~ in it."
            )
        try:
            lock = self._acquire()
        except tenacity.RetryError as error:
            raise SandboxError(f"Another command has been busy with {self.root} for too long.") from error
        except OSError as error:
            raise SandboxError(f"The sandbox's directory {self.root} cannot be used: {error}.") from error
        with lock:
            yield

    @tenacity.retry(
        retry=tenacity.retry_if_result(lambda lock: lock is None),
        stop=tenacity.stop_after_delay(LOCK_TIMEOUT_S),
        wait=tenacity.wait_fixed(0.05),
    )
    def _try_lock(self) -> IO[str] | None:
        for folder in (self.conf, self.data, self.logs, self.temporary):
            folder.mkdir(parents=True, exist_ok=True)
        lock = self._lock.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Whoever held it before may have wiped the directory: then this lock has no name and guards nothing.
            if os.path.samestat(os.fstat(lock.fileno()), self._lock.stat()):
                return lock
        except (BlockingIOError, FileNotFoundError):
            pass
        lock.close()
        return None

    def _acquire(self) -> IO[str]:
        lock = self._try_lock()
        assert lock is not None  # the retry above gives up with an error, not with None
        return lock


def default_directory() -> Path:
    """Return where the sandbox lives if nobody says otherwise: in the user's state directory."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "hybrid-ha" / "sandbox"
