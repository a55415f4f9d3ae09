"""One Spark session in local mode for all tests of this folder."""

import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ha.leadership import fenced_rename
from ha.leadership.leadership import Leadership
from ha.sidecar.command.spark_overlay import CLOSING
from leader.timing import Timing
from tests.system.spark.helpers import begin_another_program, leading
from tests.system.spark.jvm import end, jvm_within

SETTINGS = {
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    **CLOSING,
}


LASTING = {"HA_SHORT_TTL": "30", "HA_LONG_TTL": "90", "HA_SESSION_TIMEOUT": "30", "HA_CALL_TIMEOUT": "8"}
"""Leases and calls that outlive a machine on which a JVM starts: few tests here wait for the end of one."""


@pytest.fixture(autouse=True)
def lasting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process, and the programs that it starts, lead with these leases."""
    for name, value in LASTING.items():
        monkeypatch.setenv(name, value)
    # The pause before a try is repeated, 1.25 s with these leases: each job that is new pays it once.
    monkeypatch.setattr(Timing, "retry", property(lambda _: 0.05))


@pytest.fixture
def usual(lasting: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001  # it comes first
    """Leave the leases to programs that have some of their own."""
    for name in LASTING:
        monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def another_program() -> Iterator[None]:
    """Have a test start queries though another one has led in this process."""
    yield
    begin_another_program()


@pytest.fixture
def job() -> str:
    return f"job-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def leadership(tmp_path: Path) -> Iterator[Leadership]:
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        yield leadership


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    monkeypatch.setattr(fenced_rename, "PATIENCE_S", 0.2)


@pytest.fixture
def own_journals(no_pauses: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what other tests have published by the format; a process that is paused is no store that is slow."""
    del no_pauses
    monkeypatch.setattr(fenced_rename, "CALL_TIMEOUT_S", 60.0)
    from ha.spark.sink import writer  # noqa: PLC0415  # older Sparks cannot import it

    monkeypatch.setattr(writer, "_journals", {})


@pytest.fixture(scope="session")
def spark(
    hdfs_uri: str,
    zookeeper_hosts: str,
    class_data: Callable[[], Mapping[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SparkSession]:
    """The session; its JVM and all Python workers inherit the addresses of the stores."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in class_data().items():
            patch.setenv(name, value)
        patch.setenv("HA_FILES", hdfs_uri)
        patch.setenv("HA_ZOOKEEPER", zookeeper_hosts)
        patch.setenv("HA_AUDIT", "2")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        # Workers need this to find the tests' own modules, which are pickled by reference.
        root = str(Path(__file__).parents[3])
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))))
        warehouse = tmp_path_factory.mktemp("warehouse")
        settings = {**SETTINGS, "spark.sql.warehouse.dir": str(warehouse)}
        with jvm_within():
            session = SparkSession.builder.master("local[1]").config(map=dict(settings)).getOrCreate()
    yield session
    end(session)
