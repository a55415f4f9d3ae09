"""Lookups from real Python workers, and from processes that fork."""

import importlib
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark import cloudpickle
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

import ha
import ha.spark.worker
from ha.spark import worker
from ha.spark.tasks.task import job_of
from leader.errors import InvalidSettings
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import eventually, leading

pytestmark = [pytest.mark.hdfs, pytest.mark.zookeeper]

_log = logging.getLogger(__name__)

NOTHING_FOR_WORKERS = {
    "py4j", "pandas", "pyarrow", "starlette", "uvicorn", "click", "rich", "hdfs", "prometheus_client",
}  # fmt: skip

# Code for workers must not bring this module along: it imports modules that they must not.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def look_up() -> dict[str, Any]:
    loaded = set(sys.modules)
    begun = time.perf_counter()
    found = importlib.import_module("ha.spark.worker").job_master()
    first = time.perf_counter() - begun
    job_master = importlib.import_module("ha.spark.worker").job_master
    begun = time.perf_counter()
    for _ in range(1000):
        job_master()
    cached = (time.perf_counter() - begun) / 1000
    state = importlib.import_module("ha.spark.worker").checkpoint()
    return {
        "address": found.address,
        "epoch": found.epoch,
        "source": found.source.value,
        "queries": dict(state.queries),
        "checkpoint_epoch": state.epoch,
        "pid": os.getpid(),
        "first": first,
        "cached": cached,
        "imported": sorted(set(sys.modules) - loaded),
    }


def in_worker(spark: SparkSession) -> dict[str, Any]:
    asked = sql.udf(lambda _: json.dumps(look_up()), "string").asNondeterministic()
    row = spark.range(1).select(asked("id")).first()
    assert row is not None
    answer: dict[str, Any] = json.loads(row[0])
    return answer


@pytest.mark.spark
def test_a_udf_learns_who_leads(
    spark: SparkSession, job: str, hdfs_uri: str, zookeeper_hosts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HA_JOB", "not-this-one")  # the JVM is up already; what counts is the property
    spark.conf.set("spark.ha.job", job)
    with leading(job, hdfs_uri, zookeeper_hosts) as leadership:
        leadership.checkpoints.completed("orders", 7)
        found = in_worker(spark)
        assert (found["address"], found["epoch"]) == ("here:1", leadership.epoch)
        assert found["source"] == "zookeeper"
        assert (found["queries"], found["checkpoint_epoch"]) == ({"orders": 7}, leadership.epoch)
        assert "ha.spark.worker" in found["imported"]  # so it really was the first lookup
        assert not {name.partition(".")[0] for name in found["imported"]} & {"pyspark", *NOTHING_FOR_WORKERS}
        _log.info("First lookup %.0f ms, cached %.2f us.", found["first"] * 1e3, found["cached"] * 1e6)


@pytest.mark.spark
def test_a_worker_sees_the_next_job_master(spark: SparkSession, job: str, hdfs_uri: str, zookeeper_hosts: str) -> None:
    spark.conf.set("spark.ha.job", job)
    with ExitStack() as first:
        first.enter_context(leading(job, hdfs_uri, zookeeper_hosts))
        before = in_worker(spark)
    with leading(job, hdfs_uri, zookeeper_hosts) as leadership:
        leadership.confirm({"jobmaster": "there:2"})
        after = eventually(lambda: found if (found := in_worker(spark))["address"] == "there:2" else None)
        assert after is not None
        assert after["epoch"] == before["epoch"] + 1 == leadership.epoch
        assert after["pid"] == before["pid"]  # the same worker: it was notified
        leadership.confirm({"jobmaster": "elsewhere:3"})
        eventually(lambda: in_worker(spark)["address"] == "elsewhere:3")


@pytest.mark.spark
def test_one_worker_serves_two_clusters(spark: SparkSession, job: str, hdfs_uri: str, zookeeper_hosts: str) -> None:
    spark.conf.set("spark.ha.job", job)
    elsewhere = f"{hdfs_uri}-elsewhere"
    try:
        with leading(job, hdfs_uri, zookeeper_hosts), leading(job, elsewhere) as other:
            other.confirm({"jobmaster": "elsewhere:1"})
            found = [in_worker(spark)]
            spark.conf.set("spark.ha.files", elsewhere)
            spark.conf.set("spark.ha.zookeeper", f"{zookeeper_hosts}/elsewhere")  # where there is no record of it
            found.append(in_worker(spark))
            spark.conf.unset("spark.ha.files")
            spark.conf.unset("spark.ha.zookeeper")
            found.append(in_worker(spark))
        assert [each["address"] for each in found] == ["here:1", "elsewhere:1", "here:1"]
        assert len({each["pid"] for each in found}) == 1
    finally:
        spark.conf.unset("spark.ha.files")
        spark.conf.unset("spark.ha.zookeeper")


@pytest.mark.spark
def test_a_setting_of_the_session_that_is_wrong_is_named(spark: SparkSession, job: str) -> None:
    spark.conf.set("spark.ha.job", job)
    spark.conf.set("spark.ha.audit", "often")
    try:
        with pytest.raises(PythonException, match=r"audit in Spark's properties spark\.ha\.\* is 'often'"):
            in_worker(spark)
    finally:
        spark.conf.unset("spark.ha.audit")


@pytest.mark.spark
def test_every_kind_of_function_can_ask(spark: SparkSession, job: str, hdfs_uri: str, zookeeper_hosts: str) -> None:
    spark.conf.set("spark.ha.job", job)
    spark.sparkContext.setLocalProperty("spark.ha.job", job)

    def frames(batches: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            yield batch.assign(address=ha.spark.worker.job_master().address)

    def partition(_: Iterable[Any]) -> Iterator[str]:
        yield ha.spark.worker.job_master().address

    with leading(job, hdfs_uri, zookeeper_hosts):
        mapped = spark.range(3).mapInPandas(frames, "id long, address string").collect()
        assert {row["address"] for row in mapped} == {"here:1"}
        assert spark.sparkContext.parallelize([1], 1).mapPartitions(partition).collect() == ["here:1"]


SCRIPT = """
import json, os, sys
import ha
import ha.spark.worker
from ha.spark.worker import client_of
first = ha.spark.worker.job_master()
loaded = sorted(sys.modules)
reader, writer = os.pipe()
parents = client_of(None)
child = os.fork()
if child == 0:
    code = 1
    try:
        found = [ha.spark.worker.job_master(), ha.spark.worker.job_master()]
        state = client_of(None)._checkpoint_reader()._from_files(found[0].job, None, 2.0)  # HDFS, too
        assert client_of(None) is not parents  # nobody would tell the child of changes
        os.write(writer, json.dumps([found[0].address, found[1].epoch, state.epoch]).encode())
        code = 0
    finally:
        os._exit(code)
os.close(writer)
_, status = os.waitpid(child, 0)
again = ha.spark.worker.job_master()
print(json.dumps({
    "first": first.address, "again": again.address, "child": json.loads(os.read(reader, 1000)),
    "status": status, "loaded": loaded,
}), flush=True)
os._exit(0)  # as PySpark's workers end
"""


def run(script: str, environment: dict[str, str]) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


@pytest.fixture
def environment(job: str, hdfs_uri: str, zookeeper_hosts: str, sandbox: object) -> dict[str, str]:
    del sandbox  # it has set HADOOP_CONF_DIR
    known = {name: os.environ[name] for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME", "PATH")}
    return {**known, "HA_JOB": job, "HA_FILES": hdfs_uri, "HA_ZOOKEEPER": zookeeper_hosts, "HA_SNAPSHOTS": "off"}


def test_a_forked_child_goes_on(job: str, hdfs_uri: str, zookeeper_hosts: str, environment: dict[str, str]) -> None:
    with leading(job, hdfs_uri, zookeeper_hosts) as leadership:
        found = run(SCRIPT, environment)
    assert (found["first"], found["again"], found["status"]) == ("here:1", "here:1", 0)
    assert found["child"] == ["here:1", leadership.epoch, leadership.epoch]


SLOW_IMPORT = """
import importlib.abc, sys, threading
begun = threading.Event()

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "SLOW":
            begun.set()
            threading.Event().wait(0.5)  # with the lock of the module that imports it

sys.meta_path.insert(0, Slow())
"""


def test_a_lookup_imports_nothing_of_the_driver_or_the_server(
    job: str, hdfs_uri: str, zookeeper_hosts: str, environment: dict[str, str]
) -> None:
    with leading(job, hdfs_uri, zookeeper_hosts):
        loaded = run(SCRIPT, environment)["loaded"]
    assert not {name.partition(".")[0] for name in loaded} & {"pyspark", *NOTHING_FOR_WORKERS}


FORK_DURING_AN_IMPORT = """
begun_by = threading.Thread(target=lambda: importlib.import_module("ha.spark.worker").job_master())
begun_by.start()
assert begun.wait(10)
child = os.fork()  # while the other thread has the lock of a module
if child == 0:
    code = 1
    try:
        found = importlib.import_module("ha.spark.worker").job_master()
        client = importlib.import_module("ha.spark.worker").client_of(None)
        client._checkpoint_reader()._from_files(found.job, None, 2.0)  # HDFS, too
        code = 0 if found.address == "here:1" else 2
    finally:
        os._exit(code)
_, status = os.waitpid(child, 0)
begun_by.join()
print(json.dumps({"status": status}), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("module", ["kazoo.client", "hdfs_native._internal"])
def test_a_fork_while_another_thread_imports_a_client(
    job: str, hdfs_uri: str, zookeeper_hosts: str, environment: dict[str, str], module: str
) -> None:
    script = SLOW_IMPORT.replace("SLOW", module) + "import importlib, json, os\n" + FORK_DURING_AN_IMPORT
    with leading(job, hdfs_uri, zookeeper_hosts):
        assert run(script, environment) == {"status": 0}


STORE_CLIENTS = {"kazoo", "hdfs_native", "hdfs", "requests"}


@contextmanager
def agent(job: str, environment: dict[str, str]) -> Iterator[None]:
    """Run ``ha host agent``; inside the block it knows the job."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ha.cli", "host", "agent", job], env=environment, stderr=subprocess.DEVNULL
    )
    settings = {name: environment[f"HA_{name.upper()}"] for name in ("files", "zookeeper", "snapshots")}
    try:
        with ha.connect(**settings) as client:
            eventually(lambda: client.cached_leader(job))
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_where_an_agent_answers_no_client_of_any_store_is_imported(
    job: str, hdfs_uri: str, zookeeper_hosts: str, environment: dict[str, str], tmp_path: Path
) -> None:
    """Without an agent, both are imported: HDFS confirms the record of ZooKeeper before it is used (decision 27)."""
    environment["HA_SNAPSHOTS"] = str(tmp_path / "snapshots")
    with leading(job, hdfs_uri, zookeeper_hosts), agent(job, environment):
        answered = run(SCRIPT, environment)
        environment["HA_SNAPSHOTS"] = "off"
        alone = run(SCRIPT, environment)
    assert not STORE_CLIENTS & {name.partition(".")[0] for name in answered["loaded"]}
    # The canary: the imports of a lookup without an agent.
    assert STORE_CLIENTS & {name.partition(".")[0] for name in alone["loaded"]} == {"kazoo", "hdfs_native"}
    assert answered["first"] == alone["first"] == "here:1"


def test_a_lookup_works_without_zookeeper(job: str, hdfs_uri: str, environment: dict[str, str]) -> None:
    environment["HA_ZOOKEEPER"] = ""
    with leading(job, hdfs_uri):
        found = run(SCRIPT, environment)
    assert found["child"][0] == "here:1"


def test_a_missing_endpoint(job: str, hdfs_uri: str, zookeeper_hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_clients", {})
    monkeypatch.setattr(worker, "_present", None)
    monkeypatch.setenv("HA_FILES", hdfs_uri)
    monkeypatch.setenv("HA_ZOOKEEPER", zookeeper_hosts)
    try:
        with leading(job, hdfs_uri, zookeeper_hosts), pytest.raises(ha.errors.NoEndpoint, match="there is: jobmaster"):
            ha.spark.worker.job_master(job, "rest")
    finally:
        worker.client_of(None).close()


def test_no_job_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HA_JOB", raising=False)
    with pytest.raises(InvalidSettings, match="No job is named"):
        job_of(None)
