"""A query that has failed while its program goes on is told, once, and no more when it runs again."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.hook import query_watch
from ha.hook.query_watch import QueryWatch
from ha.program import failure_notes
from ha.program.failure_notes import Note


class Query:
    """What PySpark shows of a query: its error is that with which it has ended."""

    def __init__(self, error: str | None = None, *, active: bool = False, stopped: bool = False) -> None:
        self.isActive, self.error = active, error
        context = SimpleNamespace(isStopped=lambda: stopped)
        self._jsq = SimpleNamespace(sparkSession=lambda: SimpleNamespace(sparkContext=lambda: context))

    def exception(self) -> str | None:
        return self.error


@pytest.fixture
def watch(tmp_path: Path) -> Any:
    queries: dict[str, Any] = {"good": Query(active=True)}

    def failed() -> dict[str, str]:
        file = tmp_path / f"report{query_watch.FAILED}"
        return json.loads(file.read_text()) if file.exists() else {}

    looks = QueryWatch(str(tmp_path / "report"), queries, bool)
    return SimpleNamespace(
        look=looks.look, queries=queries, failed=failed, notes=lambda: list(failure_notes.left(tmp_path).values())
    )


def test_it_is_told_once_at_the_second_look(watch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    watch.queries["bad"] = Query("no luck\nCaused by: that")
    watch.look()
    assert (watch.failed(), watch.notes()) == ({}, []), "its program may start it again at once"
    for _ in range(3):
        watch.look()
        assert watch.failed() == {"bad": "no luck\nCaused by: that"}
        assert watch.notes() == [Note("QueryFailed", "that", "bad", "no luck\nCaused by: that")]
    said = "WARNING: The query 'bad' has failed, and its program goes on without it: that\n"
    assert capsys.readouterr().err == said
    watch.queries["bad"] = Query(active=True)
    watch.look()
    assert watch.failed() == {}
    watch.queries["bad"] = Query("no luck")
    watch.look()
    watch.look()
    assert len(watch.notes()) == 2, "it has failed again"


@pytest.mark.parametrize(
    "query",
    [Query(active=True), Query(), Query("SparkContext was shut down", stopped=True), SimpleNamespace()],
    ids=["runs", "was stopped", "Spark was stopped", "the JVM is gone"],
)
def test_nothing_else_is_told(watch: Any, capsys: pytest.CaptureFixture[str], query: Any) -> None:
    watch.queries["other"] = query
    for _ in range(3):
        watch.look()
    assert (watch.failed(), watch.notes(), capsys.readouterr().err) == ({}, [], "")


def test_one_that_is_started_again_between_two_looks_is_not_told(watch: Any) -> None:
    for _ in range(3):
        watch.queries["bad"] = Query("no luck")
        watch.look()
    assert watch.notes() == []


def test_a_program_that_tells_itself_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr("threading.Thread", lambda **said: SimpleNamespace(start=lambda: begun.append(said)))
    QueryWatch(str(tmp_path), {}, lambda: True).begin()
    assert not begun
    other = QueryWatch(str(tmp_path), {}, lambda: False)
    other.begin()
    other.begin()
    assert len(begun) == 1
    assert begun[0]["daemon"], "it holds up no end"


def test_a_host_without_a_thread_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def start() -> None:
        tries.append(1)
        raise RuntimeError

    monkeypatch.setattr("threading.Thread", lambda **_: SimpleNamespace(start=start))
    watch = QueryWatch(str(tmp_path), {}, bool)
    watch.begin()
    watch.begin()
    assert len(tries) == 2


def test_it_looks_from_the_first_start_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a thread of the program, which ends with it."""
    slept: list[float] = []
    quiet = iter([False, False, False, True])
    monkeypatch.setattr("time.sleep", slept.append)
    watch = QueryWatch(str(tmp_path / "report"), {"bad": Query("no luck")}, lambda: next(quiet))
    watch.begin()
    assert watch._thread is not None
    watch._thread.join(5)
    assert slept == [query_watch.PAUSE_S] * 2
    assert (tmp_path / "report.failed").exists()
