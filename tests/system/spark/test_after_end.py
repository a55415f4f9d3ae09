"""After the end nothing begins: ways in which a leadership ends, and shapes of programs that would go on.

One driver has all shapes at once. It leads job after job, and each ends in another way. Then another process is granted
the job, and there is new input. Whatever the driver starts or writes after that grant is in its file behind it.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ha.drill.kill import descendants
from leader.layout.names import LeaderDirectory
from tests.limits import killed
from tests.patience import DRIVER_S, PATIENCE_S
from tests.system.spark.conftest import LASTING
from tests.system.spark.helpers import eventually, files_of, leading, names
from tests.system.spark.test_checkpoints import feed
from tests.unit.ha.programs import alive

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(1500)]

DRIVER = Path(__file__).parent / "drivers" / "after_end.py"
ROOT = Path(__file__).parents[3]
CLI = (sys.executable, "-P", "-m", "ha.cli")
SHAPES = ("plain", "loop", "session", "format")
"""A query with a sink of its own, in a loop that must never stay down, of a new session, and with the format ha."""

LATER = "later"
"""A thread starts its query after the end."""

TRIES = 3
"""So often the shapes that never stay down are seen to fail, in the block and outside."""

SHORT = {"short_ttl": 15, "long_ttl": 30, "session_timeout": 15, "call_timeout": 2}
"""Of a leader that loses its stores: others wait for the end of its lease."""


class Way:
    """One leadership of the driver, and what it has noted."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder, self.job = folder, f"job-{uuid.uuid4().hex[:8]}"
        self.target = f"{root}-out/{uuid.uuid4().hex}"
        self._root = root
        (folder / "in").mkdir(parents=True)
        feed(folder / "in", 0)

    def order(self, what: str, content: str = "") -> None:
        staged = self.folder / f".{what}"
        staged.write_text(content)
        staged.rename(self.folder / what)

    @property
    def events(self) -> list[str]:
        try:
            return (self.folder / "events").read_text().splitlines()
        except OSError:
            return []

    def after(self, what: str) -> list[str]:
        return self.events[self.events.index(what) + 1 :]

    def published(self) -> list[str]:
        try:
            return [each for each in names(f"{self.target}/format") if not each.startswith("_")]
        except Exception:  # noqa: BLE001  # the first batch makes it
            return []

    def at_work(self) -> None:
        """Wait until every shape has written a row."""
        expected = {f"row {shape}" for shape in SHAPES if shape != "format"}

        def all_have_written() -> bool:
            assert not [each for each in self.events if each.startswith(("failed ", "refused "))]
            return expected <= {*self.events} and bool(self.published())

        eventually(all_have_written, DRIVER_S)

    def note(self, what: str) -> None:
        with (self.folder / "events").open("a") as events:
            events.write(f"{what}\n")

    def granted(self) -> None:
        """Note that another process is granted the job, and give all shapes something to do."""
        self.note("granted")
        before = self.published()
        for number in (1, 2):
            feed(self.folder / "in", number)
        self.order("later")
        self.before = before

    def tried(self, since: str) -> None:
        """Wait until whatever never stays down has been refused after that."""
        for shape in ("loop", LATER):
            eventually(
                lambda shape=shape: sum(each.startswith(f"refused {shape} ") for each in self.after(since)) >= TRIES  # type: ignore[misc]
            )

    def learned(self, since: str) -> None:
        """Wait until every shape has been ended after that."""
        self.tried(since)
        ended = {f"{how} {shape}" for how in ("failed", "ended") for shape in ("plain", "session", "format")}
        eventually(lambda: len(ended & {" ".join(each.split()[:2]) for each in self.after(since)}) == 3)

    def nothing_since(self) -> None:
        late = [each for each in self.after("granted") if each.startswith(("row ", "started "))]
        assert late == []
        assert self.published() == self.before


class Relay:
    """Passes on to a NameNode until it is cut; its port stays taken."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        self._target = (str(parts.hostname), int(parts.port or 0))
        self._cut = threading.Event()
        self._open: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.uri = parts._replace(netloc=f"127.0.0.1:{self._server.getsockname()[1]}").geturl()
        threading.Thread(target=self._serve, name="relay", daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            if self._cut.is_set():
                client.close()
                continue
            server = socket.create_connection(self._target, PATIENCE_S)
            self._open += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def cut(self) -> None:
        self._cut.set()
        for each in self._open:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self) -> None:
        self.cut()
        self._server.close()
        for each in self._open:
            each.close()


@pytest.fixture
def relay(hdfs_uri: str) -> Iterator[Relay]:
    made = Relay(hdfs_uri)
    yield made
    made.close()


class Driver:
    """The program that leads job after job."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder, self._root, self._number = folder, root, 0

    def next(self, way: str, root: str = "", settings: Mapping[str, object] | None = None) -> Way:
        made = Way(self.folder / str(self._number), root or self._root)
        self._number += 1
        given = {"files": root or self._root, "zookeeper": "", "contender": "first", **(settings or {})}
        made.order("order", json.dumps({"job": made.job, "way": way, "target": made.target, "settings": given}))
        return made


@contextmanager
def running(command: Sequence[str], folder: Path, **more: str) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {**os.environ, **LASTING, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), **more}
    log = folder / "log"
    with log.open("wb") as said, ExitStack() as stack:
        process = stack.enter_context(killed(subprocess.Popen(command, env=environment, stdout=said, stderr=said)))
        try:
            yield process
        finally:
            for pid in descendants(process.pid)[1:]:
                stack.callback(end, pid)
            sys.stdout.write(log.read_text()[-5000:])


def end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture(scope="module")
def driver(hdfs_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    folder = tmp_path_factory.mktemp("driver")
    with running([sys.executable, str(DRIVER), str(folder)], folder):
        yield Driver(folder, hdfs_uri)


def fence(directory: str) -> None:
    """Rename a leader directory, as a successor does who believes that its leader is gone."""
    parent, _, name = directory.rpartition("/")
    later = LeaderDirectory(int(name.partition("-")[0]) + 1, str(uuid.uuid4()))
    with files_of(parent) as do:
        do(lambda files: files.rename(name, later.name))


@pytest.mark.parametrize("way", ["resigned", "rebuilt", "left", "raised", "handed", "fenced", "lost"])
def test_a_driver_that_lives_on(way: str, driver: Driver, hdfs_uri: str, relay: Relay) -> None:
    led = driver.next(way, relay.uri, SHORT) if way == "lost" else driver.next(way)
    with ExitStack() as stack:
        for what in ("over", "leave", "resign", "end"):  # for the next way, if this one fails
            stack.callback(led.order, what)
        led.at_work()
        led.order("end")
        if way == "rebuilt":
            eventually(lambda: "rebuilt" in led.events and "started loop" in led.after("rebuilt"))
            feed(led.folder / "in", 3)
            eventually(lambda: "row loop" in led.after("rebuilt"))
            led.order("resign")
        if way == "fenced":
            fence(next(each for each in led.events if each.startswith("leads ")).removeprefix("leads "))
            led.note("fenced")
            led.order("later")
            led.learned("fenced")  # a successor waits that long: for the end of the lease
            led.granted()
        if way == "lost":
            relay.cut()
        if way == "handed":
            asks = [*CLI, "job", "handover", led.job, "--files", hdfs_uri]
            stack.enter_context(killed(subprocess.Popen(asks)))
        if way != "fenced":
            stack.enter_context(leading(led.job, hdfs_uri, contender="second"))
            led.granted()
        led.tried("granted")
        led.order("leave")
        eventually(lambda: "outside" in led.events)
        led.tried("outside")
        led.nothing_since()


SIDECAR = [*CLI, "run", "--contender", "first"]


@pytest.mark.parametrize("way", ["handed", "cancelled", "stopped", "guard", "lost", "sidecar"])
def test_a_driver_that_its_sidecar_ends(way: str, hdfs_uri: str, tmp_path: Path, relay: Relay) -> None:
    root = relay.uri if way == "lost" else hdfs_uri
    led = Driver(tmp_path, root).next("waits")
    options = ["--spark"] if way == "sidecar" else []
    short = {f"HA_{name.upper()}": str(value) for name, value in SHORT.items()} if way == "lost" else {}
    command = [*SIDECAR, *options, led.job, "--", sys.executable, str(DRIVER), str(tmp_path)]
    with running(command, tmp_path, HA_FILES=root, HA_ZOOKEEPER="", **short) as sidecar, ExitStack() as stack:
        led.at_work()
        driver = descendants(sidecar.pid)[1:]
        if way == "lost":
            relay.cut()
        elif way == "guard":
            os.kill(driver[0], signal.SIGKILL)
        elif way == "sidecar":
            sidecar.kill()
        else:
            verb = {"handed": "handover", "cancelled": "cancel", "stopped": "stop"}[way]
            asks = [*CLI, "job", verb, led.job, "--files", hdfs_uri]
            stack.enter_context(killed(subprocess.Popen(asks)))
        stack.enter_context(leading(led.job, hdfs_uri, contender="second"))
        led.granted()
        assert not any(alive(pid) for pid in driver), "nobody is left who could write"
        led.nothing_since()
