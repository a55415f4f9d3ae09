"""A registry in which every metric of the project has samples with all of its labels, made by the product itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from ha.agent.standalone import LenderMetrics, agent_of, reader_of
from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.metrics.contending import CommandCounters, ContendingMetrics, LeadershipStatus
from ha.metrics.process_metrics import Metrics
from ha.metrics.reports import OutputMetrics, QueryMetrics, ReportFiles
from ha.metrics.standby import QueryVerified, ReplicationMetrics, VerificationMetrics
from ha.program.files import write
from ha.program.output_report import OutputReports, path_beside
from ha.program.query_report import QueryReport
from leader.election.events import Grant, Rename
from leader.layout.lease import Lease, Mode
from leader.layout.names import LeaderDirectory
from tests.unit.ha.led import Led, session
from tests.unit.ha.waiting import wait_until
from tests.unit.store.tickets import cache, ticket

LEADS: dict[str, Any] = {
    "is_leader": True,
    "belief_seconds": 12.5,
    "epoch": 7,
    "copy_epoch": 6,
    "copy_repairs": 3,
    "zookeeper": True,
    "command": {"memory_bytes": 512_000_000},
}
"""The status of a job that the process leads, and whose record in ZooKeeper is one epoch behind."""


CLEAN = QueryReport(
    "clean",
    state="RUNNING",
    starts=2,
    failures=1,
    batches=9,
    input_rows=900,
    skipped=6,
    repaired=2,
    batch_rows=100,
    batch_seconds=0.5,
    state_rows=10,
    state_bytes=2136,
    checkpoint_bytes=4096,
    backlog=7,
    watermark_lag=12.5,
)
"""A query of which everything is known."""


@contextmanager
def complete(settings: Settings, led: str) -> Iterator[CollectorRegistry]:
    """Such a registry; ``led`` is a job that has a leader, below the settings' root."""
    metrics = Metrics()
    contending = ContendingMetrics(metrics.registry, metrics.changes, "a")
    before, after = (Lease(number, Mode.HDFS, 6000, session(number), "", "a") for number in (1, 2))
    record = f"{LeaderDirectory(6, session(6)).name}/record"
    contending.observe(led, Rename(f"{record}/{before.name}", f"{record}/{after.name}"))
    contending.observe(led, Grant(7, session(7), "released"))
    metrics.registry.register(LeadershipStatus(lambda: {led: LEADS}))
    CommandCounters(metrics.registry, led).restarted()
    metrics.registry.register(LenderMetrics(lambda: 3))
    metrics.stores.requests_sent("list", 1)  # by a driver of HDFS
    stores = Stores(settings)
    metrics.stores.show(stores.files, stores.zookeeper)
    reader = reader_of(stores, metrics)
    agent = agent_of(stores, reader, [], metrics)
    try:
        agent.warmer.want(led)
        wait_until(lambda: agent.warmer.latest(led), what="the agent has looked")
        _end(settings, "ended")
        agent.warmer.want("ended")
        shown = {"job_name": "ended", "state": "FAILED"}
        wait_until(lambda: metrics.registry.get_sample_value("ha_agent_job_ended", shown), what="it has seen the end")
        with _ticket(), TemporaryDirectory() as folder:
            write(Path(folder, "1"), [CLEAN])
            reports = ReportFiles(lambda run: Path(folder, str(run)), lambda: 1, lambda: True)
            QueryMetrics(metrics.registry, led, reports)
            VerificationMetrics(metrics.registry, led, lambda: True).found({"clean": QueryVerified(0, 0, True)})
            ReplicationMetrics(metrics.registry, led).set("clean", 1000.0, 0)
            outputs = OutputReports()
            outputs.path = path_beside(Path(folder, "1"))
            outputs.counted("orders", 10, 9, 1, 0)
            outputs.set("orders", pending=3, lacking=1, gone=1, fullness=0.9)
            outputs.set("orders", complete_up_to=3, apart=1, behind={"EXPIRED": 1})
            outputs.show()
            OutputMetrics(metrics.registry, led, reports)
            yield metrics.registry
    finally:
        agent.close()
        stores.close()


def _end(settings: Settings, job: str) -> None:
    root = Path(settings.stores.files.removeprefix("file://"))
    made = Led(root)
    made.claim(job, "a:1")
    (home,) = (root / job).iterdir()
    (home / "status=CREATED").rename(home / "status=FAILED~2")
    made.release(job)


@contextmanager
def _ticket() -> Iterator[None]:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder, "ticket")
        path.write_bytes(cache(ticket(("krbtgt", "HA.LAB"), 1000, 1100)))
        patch.setenv("KRB5CCNAME", str(path))
        yield
