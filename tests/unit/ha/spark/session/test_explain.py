"""Explaining errors: which of them come from the fence, also when no store can be asked."""

from pathlib import Path

from ha.leadership.leadership import Leadership
from ha.spark.tools import explain
from leader.errors import Fenced, NotLeader
from tests.system.spark.helpers import fence, leading


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
