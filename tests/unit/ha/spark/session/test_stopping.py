"""Which queries are stopped; with real ones, and with what goes on, in ``tests/system/spark/test_after_end.py``."""

from types import SimpleNamespace
from typing import Any

import pytest

from ha.spark.session import spark_session
from ha.spark.session.spark_session import stop_queries
from tests.patience import PATIENCE_S


def test_those_of_a_context_that_was_built_anew_are_stopped_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []

    def query(name: str) -> Any:
        return SimpleNamespace(stop=lambda: stopped.append(name))

    monkeypatch.setattr(spark_session, "running_queries", lambda _: {"id": query("old")})
    monkeypatch.setattr(spark_session, "newer_queries", lambda _: [query("new")])
    session: Any = object()
    assert stop_queries(session, PATIENCE_S)
    assert sorted(stopped) == ["new", "old"]
