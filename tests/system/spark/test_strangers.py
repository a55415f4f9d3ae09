"""Another user of the host sends packets to the port by which Spark's JVM calls a program."""

import ipaddress
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ha.drill.kill import descendants
from tests.patience import DRIVER_S, PATIENCE_S
from tests.system.spark.helpers import eventually, leading
from tests.unit.ha.nobody import as_nobody, needs_root

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1200), needs_root]

DRIVERS = Path(__file__).parent / "drivers"
RUN = (sys.executable, "-P", "-m", "ha.cli", "run")
ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "security.md"

RELEASE = """
for number in range(9):
    with socket.socket() as one:
        one.settimeout(20)
        one.connect(("127.0.0.1", int(sys.argv[1])))
        try:
            one.sendall(f"g\\np{number}\\ne\\n".encode())
            print(one.recv(9))
        except ConnectionError:
            print(b"")
"""
"""Releases the first objects of a program, among them its listener and the function of its query."""


class Called:
    """The driver ``called.py``, and what it has noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def note(self, name: str) -> int:
        file = self.folder / name
        return int(file.read_text()) if file.exists() else -1

    @contextmanager
    def running(self, command: Sequence[str], variables: Mapping[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
        program = [*command, str(DRIVERS / "called.py"), str(self.folder)]
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, **variables}
        environment = {name: value for name, value in environment.items() if value or name != "SPARK_LOCAL_IP"}
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen(program, env=environment, stdout=log, stderr=log)
        try:
            eventually(lambda: self.started or process.poll() is not None, DRIVER_S)
            assert self.started, self.said[-3000:]
            yield process
        finally:
            for pid in descendants(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait(PATIENCE_S)

    @property
    def started(self) -> bool:
        return self.note("port") > 0 and self.note("event") >= 0

    @property
    def said(self) -> str:
        return (self.folder / "log").read_text()


@pytest.fixture
def called(tmp_path: Path) -> Called:
    (tmp_path / "called").mkdir()
    return Called(tmp_path / "called")


def test_spark_alone_lets_anybody_end_a_query(called: Called) -> None:
    """When this fails, PySpark has mended it, and our guard can go."""
    with called.running([sys.executable], {}) as process:
        assert "!y" in as_nobody(RELEASE, called.note("port"))
        assert process.wait(PATIENCE_S) != 0
    assert "Object ID unknown" in called.said


@pytest.mark.parametrize("option", [["--spark"], []], ids=["spark", "plain"])
@pytest.mark.parametrize("how", [sys.executable, str(Path(sys.executable).with_name("spark-submit"))])
def test_ha_run_keeps_them_from_a_program_that_imports_nothing(
    called: Called, tmp_path: Path, how: str, option: list[str]
) -> None:
    known = {"HA_FILES": (tmp_path / "jobs").as_uri(), "HA_ZOOKEEPER": ""}
    with called.running([*RUN, "orders", *option, "--", how], known) as process:
        assert set(as_nobody(RELEASE, called.note("port")).split()) == {"b''"}
        batch, event = called.note("batch"), called.note("event")
        eventually(lambda: called.note("batch") > batch + 3 and called.note("event") > event + 3)
        (called.folder / "end").touch()
        assert process.wait(PATIENCE_S) == 0
    assert "The user with the number 65534 has connected to the port by which Spark calls this program" in called.said
    with leading("orders", known["HA_FILES"]) as successor:
        published = successor.checkpoints.state().queries if option else {"rows": event}
    assert published["rows"] >= event


def test_an_import_keeps_them_from_a_program_that_leads(called: Called, tmp_path: Path) -> None:
    known = {"HA_FILES": (tmp_path / "jobs").as_uri(), "HA_ZOOKEEPER": "", "CALLED_LEADS": "orders"}
    with called.running([sys.executable], {**known, "PYTHONPATH": str(ROOT)}) as process:
        assert set(as_nobody(RELEASE, called.note("port")).split()) == {"b''"}
        event = called.note("event")
        eventually(lambda: called.note("event") > event + 3)
        (called.folder / "end").touch()
        assert process.wait(PATIENCE_S) == 0
    with leading("orders", known["HA_FILES"]) as successor:
        assert successor.checkpoints.state().queries["rows"] > event + 3


def test_a_program_that_has_lost_what_spark_calls_ends(called: Called, tmp_path: Path) -> None:
    """No restart of the query mends that, so there is none. This user's own packets are let in."""
    known = {"HA_FILES": (tmp_path / "jobs").as_uri(), "HA_ZOOKEEPER": "", "PYTHONPATH": str(ROOT)}
    known |= {"CALLED_LEADS": "orders", "CALLED_DECLARES": "yes"}
    with called.running([sys.executable], known) as process:
        command = [sys.executable, "-c", f"import socket, sys\n{RELEASE}", str(called.note("port"))]
        subprocess.run(command, timeout=PATIENCE_S, check=True)
        # The lost listener tells of no end, so the runner's next look finds it: after 15 s on a machine with time.
        assert process.wait(DRIVER_S) != 0
    assert "Job 'orders' ends, because a query has failed. rows:" in called.said
    assert "Object ID unknown" in called.said
    assert "starting rows again" not in called.said


GARBAGE = r"""
for each in sys.argv[1:]:
    host, _, port = each.rpartition(":")
    for said in (b"", b"g\np0\ne\n", b"\0" * 4000, b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 40):
        with socket.socket() as one:
            one.settimeout(20)
            one.connect((host, int(port)))
            try:
                one.sendall(said)
            except ConnectionError:
                pass
"""


def listening(pid: int) -> dict[int, str]:
    own = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            own.add(str(each.readlink()).removeprefix("socket:[").rstrip("]"))
    found = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            part = line.split()
            if part[3] == "0A" and part[9] in own:
                address, _, port = part[1].partition(":")
                found[int(port, 16)] = f"{ipaddress.IPv4Address(bytes.fromhex(address[-8:])[::-1])}"
    return found


def told(address: str) -> str:
    if ipaddress.ip_address(address).is_unspecified:
        return "all addresses"
    return address if address == "127.0.0.1" else "the host's own address"


@pytest.mark.parametrize("variables", [{}, {"SPARK_LOCAL_IP": ""}], ids=["loopback", "usual"])
def test_each_port_of_spark_survives_a_stranger(called: Called, tmp_path: Path, variables: dict[str, str]) -> None:
    """The table in docs/security.md says what each is for, and where it listens if SPARK_LOCAL_IP is not set."""
    known = {"HA_FILES": (tmp_path / "jobs").as_uri(), "HA_ZOOKEEPER": "", **variables}
    with called.running([*RUN, "orders", "--spark", "--", sys.executable], known) as process:
        names = {port: name for name, port in json.loads((called.folder / "ports").read_text()).items()}
        found: dict[str, tuple[str, int]] = {}
        for pid in descendants(process.pid):
            with suppress(OSError):  # it has ended
                command = Path(f"/proc/{pid}/cmdline").read_bytes()
                other = "workers" if b"pyspark.daemon" in command else f"{command!r}"
                found |= {names.get(port, other): (address, port) for port, address in listening(pid).items()}
        page = dict(re.findall(r"^\| (\w+): [^|]*\| ([^|]+) \|", PAGE.read_text(), re.MULTILINE))
        expected = page if variables else dict.fromkeys(page, "127.0.0.1")
        assert {name: told(address) for name, (address, _) in found.items()} == expected
        as_nobody(GARBAGE, *(f"{address}:{port}" for address, port in found.values()))
        event = called.note("event")
        eventually(lambda: called.note("event") > event + 3)
        (called.folder / "end").touch()
        assert process.wait(PATIENCE_S) == 0
