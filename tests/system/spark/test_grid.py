"""Leadership reaches every sink, however it came: one program with all sinks, under each way to lead.

| way | what brings the leadership |
|---|---|
| cold | a standby starts the program with its grant |
| warm | a standby has started the program before its grant |
| engine | the program died; the next one reattaches to the queries that run in its JVM |
| taken up | the sidecar died; the next one adopts its lease and takes the program up |
| moved | ``ha job move`` has taken the job to another root of its group, where a standby starts the program |
| promoted | the job is the replica of one at another root |

The program leads by itself, and is started by Python or by ``spark-submit``; or it imports nothing of this package,
has the format alone, and is started by ``ha run --spark JOB -- spark-submit``.

Not combined, because they are refused: ``--spark`` with a warm standby (the environment of its start knows no leader
directory) and with an engine. Started by ``spark-submit``, a program that leads has those ways in which the start
matters.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ha
from ha.placement.place import home_of
from ha.sandbox import Sandbox
from tests.limits import HANGS_S
from tests.system.spark.grid_of_sinks import HOME, LONG, PLAIN, PYTHON, SUBMITTED, Grid, kill
from tests.system.spark.helpers import eventually

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(2400)]


def cold(grid: Grid) -> str:
    first = grid.run(0)
    grid.has(1)
    grid.run(1)
    kill(first)
    return "2"


def warm(grid: Grid) -> str:
    first = grid.run(0)
    grid.has(1)
    second = grid.run(1, "--standby", "warm")
    eventually(lambda: "warms up" in second.said, LONG)
    eventually(lambda: grid.waits_warm(second), LONG)
    kill(first)
    return "2"


def engine(grid: Grid) -> str:
    first = grid.run(0, "--engine")
    grid.has(1)
    grid.committed("format")  # a query that is killed inside a batch is started again, not adopted
    program = grid.program_of(first)
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


def moved(grid: Grid) -> str:
    roots = [grid.root, f"{grid.root}-other"]
    group = ",".join(roots)
    grid.run(0, root=group)
    grid.has(1)
    grid.run(1, root=group)
    (other,) = {*roots} - {home_of(roots, grid.job)}
    grid.ha("job", "move", grid.job, "--to", other, "--timeout", f"{LONG:g}", root=group, zookeeper=grid.zookeeper)
    with ha.connect(files=other, zookeeper="") as client:
        found = client.leader(grid.job).epoch
    assert found > 1, "another leader has begun there"
    return f"{found}"


def promoted(grid: Grid) -> str:
    grid.run(0)
    grid.has(1)
    replica = f"{grid.root}-replica"
    grid.ha("replica", "run", grid.job, "--to", replica, "--once")
    grid.stack.close()
    grid.ha("replica", "promote", grid.job, "--yes", "--force", root=replica)
    grid.run(1, root=replica)
    return ""


WAYS: dict[str, tuple[Callable[[Grid], str], tuple[str, ...]]] = {
    "cold": (cold, (PYTHON, SUBMITTED, PLAIN)),
    "warm": (warm, (PYTHON, SUBMITTED)),
    "engine": (engine, (PYTHON, SUBMITTED)),
    "taken up": (taken_up, (PYTHON, PLAIN)),
    "moved": (moved, (PYTHON, PLAIN)),
    "promoted": (promoted, (PYTHON, PLAIN)),
}
"""Each way, and how its program is started: a way returns the epoch in which the job is led then, if that is known."""


@pytest.fixture
def grid(
    form: str, job: str, hdfs_uri: str, zookeeper_hosts: str, sandbox: Sandbox, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Grid]:  # fmt: skip
    for name, value in HOME.items() if form != PYTHON else ():
        monkeypatch.setenv(name, value)
    sandbox.up(kafka=True)
    made = Grid(job, hdfs_uri, zookeeper_hosts, sandbox.environment()["HA_SANDBOX_KAFKA"], tmp_path, form)
    with made.stack:
        yield made
    for host in made.hosts:
        if host.log.exists():
            print(host.said[-6000:])  # noqa: T201  # shown if the test fails


@pytest.mark.parametrize(("way", "form"), [(way, form) for way, (_, forms) in WAYS.items() for form in forms])
def test_leadership_reaches_every_sink(grid: Grid, way: str) -> None:
    grid.feed(1)
    epoch = WAYS[way][0](grid)
    grid.feed(2)
    grid.has(2)
    if epoch:
        assert epoch in grid.epochs(), "a worker has found the new leader"
