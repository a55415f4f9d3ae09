"""The stacks of a command that hangs."""

import threading
from pathlib import Path

import pytest

from ha.sidecar.command import thread_dumps
from tests.patience import PATIENCE_S


def test_both_stacks_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def waits(*_: object) -> str:
        both.wait()
        return "main"

    monkeypatch.setattr(thread_dumps, "_state", lambda _: "S")
    monkeypatch.setattr(thread_dumps, "_of_python", waits)
    monkeypatch.setattr(thread_dumps, "_of_jvm", waits)
    found = thread_dumps.thread_dumps(1, 2, Path("nowhere"))
    assert found == "Python, process 1:\nmain\n\nJVM, process 2:\nmain"
