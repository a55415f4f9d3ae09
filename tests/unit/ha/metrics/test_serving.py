"""The metrics that ``ha run``, ``ha host daemon`` and ``ha host agent`` serve, and those that are read on request."""

import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from ha.agent.standalone import StandaloneAgent, agent_of
from ha.config.sources import load
from ha.metrics.contending import LeadershipStatus
from store.local import LocalFiles
from tests.patience import PATIENCE_S
from tests.unit.ha.led import Led
from tests.unit.ha.metrics.complete import LEADS
from tests.unit.ha.metrics.exposition import Exposition
from tests.unit.ha.programs import Program, Workplace
from tests.unit.ha.waiting import wait_until

JOB = {"job_name": "orders"}


def standing(**changed: Any) -> Exposition:
    registry = CollectorRegistry()
    registry.register(LeadershipStatus(lambda: {"orders": {**LEADS, **changed}}))
    return Exposition(registry)


def test_the_status_of_a_leadership_is_shown() -> None:
    shown = standing()
    assert shown.value("ha_is_leader", **JOB) == 1
    assert shown.value("ha_belief_remaining_seconds", **JOB) == 12.5
    assert shown.value("ha_epoch", **JOB) == 7
    assert shown.value("ha_copy_repairs_total", **JOB) == 3
    assert shown.value("ha_copy_lag_epochs", **JOB) == 1
    assert shown.value("ha_zookeeper_attests") == 1


def test_zookeepers_record_may_be_ahead_or_missing() -> None:
    assert standing(copy_epoch=9).value("ha_copy_lag_epochs", **JOB) == -2
    for unseen in ({"copy_epoch": None}, {"epoch": None}):
        samples = [each for family in standing(**unseen).families for each in family.samples]
        assert "ha_copy_lag_epochs" not in {sample.name for sample in samples}


def test_a_process_without_jobs_shows_no_session() -> None:
    registry = CollectorRegistry()
    registry.register(LeadershipStatus(dict))
    assert not [sample for family in Exposition(registry).families for sample in family.samples]


class Answering:
    def __init__(self) -> None:
        self.process = StandaloneAgent(load({"audit": 100.0}))
        self.agent = agent_of(self.process.stores, self.process.reader, [], self.process.metrics)

    @property
    def shown(self) -> Exposition:
        return Exposition(self.process.metrics.registry)

    def close(self) -> None:
        self.agent.close()
        self.process.close()


@pytest.fixture
def answering(quick: Path) -> Iterator[Answering]:
    del quick
    made = Answering()
    yield made
    made.close()


@pytest.mark.slow
def test_the_status_of_an_agent_is_shown(answering: Answering, quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    led = Led(quick)
    led.claim("orders", "a:1")
    assert answering.shown.value("ha_agent_jobs") == 0
    answering.agent.warmer.want("orders")
    wait_until(lambda: answering.shown.value("ha_agent_job_led", **JOB) == 1)
    assert answering.shown.value("ha_agent_jobs") == 1
    assert answering.shown.value("ha_agent_fresh_seconds") == 10
    assert answering.shown.value("ha_agent_writes") == 0, "snapshots are off here"
    assert answering.shown.value("ha_lookups_total", source="hdfs", outcome="answered") >= 1, "its looks count"
    assert answering.shown.value("ha_leader_changes_total", **JOB) == 0
    led.claim("orders", "b:1")
    wait_until(lambda: answering.shown.value("ha_leader_changes_total", **JOB) == 1)
    assert answering.shown.value("ha_agent_job_ended", **JOB, state="FAILED") == 0
    (home,) = (quick / "orders").iterdir()
    (home / "status=CREATED").rename(home / "status=FAILED~2")
    led.release("orders")
    wait_until(lambda: answering.shown.value("ha_agent_job_led", **JOB) == 0)
    wait_until(lambda: answering.shown.value("ha_agent_job_ended", **JOB, state="FAILED") == 1)
    assert answering.shown.value("ha_lookups_total", source="none", outcome="no_leader") >= 1

    def refuse(_: LocalFiles, __: str) -> None:
        raise OSError("broken on purpose")

    monkeypatch.setattr(LocalFiles, "list", refuse)
    wait_until(lambda: answering.shown.value("ha_lookups_total", source="none", outcome="unreachable"))
    looks = [answering.shown.value("ha_agent_answer_age_seconds", **JOB) for _ in range(2)]
    assert 0 < looks[0] < looks[1], "nobody answers, so what was told gets older"


def test_the_agent_that_writes_says_so(quick: Path, tmp_path: Path) -> None:
    del quick
    process = StandaloneAgent(load({"audit": 100.0, "snapshots": str(tmp_path / "snapshots")}))
    agent = agent_of(process.stores, process.reader, [], process.metrics)
    agent.start()
    try:
        wait_until(lambda: Exposition(process.metrics.registry).value("ha_agent_writes") == 1)
    finally:
        agent.close()
        process.close()


def scraped(program: Program) -> list[str]:
    program.until_said("The HTTP API answers at http://")
    address = program.said.partition("answers at http://")[2].split()[0].rstrip(".")
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    text = answer.read().decode()
    connection.close()
    return [family.name for family in text_string_to_metric_families(text)]


ALL = {"ha_lookups", "ha_lookup_fallbacks", "ha_store_call_seconds", "ha_files_stuck_calls", "ha_agent_writes"}
CONTENDS = {"ha_is_leader", "ha_epoch", "ha_belief_remaining_seconds", "ha_grants", "ha_revocations", "ha_copy_repairs"}


def test_a_daemon_a_sidecar_and_an_agent_all_serve_them(workplace: Workplace) -> None:
    for command, wanted in (
        (("host", "daemon", "orders"), ALL | CONTENDS),
        (("run", "payments", "--listen", "127.0.0.1:0", "--", "sleep", "600"), ALL | CONTENDS),
        (("host", "agent", "orders"), ALL),
    ):
        names = scraped(workplace.ha(*command))
        assert wanted <= set(names), command
        assert len(names) == len(set(names))
        assert "process_resident_memory_bytes" in names
