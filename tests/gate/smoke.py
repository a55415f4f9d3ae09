"""Smoke: whether this machine can do at all what the tests need. If not, that is no fault of the change."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest import mock

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from ha.hosts.host_error import HostError
from ha.sandbox import Sandbox
from ha.sandbox.launcher import last_lines
from ha.sidecar.command import class_data
from store.errors import StoreError
from store.open import open_files
from tests.servers import KINDS

UNFIT = 3
SPARK_S = 300.0
CALL_S = 30.0
JOB = """from pyspark.sql import SparkSession
assert SparkSession.builder.master('local[1]').getOrCreate().range(9).count() == 9"""


class Unfit(Exception):
    """The machine cannot do it; the text says what."""


def main() -> int:
    """Try it in the sandbox's directory that is given; returns 3 if the machine is unfit, and says why."""
    try:
        smoke(Sandbox(sys.argv[1]))
    except Unfit as error:
        sys.stdout.write(f"{error}\n")
        return UNFIT
    return 0


def smoke(sandbox: Sandbox) -> None:
    """Start the sandbox, rename something in HDFS, make a node in ZooKeeper, and run one job of Spark.

    The archive of Spark's classes is made on the way, before the tests, which start dozens of drivers.

    Raises:
        Unfit: one of them does not work.
    """
    _tried("The sandbox's servers do not start", sandbox.up)
    environment = sandbox.environment()
    _tried("HDFS does not rename", lambda: _rename(f"{environment['HA_FILES']}-smoke"))
    _tried("ZooKeeper makes no node", lambda: _node(environment["HA_ZOOKEEPER"]))
    _tried("Spark runs no job", lambda: _job(environment))


def ill(sandbox: Sandbox) -> str:
    """Return which servers of a sandbox do not serve, with the last lines of their logs; nothing if all do."""
    found = [
        f"{each.name} is {each.state if each.state != 'up' else 'up, and does not answer'};"
        f" {last_lines(sandbox.directory / 'logs' / f'{each.name}.log')}"
        for each in sandbox.status()
        if each.kind in KINDS and (each.state != "up" or (each.role is None and each.kind in {"zookeeper", "namenode"}))
    ]
    return "\n".join(found)


def _tried(what: str, do: Callable[[], object]) -> None:
    try:
        do()
    except (HostError, StoreError, KazooException, TimeoutError, OSError, subprocess.TimeoutExpired) as error:
        raise Unfit(f"{what}: {type(error).__name__}: {error}") from error


def _rename(uri: str) -> None:
    with open_files(uri) as files:
        files.call("make the root", lambda driver: driver.make_root(), CALL_S)
        files.call("make a directory", lambda driver: driver.make_directory("before"), CALL_S)
        files.call("rename it", lambda driver: driver.rename("before", "after"), CALL_S)
        found = files.call("list", lambda driver: [each.name for each in driver.list("")], CALL_S)
    assert found == ["after"], f"after the rename there is {found}"


def _node(hosts: str) -> None:
    client = KazooClient(hosts)
    client.start(CALL_S)
    try:
        client.create_async("/smoke", b"seen").get(timeout=CALL_S)
        assert client.get_async("/smoke").get(timeout=CALL_S)[0] == b"seen"
    finally:
        client.stop()
        client.close()


def _job(environment: Mapping[str, str]) -> None:
    folder: Path = Path(environment["HADOOP_CONF_DIR"]).parent
    data = class_data.ClassData([sys.executable], (folder / "training").as_uri())
    with mock.patch.object(class_data, "in_background", return_value=None):
        data.find()
    if data.archive is None:
        raise HostError("there is no archive of its classes: see above.")
    variables = {**os.environ, **environment, **data.options(os.environ)}
    ended = subprocess.run(
        [sys.executable, "-c", JOB], env=variables, capture_output=True, text=True, timeout=SPARK_S, check=False
    )
    if ended.returncode:
        raise HostError(ended.stderr[-2000:])


if __name__ == "__main__":
    sys.exit(main())
