"""Failures that a program has left to its sidecar are kept while it runs; those that it keeps itself are left alone."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.hook.query_watch import FAILED
from ha.program import failure_notes
from ha.program.failure_notes import Note
from ha.sidecar.machine import commands as do
from ha.sidecar.store_work import StoreWork


class Status:
    """What keeps failures: each try ends when it is told so."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tries = folder, list[threading.Event]()

    def notes(self) -> Path:
        return self.folder

    def keep_failures(self, _: object) -> threading.Event:
        self.tries.append(threading.Event())
        return self.tries[-1]


@pytest.fixture
def status(tmp_path: Path) -> Status:
    return Status(tmp_path)


@pytest.fixture
def store(status: Any) -> StoreWork:
    nothing: Any = None
    made = StoreWork("orders", status, nothing, nothing, nothing, nothing, nothing, None, None, nothing, nothing)
    made._operators = SimpleNamespace(leader="leader")  # type: ignore[assignment]
    return made


def test_a_note_is_kept_at_once_and_tried_by_one_at_a_time(
    store: StoreWork, status: Status, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.show_told()
    assert not status.tries
    monkeypatch.setenv("HA_QUERIES", str(tmp_path / "queries-1"))
    note = failure_notes.make(Note("QueryFailed", "no luck", "bad"))
    store.show_told()
    assert not status.tries, "a program of ours writes it down itself"
    (tmp_path / f"queries-1{FAILED}").write_text('{"bad": "no luck"}')
    for _ in range(3):
        store.show_told()
    assert len(status.tries) == 1
    status.tries[0].set()
    store.show_told()
    assert len(status.tries) == 2, "the store did not take it"
    failure_notes.drop(note)
    status.tries[1].set()
    store.show_told()
    assert len(status.tries) == 2


@pytest.mark.parametrize(
    ("lines", "wait", "waits"), [("", 0.1, [0.1]), ("its last lines", 2.0, [2.0]), ("its last lines", 0.1, [])]
)
def test_a_takeover_does_not_wait_for_a_failure_that_cannot_be_kept_in_time(
    status: Any, lines: str, wait: float, waits: list[float]
) -> None:
    """With the last lines of its command it is a file, and HDFS takes longer for one than such a leader waits."""
    nothing: Any = None
    waited: list[float] = []
    status.add_exception = lambda *_: SimpleNamespace(wait=waited.append)
    last_words = lambda: ("", lines)  # noqa: E731
    made = StoreWork(
        "orders", status, nothing, nothing, nothing, nothing, nothing, None, None, nothing, nothing, last_words
    )
    leader: Any = "leader"
    made.keep(do.KeepException(leader, "exit-137", "It was killed.", wait=wait))
    made.end()
    assert waited == waits


def test_a_host_that_lacks_something_ends_no_look(
    store: StoreWork, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    def glob(*_: object) -> Any:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(Path, "glob", glob)
    store.show_told()
    assert not status.tries
