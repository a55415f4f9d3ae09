"""Helpers of the ZooKeeper client's tests: a server to be hurt, ears, and ways to wait."""

import contextlib
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import pyspark
from kazoo.client import KazooClient

from store.outcome import Outcome
from store.zookeeper import Connection, Operation, ZooKeeper
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

T = TypeVar("T")

CONNECTED, READ_ONLY, SUSPENDED, LOST = (
    Connection.CONNECTED,
    Connection.READ_ONLY,
    Connection.SUSPENDED,
    Connection.LOST,
)
ASKED_S = 3.0  # session time-out: above the least that the servers here grant, so it is what we get


class Server:
    def __init__(self, home: Path, ports: list[tuple[int, int, int]], number: int = 1, *options: str) -> None:
        self.home = home
        self.hosts = f"127.0.0.1:{ports[number - 1][0]}"
        self.properties: list[str] = []
        self.secure = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._data = home / "data"
        self._data.mkdir(parents=True)
        lines = [
            "tickTime=500", "initLimit=20", "syncLimit=6", "maxSessionTimeout=7000", f"dataDir={self._data}",
            "clientPortAddress=127.0.0.1", f"clientPort={ports[number - 1][0]}", "admin.enableServer=false",
        ]  # fmt: skip
        lines += options
        if len(ports) > 1:
            (self._data / "myid").write_text(str(number))
            lines += [f"server.{n}=127.0.0.1:{quorum}:{vote}" for n, (_, quorum, vote) in enumerate(ports, 1)]
        (home / "zoo.cfg").write_text("\n".join(lines))

    def up(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            return
        jars = Path(next(iter(pyspark.__path__))) / "jars" / "*"
        flags = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dreadonlymode.enabled=true"]
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = [
            shutil.which("java") or "java", *flags, *self.properties, "-cp", str(jars), main,
            str(self.home / "zoo.cfg"),
        ]  # fmt: skip
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)

    def pause(self) -> None:
        assert self._process is not None
        pid = self._process.pid
        self._process.send_signal(signal.SIGSTOP)
        wait_until(lambda: _stopped(f"/proc/{pid}/task"))

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(PATIENCE_S)
            self._process = None

    def wipe(self) -> None:
        for path in (self._data / "version-2").iterdir():
            path.unlink()


class Heard:
    def __init__(self) -> None:
        self._lock = threading.Condition()
        self.all: list[Any] = []

    def __call__(self, what: Any) -> None:
        with self._lock:
            self.all.append(what)
            self._lock.notify_all()

    def wait(self, count: int, timeout: float = PATIENCE_S) -> list[Any]:
        with self._lock:
            assert self._lock.wait_for(lambda: len(self.all) >= count, timeout), self.all
            return list(self.all)


def submit(zookeeper: ZooKeeper, operation: Operation[T], timeout: float) -> Outcome[T]:
    heard = Heard()
    zookeeper.submit(operation, timeout, heard)
    outcome: Outcome[T] = heard.wait(1)[0]
    return outcome


def _stopped(tasks: str) -> bool:
    """Whether each thread of a process is stopped: on a busy machine one of them may still answer for a moment."""
    return all(each.read_text().rpartition(")")[2].split()[0] == "T" for each in Path(tasks).glob("*/stat"))


@contextlib.contextmanager
def connected(hosts: str, session_timeout: float = ASKED_S, **options: Any) -> Iterator[ZooKeeper]:
    zookeeper = ZooKeeper(hosts, session_timeout=session_timeout, **options)
    try:
        zookeeper.start()
        assert zookeeper.wait(PATIENCE_S) in (CONNECTED, READ_ONLY)
        yield zookeeper
    finally:
        zookeeper.close()


@contextlib.contextmanager
def bare(hosts: str, **options: Any) -> Iterator[KazooClient]:
    client = KazooClient(hosts, timeout=ASKED_S, **options)
    client.start(PATIENCE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()
