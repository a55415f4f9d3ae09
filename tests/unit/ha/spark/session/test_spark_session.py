"""Which queries are stopped, and which errors come from the fence, also when no store can be asked.

With real queries, and with what goes on, they are stopped in ``tests/system/spark/test_after_end.py``.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.leadership.leadership import Leadership
from ha.spark.session import spark_session
from ha.spark.session.spark_session import stop_queries
from ha.spark.tools import explain
from leader.errors import Fenced, NotLeader
from tests.patience import PATIENCE_S
from tests.system.spark.helpers import fence, leading


def test_those_of_a_context_that_was_built_anew_are_stopped_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []

    def query(name: str) -> Any:
        return SimpleNamespace(stop=lambda: stopped.append(name))

    monkeypatch.setattr(spark_session, "running_queries", lambda _: {"id": query("old")})
    monkeypatch.setattr(spark_session, "newer_queries", lambda _: [query("new")])
    session: Any = object()
    assert stop_queries(session, PATIENCE_S)
    assert sorted(stopped) == ["new", "old"]


def about(leadership: Leadership) -> Exception:
    error = RuntimeError("the query has failed")
    error.__cause__ = ValueError("so it says")
    error.__cause__.__context__ = OSError(f"rename source {leadership.path('spark/x/commits/.3.tmp')} is not found.")
    return error


def test_a_vanished_checkpoint_is_the_fences_once_another_leads(leadership: Leadership) -> None:
    assert explain(about(leadership), leadership) is None, "it has vanished by itself"
    fence(leadership)
    assert isinstance(explain(about(leadership), leadership), Fenced)
    assert isinstance(explain(Fenced("as it says itself"), leadership), Fenced)


def test_an_error_of_the_programs_own_is_not_hidden_by_the_fence(leadership: Leadership) -> None:
    fence(leadership)
    ring = ValueError("no such column")
    ring.__context__ = KeyError("x")
    ring.__context__.__context__ = ring
    assert explain(ring, leadership) is None


def test_the_explanation_says_when_no_store_answers(tmp_path: Path) -> None:
    with leading("orders", tmp_path.as_uri()) as leadership:
        pass  # its connections are closed with it
    said = explain(about(leadership), leadership)
    assert type(said) is NotLeader
    assert str(said).startswith("Epoch 1 of job 'orders' may have been fenced, and HDFS does not say by whom: ")
