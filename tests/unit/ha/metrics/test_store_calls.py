"""Metrics of the stores: each moves when its thing happens."""

import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

import ha
from ha.config.sources import load
from ha.config.stores import Stores
from ha.metrics.process_metrics import StoreMetrics
from store.bounded import BoundedFiles
from store.counting import REQUESTS, CountedFiles
from store.errors import DeadlineExceeded, NotFound, NotSent
from store.files import Entry
from store.local import LocalFiles
from store.open import open_files
from store.pool import Call, Pool
from store.zookeeper import Get
from tests.patience import PATIENCE_S
from tests.unit.ha.metrics.exposition import Exposition
from tests.unit.ha.waiting import until_sent, wait_until

CALLS = "ha_store_call_seconds"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> StoreMetrics:
    return StoreMetrics(registry)


@pytest.fixture
def stores(quick: Path, metrics: StoreMetrics) -> Iterator[Stores]:
    quick.mkdir()
    made = Stores(load({"zookeeper": "127.0.0.1:1"}))
    metrics.show(made.files, made.zookeeper)
    yield made
    made.close()


class Hanging:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        listing = LocalFiles.list

        def hang(files: LocalFiles, path: str) -> list[Entry]:
            assert self.go_on.wait(PATIENCE_S)
            return listing(files, path)

        monkeypatch.setattr(LocalFiles, "list", hang)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hanging]:
    made = Hanging(monkeypatch)
    yield made
    made.go_on.set()


def counted(registry: CollectorRegistry, operation: str, outcome: str, store: str = "files") -> float:
    return Exposition(registry).value(f"{CALLS}_count", store=store, operation=operation, outcome=outcome)


def test_a_call_to_the_files_is_timed_by_operation_and_outcome(registry: CollectorRegistry, stores: Stores) -> None:
    stores.files.call("ListJob", lambda files: files.list(""), PATIENCE_S)
    with pytest.raises(NotFound):
        stores.files.call("ListJob", lambda files: files.list("nothing"), PATIENCE_S)
    assert counted(registry, "list_job", "done") == 1
    assert counted(registry, "list_job", "refused") == 1
    assert counted(registry, "list_job", "unknown") == 0
    spent = Exposition(registry).value(f"{CALLS}_sum", store="files", operation="list_job", outcome="done")
    assert 0 < spent < PATIENCE_S


def test_a_call_becomes_unknown_stuck_and_late(registry: CollectorRegistry, stores: Stores, hanging: Hanging) -> None:
    with pytest.raises(DeadlineExceeded):
        until_sent(lambda: stores.files.call("lookup", lambda files: files.list(""), 0.05))
    shown = Exposition(registry)
    assert counted(registry, "lookup", "unknown") == 1
    assert (shown.value("ha_files_stuck_calls"), shown.value("ha_files_late_calls_total")) == (1, 0)
    hanging.go_on.set()
    wait_until(lambda: stores.files.late, what="it came back")
    shown = Exposition(registry)
    assert (shown.value("ha_files_stuck_calls"), shown.value("ha_files_late_calls_total")) == (0, 1)
    assert counted(registry, "lookup", "done") == 0, "it was counted, once"


def test_an_operation_on_zookeeper_is_timed_as_well(registry: CollectorRegistry, stores: Stores) -> None:
    assert stores.zookeeper is not None
    with pytest.raises(NotSent):
        stores.zookeeper.call(Get("/x"), 1.0)
    assert counted(registry, "get", "refused", "zookeeper") == 1


def test_the_state_of_zookeeper_is_shown_once_it_is_wanted(registry: CollectorRegistry, stores: Stores) -> None:
    assert stores.zookeeper is not None
    assert "ha_zookeeper_state" not in Exposition(registry).names, "nobody has asked for a connection"
    stores.zookeeper.start()
    shown = Exposition(registry)
    assert shown.value("ha_zookeeper_state", state="lost") == 1
    others = ("connected", "read-only", "suspended")
    assert [shown.value("ha_zookeeper_state", state=state) for state in others] == [0, 0, 0]


def test_requests_are_counted_by_operation(registry: CollectorRegistry, metrics: StoreMetrics, tmp_path: Path) -> None:
    del metrics  # it listens
    files = CountedFiles(LocalFiles(tmp_path / "jobs"), REQUESTS["webhdfs"])
    files.make_root()
    files.make_directory("a")
    files.list("")
    files.list("a")
    shown = Exposition(registry)
    assert shown.value("ha_namenode_operations_total", operation="list") == 2
    assert shown.value("ha_namenode_operations_total", operation="make_directory") == 2


def test_every_call_is_counted_whoever_opened_the_store(
    quick: Path, registry: CollectorRegistry, metrics: StoreMetrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An output is moved and a directory is listed, over stores that no metric has opened."""
    del metrics  # it listens
    sent: Counter[str] = Counter()
    add = Pool.add

    def note(pool: Pool, call: Call) -> None:
        sent[re.sub("(?<=[a-z])(?=[A-Z])", "_", call.name).lower()] += 1
        add(pool, call)

    monkeypatch.setattr(Pool, "add", note)
    with ha.lead("orders") as leadership:
        staged = Path(leadership.path("work/report").removeprefix("file://"))
        staged.parent.mkdir()
        staged.write_text("done")
        assert leadership.publish(staged.as_uri(), (quick.parent / "published").as_uri())
        leadership.checkpoints.completed("daily", 1)
    with open_files(quick.parent.as_uri()) as files:
        files.call("mine", lambda driver: driver.list(""), PATIENCE_S)
    assert {"output", "mine", "rename", "list_job"} <= set(sent)

    def counts() -> Counter[str]:
        samples = [each for family in Exposition(registry).families for each in family.samples]
        of_calls = [each for each in samples if each.name == f"{CALLS}_count"]
        total: Counter[str] = Counter()
        for each in of_calls:
            total[each.labels["operation"]] += int(each.value)
        return total

    # The history is written behind the leader's back: its call may be on its way when the stores are closed.
    wait_until(lambda: counts() == sent, what="every call came back")


def test_a_forked_child_counts_nothing(registry: CollectorRegistry, metrics: StoreMetrics, tmp_path: Path) -> None:
    """The child never asks for a lock of a metric, which a thread of the parent may have held at the fork."""
    with BoundedFiles(lambda: LocalFiles(tmp_path)) as files:
        files.call("ListJob", lambda driver: driver.list(""), PATIENCE_S)
        child_lock = metrics._children["files", "ListJob", "done"]._sum._lock
        with child_lock:
            child = os.fork()
            if child == 0:
                try:
                    files.call("ListJob", lambda driver: driver.list(""), PATIENCE_S)
                    metrics.requests_sent("list", 1)
                    os._exit(0)
                finally:
                    os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert counted(registry, "list_job", "done") == 1
