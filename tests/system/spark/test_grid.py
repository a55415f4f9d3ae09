"""Leadership reaches every sink, however it came: one program with all sinks, under each way to lead.

| way | what brings the leadership |
|---|---|
| cold | a standby starts the program with its grant |
| warm | a standby has started the program before its grant |
| engine | the program died; the next one reattaches to the queries that run in its JVM |
| taken up | the sidecar died; the next one adopts its lease and takes the program up |
| moved | the job is in another root of its group |
| promoted | the job is the replica of one at another root |

Not combined: a warm standby with ``--spark`` (refused: the environment of its start knows no leader directory).
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from ha.cli.commands import app
from ha.drill.kill import descendants
from leader.layout.names import SPARK, LeaderDirectory
from store.errors import NotFound
from store.files import Files
from tests.limits import HANGS_S
from tests.system.spark.drivers.grid import QUERIES
from tests.system.spark.helpers import eventually, files_of
from tests.system.spark.test_supervised import DRIVERS, RUN, Driver

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(600)]

LONG = 250.0
"""Seconds: far more than anything takes, even on a busy machine."""


class Grid:
    def __init__(self, job: str, root: str, zookeeper: str, folder: Path) -> None:
        self.hosts = [Driver(job, root, zookeeper, self._made(folder / name)) for name in ("a", "b")]
        self.job, self.root = job, root
        self.source, self.target = self.hosts[0].source, self.hosts[0].target
        self.stack = ExitStack()

    @staticmethod
    def _made(folder: Path) -> Path:
        folder.mkdir()
        return folder

    def run(self, host: int, *options: str, root: str = "") -> Driver:
        """Have a host contend with these options of `ha run`; ends with the test."""
        driver = self.hosts[host]
        driver.root = root or driver.root
        program = [sys.executable, str(DRIVERS / "grid.py"), self.job, self.source.as_uri(), self.target]
        listed = ["--endpoint", "jobmaster=here:1", "--contender", f"host-{host}", *options]
        running: AbstractContextManager[object] = driver.running([*RUN, self.job, *listed, "--", *program])
        self.stack.enter_context(running)
        return driver

    def ha(self, *command: str, root: str = "") -> str:
        answer = CliRunner().invoke(app, [*command, "--files", root or self.root, "--zookeeper", ""])
        assert answer.exit_code == 0, answer.output
        return answer.output

    def lines(self) -> dict[str, list[str]]:
        """The lines of each query, without what `workers` adds; of `letters` also the dead ones."""

        def read(files: Files, path: str) -> list[str]:
            try:
                entries = files.list(path)
            except NotFound:
                return []
            found = []
            for each in entries:
                inside = f"{path}/{each.name}"
                if each.is_directory:
                    found += read(files, inside) if not each.name.startswith(".") else []
                elif each.name.startswith("part-"):
                    found += files.read(inside, 10_000).decode().splitlines()
            return found

        with files_of(self.target) as do:
            return {query: sorted(do(lambda files, query=query: read(files, query))) for query in QUERIES}  # type: ignore[misc]

    def has(self, count: int) -> None:
        expected = sorted(f"line {number}" for number in range(count))

        def complete() -> bool:
            found = self.lines()
            found["workers"] = [line.partition(" by ")[0] for line in found["workers"]]
            dead = [line for line in found["letters"] if "dead" in line]
            found["letters"] = [line for line in found["letters"] if "dead" not in line]
            return all(found[query] == expected for query in QUERIES) and len(dead) == count

        try:
            eventually(complete, LONG)
        except AssertionError as error:
            raise AssertionError(f"{self.lines()}") from error

    def committed(self, query: str) -> None:
        def noted(files: Files) -> bool:
            for each in files.list(self.job):
                with suppress(NotFound):
                    if LeaderDirectory.parse(each.name) and files.list(
                        f"{self.job}/{each.name}/{SPARK}/{query}/commits"
                    ):
                        return True
            return False

        with files_of(self.root) as do:
            eventually(lambda: do(noted), LONG)

    def epochs(self) -> set[str]:
        return {line.partition(" by ")[2] for line in self.lines()["workers"]}


def cold(grid: Grid) -> str:
    first = grid.run(0)
    grid.has(1)
    grid.run(1)
    _kill(first)
    return "2"


def warm(grid: Grid) -> str:
    first = grid.run(0)
    grid.has(1)
    second = grid.run(1, "--standby", "warm")
    eventually(lambda: "warms up" in second.said, LONG)
    eventually(lambda: waits_warm(second), LONG)
    _kill(first)
    return "2"


def engine(grid: Grid) -> str:
    first = grid.run(0, "--engine")
    grid.has(1)
    grid.committed("format")  # a query that is killed inside a batch is started again, not adopted
    program = program_of(first)
    assert program is not None
    os.kill(program, signal.SIGKILL)
    eventually(lambda: "is reattached" in first.said, LONG)
    return "1"


def taken_up(grid: Grid) -> str:
    options = ("--adopt-within", "20")
    first = grid.run(0, *options)
    grid.has(1)
    assert first.process is not None
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait(HANGS_S)
    grid.hosts[1].folder = first.folder
    second = grid.run(1, "--contender", "host-0", *options)
    eventually(lambda: "is taken up" in second.said, LONG)
    return "1"


def promoted(grid: Grid) -> str:
    grid.run(0)
    grid.has(1)
    replica = f"{grid.root}-replica"
    grid.ha("replica", "run", grid.job, "--to", replica, "--once")
    grid.stack.close()
    grid.ha("replica", "promote", grid.job, "--yes", "--force", root=replica)
    grid.run(1, root=replica)
    return ""


WAYS: dict[str, Callable[[Grid], str]] = {
    "cold": cold, "warm": warm, "engine": engine, "taken up": taken_up, "promoted": promoted,
}  # fmt: skip


@pytest.fixture
def grid(job: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path) -> Iterator[Grid]:
    made = Grid(job, hdfs_uri, zookeeper_hosts, tmp_path)
    with made.stack:
        yield made
    for host in made.hosts:
        if host.log.exists():
            print(host.said[-6000:])  # noqa: T201  # shown if the test fails


@pytest.mark.parametrize("way", WAYS)
def test_leadership_reaches_every_sink(grid: Grid, way: str) -> None:
    feed_lines(grid, 1)
    epoch = WAYS[way](grid)
    feed_lines(grid, 2)
    grid.has(2)
    if epoch:
        assert epoch in grid.epochs(), "a worker has found the new leader"


def feed_lines(grid: Grid, count: int) -> None:
    """Have this many lines in the input; each appears at once."""
    for number in range(count):
        if not (there := grid.source / f"line-{number}.txt").exists():
            (staged := grid.source.parent / f"staged-{number}").write_text(f"line {number}\n")
            staged.rename(there)


def program_of(driver: Driver) -> int | None:
    assert driver.process is not None
    for pid in descendants(driver.process.pid):
        with suppress(OSError):  # it has ended
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
            if words[1:2] == [str(DRIVERS / "grid.py")]:
                return pid
    return None


def waits_warm(driver: Driver) -> bool:
    if (program := program_of(driver)) is None:
        return False
    words = Path(f"/proc/{program}/environ").read_bytes().decode().split("\0")
    (grant,) = (each.partition("=")[2] for each in words if each.startswith("HA_GRANT="))
    return Path(f"{grant}.awaited").exists()


def _kill(driver: Driver) -> None:
    assert driver.process is not None
    for pid in [driver.process.pid, *descendants(driver.process.pid)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
