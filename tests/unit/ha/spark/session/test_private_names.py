"""Private names of PySpark: they stand in one file, and a version without one is told so."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

import ha
from ha.spark.session import private_names, reattaching
from ha.spark.session.spark_session import Jvm
from leader.errors import InvalidSettings

PACKAGE = Path(ha.__file__).parent
ENTRANCES = {
    "_active_spark_context", "_conf", "_gateway", "_instantiatedSession", "_jc", "_jdf", "_jsc", "_jvm", "_sc",
} | {"_streamingCheckpointManager"}  # fmt: skip
"""Private names by which programs usually leave PySpark's public interface."""


def test_private_names_of_pyspark_stand_in_one_file() -> None:
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
            name = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else 0
            if (
                not own
                and isinstance(name, str)
                and (name in ENTRANCES or name.startswith(("_jspark", "_jsq", "_jst")))
            ):
                found.add(path.relative_to(PACKAGE).as_posix())
    # The others run in any program's driver, so they import nothing of ours.
    assert found == {"spark/session/private_names.py", "preflight/sink_cut.py", "hook/guarding.py"}


@pytest.mark.parametrize("version", ["3.4.9", "3.0.0", "2.4.8", "3"])
def test_an_old_version_is_refused_with_a_sentence(version: str) -> None:
    for new in ("3.5.0", "3.5.9", "4.0.5", "4.3.0", "4.4.0.dev1", "5.0.0rc1", "10.0"):
        private_names.check_version(new)
    with pytest.raises(InvalidSettings, match=rf"^PySpark {version} is too old: install 3\.5 or newer"):
        private_names.check_version(version)


@pytest.mark.parametrize(
    ("version", "distutils", "warned"),
    [("3.5.9", None, True), ("3.5.9", "a spec", False), ("4.0.0", None, False), ("4.3.0", None, False)],
)
def test_a_spark_that_needs_setuptools_says_so_where_there_are_none(
    version: str,
    *,
    distutils: str | None,
    warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(private_names, "find_spec", {"distutils": distutils}.__getitem__)
    private_names.check_version(version)
    assert ["cannot use pandas without the package setuptools" in each for each in caplog.messages] == [True] * warned


def test_a_version_without_a_name_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    session = SparkSession.__new__(SparkSession)  # its JVM's name is set by its constructor
    with pytest.raises(InvalidSettings, match=r"^PySpark .* has no SparkSession\._jvm, which .*: install PySpark 3"):
        Jvm(session, lambda: None)
    monkeypatch.delattr(SparkContext, "_jvm")
    with pytest.raises(InvalidSettings, match=r"^PySpark .* has no SparkContext\._jvm"):
        private_names.java_listener(object())


def test_a_version_that_cannot_be_attached_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(SparkContext, "_initialize_context")
    with pytest.raises(InvalidSettings, match=r"^PySpark .* has no SparkContext\._initialize_context, which this"):
        reattaching.prepare()


def test_only_what_would_call_python_is_found() -> None:
    def java(name: str, **more: Any) -> Any:
        return SimpleNamespace(getClass=lambda: SimpleNamespace(getName=lambda: f"org.apache.spark.{name}"), **more)

    ours, theirs = java("sql.streaming.PythonStreamingQueryListenerWrapper"), java("ui.StreamingQueryStatusListener")
    assert private_names.python_listeners(SimpleNamespace(listListeners=lambda: [theirs, ours])) == [ours]
    kinds = ("sql.execution.streaming.sources.ForeachBatchSink", "sql.kafka010.KafkaSourceProvider$KafkaTable")
    batches, other = [java("query", sink=lambda kind=kind: java(kind)) for kind in kinds]
    active = SimpleNamespace(activeStreamingQueries=lambda: {1: batches, 2: other})
    assert private_names.python_batches(SimpleNamespace(sharedState=lambda: active)) == [batches]


def test_a_session_of_spark_connect_has_no_jvm() -> None:
    remote: Any = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(InvalidSettings, match="has no JVM of its own on this host"):
        Jvm(remote, lambda: None)


def test_a_context_that_was_stopped_keeps_no_blocks() -> None:
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=None))
    assert private_names.scratch_directories(session) == []
