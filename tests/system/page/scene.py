"""Jobs to look at: one runs and has a past, one has lost its leader, one has failed, and one has finished."""

import os
import time
from pathlib import Path

import msgspec

from ha.sidecar.running_note import RunningNote
from ha.spark.replication.report import REPORT, ReplicaReport, ReplicatedQuery, encoded
from ha.spark.supervision.states import Graph, GraphQuery, ShownQuery, States
from ha.spark.supervision.supervisor import QueryState
from leader.job.admin import JobAdmin
from leader.job.checkpoints import Checkpoints
from leader.job.exceptions import Exceptions
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import JobStatus, Status
from leader.job.versioned_files import VersionedFiles, graph_of
from leader.layout.checkpoint import Metadata
from leader.layout.names import GRAPH, HISTORY
from leader.layout.running import Running
from store.bounded import BoundedFiles
from tests.unit.ha.checkpoints.simulated_spark import ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.led import Led, session

EVIL = "<img src=x onerror=\"document.title='owned'\">"
"""Text that would run a script if a page took it for HTML."""

TRACE = """Traceback (most recent call last):
  File "/srv/orders/orders.py", line 41, in enrich
    frame = clean.join(customers, "customer_id")
pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN] customer_id cannot be resolved"""

QUERIES = (
    ("clean", ["kafka:orders"], ["out/clean"], 0, QueryState.RUNNING),
    ("enrich", ["out/clean", "out/customers"], ["out/enriched"], 0, QueryState.RESTARTING),
    ("sums", ["out/clean"], ["out/sums"], 0, QueryState.RUNNING),
    ("audit", ["kafka:audit"], ["out/audit"], 1, QueryState.RUNNING),
)

PAST = (("b", "released", 7200), ("a", "expired", 5400), ("b", "process-gone", 1500), ("a", "released", 600))
"""Contender, reason and seconds ago of each grant."""


def arrange(root: Path, files: BoundedFiles) -> None:
    led, admin = Led(root), JobAdmin(files, None, 5)
    for _ in PAST:
        led.claim("orders", "http://10.0.0.7:4040")
    orders = admin.directory("orders")
    advance(orders, Status.RUNNING)
    past(root, orders)
    RunningNote("orders", "a", Running.of([], "")).lead(orders, 3)
    queries(orders)
    failures(root, orders)
    published = Checkpoints(orders)
    for batch, took_ms in ((4119, 610), (4120, 840), (4121, 420)):
        for query, rows in (("clean", 1841), ("sums", 1841), ("audit", 77)):
            published.completed(query, batch, Metadata(took_ms, rows, 20_311, 7_340_032, f"orders={batch * 1000}"))
    for job, status in (("payments", Status.RUNNING), ("reports", Status.FINISHED), ("clicks", Status.FAILING)):
        led.claim(job, "http://10.0.0.8:4040")
        advance(admin.directory(job), status)
    advance(admin.directory("clicks"), Status.FAILED)
    Exceptions(admin.directory("clicks")).add("CommandFailed", f"It has ended with 1, ten times in a row: {EVIL}")
    for job in ("payments", "reports", "clicks"):
        led.release(job)


def advance(directory: FencedDirectory, wanted: Status) -> None:
    status = JobStatus(directory)
    if status.read() is Status.CREATED:
        status.change(Status.CREATED, Status.RUNNING)
    if wanted is not Status.RUNNING:
        status.change(status.read(), wanted)


def past(root: Path, directory: FencedDirectory) -> None:
    for number, (contender, reason, ago) in enumerate(PAST, 1):
        line = root / directory.at(f"{HISTORY}/{number:010d}-{session(number)}~{reason}~{contender}")
        line.mkdir(parents=True, exist_ok=True)
        os.utime(line, (time.time() - ago,) * 2)


def queries(directory: FencedDirectory) -> None:
    graph = Graph([GraphQuery(name, reads, writes, region) for name, reads, writes, region, _ in QUERIES])
    graph_of(directory).put(msgspec.json.encode(graph))
    shown = [
        ShownQuery(name, state, 3 if name == "enrich" else 0, EVIL if name == "enrich" else "", f"run-{name}")
        for name, _, _, _, state in QUERIES
    ]
    states = States(directory.leader.epoch, shown)
    VersionedFiles(directory, GRAPH, "states").put("queries", msgspec.json.encode(states))


def failures(root: Path, directory: FencedDirectory) -> None:
    kept = Exceptions(directory)
    kept.add("StreamingQueryException", f"The source did not answer for 60 s: {EVIL}", query="clean")
    kept.add("AnalysisException", "customer_id cannot be resolved", query="enrich", trace=TRACE)
    for path, ago in zip(sorted((root / directory.at("exceptions")).iterdir()), (1520, 95), strict=True):
        os.utime(path, (time.time() - ago,) * 2)


def checkpoint(root: Path, files: BoundedFiles) -> Path:
    """Give the query "sums" of "orders" a checkpoint with a hole; returns where it is."""
    home = root / JobAdmin(files, None, 5).directory("orders").at("spark/sums")
    until_batch(ROCKSDB_IDS, 6).write_to(home)
    (home / "offsets/3").unlink()
    return home


def replica(root: Path, files: BoundedFiles) -> None:
    Led(root).claim("orders.replica", "http://10.0.0.9:4040")
    ago = time.time() - 95
    seen = [
        ReplicatedQuery("clean", 4121, 4121, 4122, time.time() - 2),
        ReplicatedQuery("sums", 4100, 4121, 4122, ago, EVIL),
    ]
    report = ReplicaReport("hdfs://first/jobs/orders", time.time(), seen)
    place = JobAdmin(files, None, 5).directory("orders.replica")
    (root / place.at(REPORT)).write_bytes(encoded(report))
