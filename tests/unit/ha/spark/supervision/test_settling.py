"""Settling: queries end after their present batches, and on demand once they have processed all that there is."""

import re
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.program import settle_file
from ha.program.settle_file import Settle
from ha.spark.supervision import settling
from ha.spark.supervision.settling import settle, settle_watch
from ha.spark.supervision.states import GraphQuery
from tests.lacks import no_thread_free
from tests.patience import PATIENCE_S

GRAPH = [GraphQuery("writer", [], ["rows"], 0), GraphQuery("reader", ["rows"], [], 0)]


@dataclass
class Query:
    """A streaming query; each look at its status is one step of its present batch."""

    name: str
    steps: int = 0
    """Looks until the present batch is complete."""
    then: str = "idle"
    """Return the batch that follows it, or nothing."""
    said: list[str] = field(default_factory=list)
    isActive: bool = True  # noqa: N815  # Spark's name
    looks: int = 0
    blocks: threading.Event | None = None

    @property
    def status(self) -> dict[str, bool]:
        self.looks += 1
        return {"isTriggerActive": self.looks <= self.steps or self.then == "batch"}

    @property
    def lastProgress(self) -> dict[str, int]:  # noqa: N802
        return {"batchId": 7 if self.looks < self.steps else 8}

    def processAllAvailable(self) -> None:  # noqa: N802
        if self.blocks is not None:
            self.blocks.wait(PATIENCE_S)
            raise RuntimeError("It has ended.")
        self.said.append(f"{self.name} has processed all")

    def stop(self) -> None:
        self.said.append(f"{self.name} is stopped after {self.looks} looks")


def settled(folder: Path, wanted: Settle | None, *queries: Query) -> tuple[list[str], bool]:
    """Let the queries end; returns what they did, and whether all was processed."""
    path, said = folder / "settle-1", list[str]()
    if wanted is not None:
        settle_file.ask(path, wanted)
    leadership: Any = SimpleNamespace(settling=threading.Event())
    for query in queries:
        query.said = said
    assert (wanted is not None) is settle(path, leadership, {query.name: query for query in queries}, GRAPH)
    assert leadership.settling.is_set() is (wanted is not None)
    return said, settle_file.drained(path)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "POLL_S", 0.0)


def test_a_query_ends_after_its_present_batch_once_it_is_asked_to(tmp_path: Path) -> None:
    assert settled(tmp_path, None, Query("writer")) == ([], False)
    assert settled(tmp_path, Settle(30), Query("writer", 3)) == (["writer is stopped after 3 looks"], False)
    at_once = Query("writer", 5, "batch")
    assert settled(tmp_path, Settle(30), at_once)[0] == ["writer is stopped after 5 looks"], "before the next one"


def test_a_batch_that_takes_too_long_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(1000))
    monkeypatch.setattr(settling, "now", lambda: float(next(times)))
    (stopped,), _ = settled(tmp_path, Settle(30), Query("writer", 10**9))
    assert re.fullmatch(r"writer is stopped after (2[5-9]|30) looks", stopped)


def test_queries_process_all_that_there_is_writers_first(tmp_path: Path) -> None:
    said, drained = settled(tmp_path, Settle(30, drain=True), Query("reader"), Query("writer"))
    assert said[:2] == ["writer has processed all", "reader has processed all"]
    assert {each.partition(" after")[0] for each in said[2:]} == {"reader is stopped", "writer is stopped"}
    assert drained


def test_what_is_not_processed_in_time_or_fails_is_not_said_to_be(tmp_path: Path) -> None:
    never, over = threading.Event(), threading.Event()
    over.set()
    for blocks, seconds in ((never, 0.05), (over, 30.0)):
        said, drained = settled(tmp_path, Settle(seconds, drain=True), Query("writer", blocks=blocks), Query("reader"))
        assert not drained
        assert "reader has processed all" not in said, "it would not be all"
    never.set()


def test_queries_that_feed_each_other_are_never_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    circle = [GraphQuery("writer", ["x"], ["y"], 0), GraphQuery("reader", ["y"], ["x"], 0)]
    monkeypatch.setitem(globals(), "GRAPH", circle)
    assert not settled(tmp_path, Settle(30, drain=True), Query("reader"), Query("writer"))[1]


def test_what_a_sidecar_writes_is_understood(tmp_path: Path) -> None:
    assert settle_file.asked(tmp_path / "none") is None
    (tmp_path / "torn").write_text('{"sec')
    assert settle_file.asked(tmp_path / "torn") is None
    settle_file.ask(tmp_path / "whole", Settle(5.0, drain=True))
    assert settle_file.asked(tmp_path / "whole") == Settle(5.0, drain=True)


def test_a_program_says_that_it_knows_how_and_looks_for_the_file(tmp_path: Path) -> None:
    called = threading.Event()
    with settle_watch(tmp_path / "settle-1", called.set):
        assert [each.name for each in tmp_path.iterdir()] == ["settle-1.able"]
        (tmp_path / "settle-1").touch()
        assert called.wait(PATIENCE_S)
    assert [each.name for each in tmp_path.iterdir()] == ["settle-1"]


def test_without_a_free_thread_it_goes_on_and_says_nothing_is_processed(tmp_path: Path) -> None:
    with no_thread_free():
        assert settled(tmp_path, Settle(30, drain=True), Query("writer")) == ([], False)
