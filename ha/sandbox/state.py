"""State of the sandbox on disk: its directory, its servers, their ports and processes."""

import contextlib
import fcntl
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal

import msgspec
import tenacity

from ha.sandbox.polling import SandboxError
from ha.sandbox.ports import LOOPBACK, free_ports
from ha.sandbox.server_process import Identity

Kind = Literal["kdc", "zookeeper", "journalnode", "namenode", "datanode", "kafka"]

JOURNALNODES = 3  # with two NameNodes: the smallest number that survives the loss of one
USUAL_TICKET_LIFE = 24 * 60  # minutes
LOCK_TIMEOUT_S = 120.0  # longer than any command holds it

_SAFE_PATH = re.compile(r"[A-Za-z0-9._/+=@~-]+")
"""A DataNode fails in a directory with a space, escaped or not; a colon ends an entry of Java's class path."""

_PORTS: dict[Kind, tuple[str, ...]] = {
    "kdc": ("kdc",),
    "zookeeper": ("client", "quorum", "election"),
    "journalnode": ("rpc", "http"),
    "namenode": ("rpc", "http"),
    "datanode": ("data", "http", "ipc"),
    "kafka": ("broker", "controller"),
}
_SECURE_PORTS: dict[Kind, tuple[str, ...]] = {
    **{kind: tuple(use.replace("http", "https") for use in uses) for kind, uses in _PORTS.items()},
    "zookeeper": ("client", "quorum", "election", "secure"),
}


class Server(msgspec.Struct):
    """One server process."""

    name: str  # kind and number, such as zookeeper-1
    kind: Kind
    number: int  # counts from 1 within its kind
    ports: dict[str, int]  # by use, on loopback; the same for as long as the sandbox's data lives
    process: Identity | None = None  # that runs it, or ran it last

    @property
    def web(self) -> str:
        """How its web server is asked, if it has one."""
        return "https" if "https" in self.ports else "http"


class State(msgspec.Struct):
    """Content of ``sandbox.json``."""

    user: str  # the HDFS superuser: the user who created the sandbox
    servers: list[Server]  # in the order in which they are started
    formatted: bool = False  # whether the NameNodes have their namespace
    secured: str = ""  # folder of the realm and the certificates; empty if the stores trust everybody
    ticket_life: int = USUAL_TICKET_LIFE  # minutes that each ticket of the realm lasts

    @property
    def host(self) -> str:
        """The host as clients name it: Kerberos knows names only."""
        return "localhost" if self.secured else LOOPBACK

    def of(self, kind: Kind) -> list[Server]:
        return [server for server in self.servers if server.kind == kind]

    def add_kafka(self) -> None:
        if self.secured:
            raise SandboxError(
                "A secure sandbox has no Kafka, which would trust everybody: make another, without --secure."
            )
        ports = dict(zip(_PORTS["kafka"], free_ports(len(_PORTS["kafka"])), strict=True))
        self.servers.append(Server("kafka-1", "kafka", 1, ports))

    def named(self, name: str) -> Server:
        known = {server.name: server for server in self.servers}
        if name not in known:
            raise SandboxError(f"The sandbox has no server {name!r}; it has {', '.join(known)}.")
        return known[name]


def check_numbers(zookeepers: int, namenodes: int) -> None:
    if zookeepers not in {1, 3} or namenodes not in {1, 2}:
        raise SandboxError("A sandbox has 1 or 3 ZooKeeper servers and 1 or 2 NameNodes.")


def new_state(
    user: str, zookeepers: int, namenodes: int, secured: str = "", ticket_life: int = USUAL_TICKET_LIFE
) -> State:
    """Return the state of a new sandbox, with ports chosen."""
    check_numbers(zookeepers, namenodes)
    if ticket_life != USUAL_TICKET_LIFE and not secured:
        raise SandboxError("Only a secure sandbox has tickets: give --secure as well, or leave --ticket-life out.")
    uses = _SECURE_PORTS if secured else _PORTS
    counts: dict[Kind, int] = {
        "kdc": 1 if secured else 0,
        "zookeeper": zookeepers,
        "journalnode": JOURNALNODES if namenodes > 1 else 0,
        "namenode": namenodes,
        "datanode": 1,
        "kafka": 0,
    }
    free = iter(free_ports(sum(count * len(uses[kind]) for kind, count in counts.items())))
    servers = [
        Server(name=f"{kind}-{number}", kind=kind, number=number, ports={use: next(free) for use in uses[kind]})
        for kind, count in counts.items()
        for number in range(1, count + 1)
    ]
    return State(user=user, servers=servers, secured=secured, ticket_life=ticket_life)


class Directory:
    """The sandbox's directory and the names in it."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.conf = self.root / "conf"
        self.data = self.root / "data"
        self.logs = self.root / "logs"
        self.temporary = self.root / "tmp"
        self._folders = (self.conf, self.data, self.logs, self.temporary)
        self._state = self.root / "sandbox.json"
        self._lock = self.root / "sandbox.lock"

    def log(self, name: str) -> Path:
        """Return the file that takes a server's output."""
        return self.logs / f"{name}.log"

    def load(self) -> State | None:
        """Return the state on disk; None if there is no sandbox here."""
        try:
            return msgspec.json.decode(self._state.read_bytes(), type=State)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SandboxError(f"{self._state} cannot be read: {error}.") from error

    def save(self, state: State) -> None:
        """Write the state atomically: a reader sees the old state or the new one."""
        staged = self._state.with_suffix(".json.new")
        try:
            staged.write_bytes(msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n")
            staged.replace(self._state)
        except OSError as error:
            raise SandboxError(f"{self._state} cannot be written: {error}.") from error

    def check_unused(self) -> None:
        """Refuse a directory whose folders somebody else has made, because :meth:`wipe` would delete them."""
        for folder in self._folders:
            if folder.exists():
                raise SandboxError(f"{folder} is there already, and is no sandbox's: use another directory.")

    def make(self, *, private: bool) -> None:
        """Make the folders that are not there; other users may not enter those of a secure sandbox."""
        for folder in self._folders:
            folder.mkdir(mode=0o700 if private else 0o755, exist_ok=True)

    def wipe(self) -> None:
        """Delete the sandbox's files, and the directory itself if nothing else is in it."""
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)
        self._state.unlink(missing_ok=True)
        self._lock.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # other files stay, and so does the directory
            self.root.rmdir()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock this sandbox against changes by other commands."""
        if not _SAFE_PATH.fullmatch(str(self.root)):
            raise SandboxError(
                f"Hadoop cannot keep its data in {self.root}: "
                "choose a directory whose path has only ASCII letters, digits and the characters . _ - + = @ ~ in it."
            )
        try:
            lock = self._try_lock()
        except tenacity.RetryError as error:
            raise SandboxError(f"Another command has been busy with {self.root} for too long.") from error
        except OSError as error:
            raise SandboxError(f"The sandbox's directory {self.root} cannot be used: {error}.") from error
        assert lock is not None  # the retry gives up with an error, not with None
        with lock:
            yield

    @tenacity.retry(
        retry=tenacity.retry_if_result(lambda lock: lock is None),
        stop=tenacity.stop_after_delay(LOCK_TIMEOUT_S),
        wait=tenacity.wait_fixed(0.05),
    )
    def _try_lock(self) -> IO[str] | None:
        with contextlib.suppress(FileExistsError):
            self.root.mkdir(parents=True)
        try:
            lock = self._lock.open("w")
        except FileNotFoundError:  # the holder has just wiped the directory
            return None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous holder may have wiped the directory: then this lock file has no name and guards nothing.
            if os.path.samestat(os.fstat(lock.fileno()), self._lock.stat()):
                return lock
        except (BlockingIOError, FileNotFoundError):
            pass
        except OSError:
            lock.close()
            raise
        lock.close()
        return None


def default_directory() -> Path:
    """Return the default directory of the sandbox: in the user's state directory."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "hybrid-ha" / "sandbox"


def replace_file(path: Path, text: str) -> None:
    """Replace a file: a reader that opens it finds all of the old text, or all of the new."""
    staged = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_native_id()}")
    staged.write_text(text, encoding="utf-8")
    staged.replace(path)
