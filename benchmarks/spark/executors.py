"""Benchmark of what executors of one host hold and fetch: RocksDB's memory over restarts of a query, and artifacts.

*Memory.* A query with state is stopped and started again several times in one application, as declared queries are.
The resident memory of the one executor is read before each stop. Its heap is touched at the start, so what grows later
is memory outside of the heap. With ``boundedMemoryUsage`` all instances of RocksDB in the executor share one budget.

*Artifacts.* A file in HDFS is given to a program whose executors share a host, with Spark's fetch cache and without it.
How often it was read is counted in the NameNode's audit log.
"""

import json
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from benchmarks.context import Context, servers
from benchmarks.drawing import dots
from benchmarks.result import Picture, Result
from benchmarks.spark.cluster import Worker, clean_environment, standalone
from benchmarks.spark.publishing import SPARK
from ha.sandbox import Sandbox
from ha.sandbox.polling import until
from ha.sidecar.memory import descendants
from ha.spark.state_defaults import DEFAULTS

NAME = "spark_executors"
TITLE = "What executors of one host hold and fetch: RocksDB's memory over restarts, artifacts"

BOUND_MB = 100
ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
MEMORY: Mapping[str, dict[str, str]] = {
    "boundedMemoryUsage=false, as by default": {},
    f"boundedMemoryUsage=true, maxMemoryUsageMB={BOUND_MB}": {
        f"{ROCKSDB}.boundedMemoryUsage": "true",
        f"{ROCKSDB}.maxMemoryUsageMB": f"{BOUND_MB}",
    },
}
STARTS, QUICK_STARTS, BATCHES = 8, 2, 3
"""Starts of the query, and batches in each."""

PARTITIONS, ROWS, KEYS = 8, 10_000, 40_000

WIDTH = 8
"""Times 128 bytes: the value of a key."""

CACHE = "spark.files.useFetchCache"
FETCHES = ((2, "true"), (2, "false"), (1, "true"))
"""Executors on the one host, and whether there is a cache."""

CORES, TASKS = 2, 8
PATIENCE = 300.0
MB = 2**20

Row = tuple[str | float | int, ...]


def run(context: Context) -> Result:
    """Run the benchmark.

    Raises:
        SandboxError: the servers did not start.
        CalledProcessError: a driver failed; its log is in the benchmark's folder.
    """
    starts = context.rounds or (QUICK_STARTS if context.quick else STARTS)
    with servers(context) as sandbox:
        held = {}
        for name, settings in MEMORY.items():
            context.say(f"{name}: {starts} starts of a query")
            found = _drive(context, sandbox, {"starts": starts, "settings": settings})
            held[name] = [each / MB for each in found["resident"]]
        opens = []
        for executors, cache in FETCHES:
            context.say(f"An artifact for {executors} executors, {CACHE}={cache}")
            settings = {CACHE: cache, "spark.executor.cores": f"{CORES // executors}"}
            found = _drive(context, sandbox, {"settings": settings})
            read = reads(_read(_log(sandbox)), found["artifact"])
            opens.append((found["executors"], cache, read - found["driver"], found["driver"]))
    return _result(held, opens, starts)


def reads(audit: str, path: str) -> int:
    """Return how often a file was opened, by the audit log of a NameNode."""
    return len(re.findall(rf"\bcmd=open\tsrc={re.escape(path)}\t", audit))


def _log(sandbox: Sandbox) -> Path:
    """Return the log of the NameNode, which has its audit log among its lines."""
    return sandbox.directory / "logs" / "namenode-1.log"


def _read(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def _drive(context: Context, sandbox: Sandbox, told: dict[str, Any]) -> dict[str, Any]:
    """Run a driver on a cluster of its own; returns what it has measured."""
    found = sandbox.environment()
    folder = context.folder / f"cluster-{uuid.uuid4()}"
    folder.mkdir()
    variables = clean_environment() | {key: found[key] for key in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME")}
    with standalone(folder, workers=[Worker(cores=CORES)]) as master, (folder / "driver.log").open("wb") as errors:
        told = {
            **told,
            "master": master,
            "files": found["HA_FILES"],
            "log": str(sandbox.directory / "logs/namenode-1.log"),
        }
        command = [sys.executable, "-m", "benchmarks.spark.executors", json.dumps({**told, "parent": os.getpid()})]
        ran = subprocess.run(command, env=variables, cwd=Path.cwd(), stdout=subprocess.PIPE, stderr=errors, check=True)
    answer: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return answer


def _result(held: Mapping[str, Sequence[float]], opens: Sequence[Row], starts: int) -> Result:
    driver = " or ".join(sorted({str(each[-1]) for each in opens}))
    rows: list[Row] = [
        (f"memory of the executor, {name}", round(each[0]), round(each[-1]), round(each[-1] - each[0]))
        for name, each in held.items()
    ]
    rows += [
        (f"reads of an artifact, {executors} executors on one host, {CACHE}={cache}", "-", read, "-")
        for executors, cache, read, _ in opens
    ]
    return Result(
        name=NAME,
        title=TITLE,
        columns=("what", "first start [MB]", f"start {starts} [MB], or reads", "growth [MB]"),
        rows=tuple(rows),
        targets=(),
        notes=(
            f"{starts} starts of one query, {BATCHES} batches of {ROWS:,} rows in each.",
            f"{KEYS:,} keys in {PARTITIONS} partitions of state, of {128 * WIDTH} bytes each.",
            "The executor's heap is 512 MB, all touched at the start.",
            f"Executors have {CORES} cores together, and {TASKS} tasks.",
            f"The driver read the artifact as well, {driver} times, which is not counted.",
        ),
        pictures=(Picture("memory", "Resident memory of the executor", dots("Memory before each stop", "MB", held)),),
        raw={"resident_mb": held, "opens": opens, "load": os.getloadavg()},
    )


# --- the driver, in a process of its own


def main(told: dict[str, Any]) -> None:
    """Measure what was asked for, and print it as one line of JSON."""
    usual = {
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": "-Xms512m -XX:+AlwaysPreTouch -XX:+UseSerialGC",
        "spark.cores.max": f"{CORES}",
        "spark.sql.shuffle.partitions": f"{PARTITIONS}",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    }
    settings = {**SPARK, **DEFAULTS, **usual, **told["settings"]}
    spark = SparkSession.builder.master(told["master"]).appName(NAME).config(map=settings).getOrCreate()
    found = _memory(spark, told) if "starts" in told else _artifact(spark.sparkContext, told)
    print(json.dumps(found), flush=True)  # noqa: T201  # read by the benchmark
    spark.stop()


def _memory(spark: SparkSession, told: dict[str, Any]) -> dict[str, Any]:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    text = f.repeat(f.sha2(f.col("value").cast("string"), 512), WIDTH)
    counted = source.groupBy((f.col("value") % KEYS).alias("key")).agg(f.max(text))
    writer = counted.writeStream.outputMode("update").format("noop").queryName("held")
    writer = writer.option("checkpointLocation", f"{told['files']}-executors/{uuid.uuid4()}")
    resident = []
    for start in range(told["starts"]):
        query, last = writer.start(), (start + 1) * BATCHES

        def obstacle(query: Any = query, last: int = last) -> str | None:
            if (error := query.exception()) is not None:
                raise error
            done = query.lastProgress["batchId"] if query.lastProgress else -1
            return None if done >= last else f"it has come to {done}"

        until(obstacle, PATIENCE, f"batch {last}")
        resident.append(_resident(told["parent"]))
        query.stop()
    return {"resident": resident}


def _resident(parent: int) -> int:
    """Return the resident memory of the one executor below a process, in bytes."""
    for pid in descendants(parent):
        if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes():
            (kilobytes,) = re.findall(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
            return int(kilobytes) * 1024
    raise RuntimeError("There is no executor.")


def _artifact(context: SparkContext, told: dict[str, Any]) -> dict[str, Any]:
    uri = f"{told['files']}-executors/{uuid.uuid4()}.zip"
    path = uri.partition("//")[2].partition("/")[2]
    jvm: Any = context._jvm  # noqa: SLF001  # the way to Hadoop's client
    file = jvm.org.apache.hadoop.fs.Path(uri)
    file.getFileSystem(context._jsc.hadoopConfiguration()).create(file).close()  # noqa: SLF001
    context.addFile(uri)
    driver = reads(_read(Path(told["log"])), f"/{path}")
    places = context.parallelize(range(TASKS), TASKS).map(_place).collect()
    return {"artifact": f"/{path}", "driver": driver, "executors": len(set(places))}


def _place(_number: int) -> str:
    """Take part long enough that each executor gets a task; return the executor's own directory."""
    time.sleep(1)
    return os.getcwd()  # noqa: PTH109


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
