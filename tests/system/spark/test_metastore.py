"""A partition commit into a real Hive metastore, a server of its own, through a crash and a lost answer."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ha.hosts.java import FLAGS, find_java
from ha.sandbox.jars import spark_jars
from ha.sandbox.ports import LOOPBACK, free_ports
from tests.limits import killed
from tests.system.spark.helpers import eventually, names

pytestmark = [
    pytest.mark.spark, pytest.mark.hdfs, pytest.mark.zookeeper, pytest.mark.slow, pytest.mark.timeout(500),
]  # fmt: skip

DRIVER = Path(__file__).parent / "drivers" / "table.py"
STARTED_S, RUN_S = 120.0, 150.0

HIVE = {"datanucleus.schema.autoCreateAll": "true", "hive.metastore.schema.verification": "false"}
"""The server makes the tables of its database, an empty Derby, by itself."""

ROWS = [("a", "1"), ("b", "2"), ("c", "1")]
"""Texts and days, a batch each: the last row is late for the first day."""


@pytest.fixture
def metastore(tmp_path: Path, sandbox: object) -> Iterator[str]:
    """A metastore from PySpark's own jars; its URI."""
    assert sandbox, "HADOOP_USER_NAME is set"
    port = free_ports(1)[0]
    database = f"jdbc:derby:;databaseName={tmp_path / 'metastore'};create=true"
    settings = {
        **HIVE,
        "javax.jdo.option.ConnectionURL": database,
        "hive.metastore.warehouse.dir": (tmp_path / "warehouse").as_uri(),
    }
    command = [
        *(str(find_java().path), *FLAGS, "-cp", f"{spark_jars()}/*"),
        "-Dlog4j.configurationFile=classpath:org/apache/spark/log4j2-defaults.properties",
        *("org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(port)),
        *(part for name, value in settings.items() for part in ("--hiveconf", f"{name}={value}")),
    ]
    log = tmp_path / "metastore.log"
    with log.open("wb") as out, killed(subprocess.Popen(command, cwd=tmp_path, stdout=out, stderr=out)) as server:
        eventually(lambda: _listens(port) or _ended(server, log), STARTED_S)
        yield f"thrift://{LOOPBACK}:{port}"


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def _ended(server: subprocess.Popen[bytes], log: Path) -> bool:
    assert server.poll() is None, log.read_text()[-2000:]
    return False


def test_a_crash_before_a_partition_is_added_and_an_answer_that_is_lost(
    metastore: str, job: str, hdfs_uri: str, zookeeper_hosts: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "in", f"{hdfs_uri.rpartition('/')[0]}/{job}-out"
    source.mkdir()
    for number, (text, day) in enumerate(ROWS):
        file = source / f"{number}.json"
        file.write_text(json.dumps({"text": text, "day": day}))
        os.utime(file, (number, number))
    environment = {
        **os.environ,
        "HA_FILES": hdfs_uri,
        "HA_ZOOKEEPER": zookeeper_hosts,
        "PYSPARK_PYTHON": sys.executable,
    }

    def drive(fault: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(DRIVER), job, source.as_uri(), target, metastore, fault]
        return subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=RUN_S, check=False
        )

    killed = drive("kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert names(f"{target}/day=1") == ["batch=0"], "the rows are in their place"
    ended = drive("raise")
    assert ended.returncode == 0, ended.stderr[-3000:]
    before, after, added = map(json.loads, ended.stdout.splitlines())
    assert before == [], "and the table knows nothing of them"
    assert after == [["1", 0, "a"], ["1", 2, "c"], ["2", 1, "b"]]
    assert added == ["day=1", "day=1", "day=2", "day=1"], "once more after the answer was lost, and for the late row"
    assert names(f"{target}/day=1") == ["_SUCCESS", "batch=0", "batch=2"]
