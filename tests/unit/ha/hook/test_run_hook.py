"""What a program of ``ha run`` tells of its queries at its end, and of those that it may not start."""

import json
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.hook import run_hook
from ha.hook.guarding import WRITERS, Refused
from ha.hook.query_rules import noted
from ha.hook.query_watch import QueryWatch
from tests.unit.ha.hook.writers import HERE, PLAIN


@pytest.mark.parametrize(
    ("error", "active", "says", "remedy"),
    [
        ("no luck", False, "The query 'q' has failed: no luck", ""),
        ("leader.errors.ForeignBatch: no", False, "has failed", "do what its error says"),
        (None, True, "The query 'q' was still active when its program ended", ""),
        (None, False, "", ""),
    ],
)
def test_a_program_that_ends_tells_of_its_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str | None, active: bool, says: str, remedy: str
) -> None:
    ended: list[tuple[Any, ...]] = []
    monkeypatch.setattr("atexit.register", lambda *given: ended.append(given))
    installed(tmp_path)
    gone = SimpleNamespace()
    query = SimpleNamespace(exception=lambda: error, isActive=active)
    ((look,),) = ended
    watched = look.args[0]
    watched.queries.update({"gone": gone, "q": query})
    monkeypatch.setitem(sys.modules, run_hook.LEAD, sys)
    look()
    assert not (tmp_path / "end").exists(), "ha.spark.lead tells of it"
    monkeypatch.delitem(sys.modules, run_hook.LEAD)
    look()
    found = json.loads((tmp_path / "end").read_text()) if says else {"said": "", "remedy": ""}
    assert says in found["said"]
    assert found["remedy"] == remedy
    assert (tmp_path / "end").exists() == bool(says)


def installed(tmp_path: Path, **more: Any) -> tuple[Any, Any]:
    """Change a fresh module of writers as in a program of `ha run`; return it, and all that is changed."""
    plan = {"checkpoints": HERE, "file": str(tmp_path / "file"), "end": str(tmp_path / "end")}
    module = SimpleNamespace(DataStreamWriter=type("Fresh", (), {**PLAIN, **more}))
    changed = run_hook.changes(plan)
    changed[WRITERS](module)
    return module, changed


class Waited:
    isActive, error, id = True, None, ""  # noqa: N815

    def exception(self) -> str | None:
        return self.error

    def stop(self) -> None:
        self.isActive = False

    def awaitTermination(self, timeout: int) -> int:  # noqa: N802
        self.isActive, self.error = False, "no luck"
        return timeout

    awaitAnyTermination = awaitTermination  # noqa: N815


def test_what_is_told_of_its_end_comes_before_it_at_each_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program may end by ``os._exit(0)`` in a batch."""

    def said() -> str:
        return str(json.loads((tmp_path / "end").read_text()).get("said", ""))

    monkeypatch.delitem(sys.modules, run_hook.LEAD, raising=False)  # another test may have imported it
    monkeypatch.setattr("atexit.register", lambda *_: None)
    module, changed = installed(tmp_path, start=lambda *_: Waited())
    monkeypatch.setitem(sys.modules, WRITERS, module)
    changed[run_hook.QUERIES](SimpleNamespace(StreamingQuery=Waited, StreamingQueryManager=Waited))
    query = module.DataStreamWriter().queryName("q").start("/out", format="parquet")
    assert "was still active" in said()
    assert query.awaitTermination(3) == 3
    assert said() == "The query 'q' has failed: no luck"
    again = module.DataStreamWriter().queryName("q").start("/out", format="parquet")
    again.stop()
    assert said() == ""


@pytest.mark.parametrize("report", ["queries-1", ""])
def test_queries_are_watched_unless_it_is_a_dry_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: str
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(QueryWatch, "begin", lambda watch: begun.append(watch._report))
    monkeypatch.setattr("atexit.register", lambda *_: None)
    plan = {"checkpoints": HERE, "file": str(tmp_path / "file"), "end": str(tmp_path / "end")}
    module = SimpleNamespace(DataStreamWriter=type("Fresh", (), {**PLAIN, "start": lambda *_: Waited()}))
    run_hook.changes({**plan, **({"report": report} if report else {})})[WRITERS](module)
    module.DataStreamWriter().queryName("q").start("/out", format="parquet")
    assert begun == [report] * bool(report)
    assert module.DataStreamWriter.ha_watched.guards[0].copies == (not report)


def test_of_two_queries_without_a_name_each_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one fails, the second one runs on: an exit code of 0 is no success."""

    def started(*_: object) -> Waited:
        query = Waited()
        query.id = f"{uuid.uuid4()}"
        return query

    monkeypatch.delitem(sys.modules, run_hook.LEAD, raising=False)
    monkeypatch.setattr("atexit.register", lambda *_: None)
    module, changed = installed(tmp_path, start=started)
    monkeypatch.setitem(sys.modules, WRITERS, module)
    changed[run_hook.QUERIES](SimpleNamespace(StreamingQuery=Waited, StreamingQueryManager=Waited))
    watched = module.DataStreamWriter.ha_watched
    first, second = (module.DataStreamWriter().format("console").start() for _ in range(2))
    assert first.awaitTermination(3) == 3
    assert second.isActive
    found = json.loads((tmp_path / "end").read_text())
    assert found["said"] == "A query without a name has failed: no luck"
    again = module.DataStreamWriter().format("console").start()
    assert list(watched.queries.values()) == [second, again], "it is in the place of the one that has ended"


def test_a_refusal_is_told_as_one_that_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atexit.register", lambda *_: None)
    module, _ = installed(tmp_path)
    with pytest.raises(Refused):
        module.DataStreamWriter().format("ha").option("path", "/out").start()
    found = json.loads((tmp_path / "end").read_text())
    assert found["said"].startswith("A query without a name is not started")
    assert found["remedy"] == found["said"].rstrip(".")


@pytest.mark.parametrize(
    ("name", "module", "start", "says"),
    [
        ("DStreams", run_hook.DSTREAMS, lambda module: module.StreamingContext().start(), run_hook.OLD),
        ("spark-pipelines", run_hook.PIPELINES, lambda module: module.start_run("graph"), run_hook.OWN_STORAGE),
    ],
)
def test_what_streams_and_is_no_query_is_told_before_it_starts(
    tmp_path: Path, name: str, module: str, start: Any, says: str
) -> None:
    file, begun = tmp_path / "file", []

    class StreamingContext:
        def start(self) -> None:
            begun.append(noted(file))

    made = SimpleNamespace(StreamingContext=StreamingContext, start_run=lambda _: begun.append(noted(file)))
    run_hook.changes({"checkpoints": HERE, "file": str(file), "end": str(tmp_path / "end")})[module](made)
    start(made)
    assert begun == [{name: f"not guarded: {says}"}]


@pytest.mark.parametrize("local", [False, True])
def test_a_query_in_a_server_elsewhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, local: bool) -> None:
    monkeypatch.setenv("SPARK_LOCAL_REMOTE", "1")
    if not local:
        monkeypatch.delenv("SPARK_LOCAL_REMOTE")
    file = tmp_path / "file"
    module = SimpleNamespace(DataStreamWriter=type("Fresh", (), PLAIN))
    module.DataStreamWriter.start = lambda *_: SimpleNamespace(name="q")
    changed = run_hook.changes({"checkpoints": HERE, "file": str(file), "end": str(tmp_path / "end")})
    changed[run_hook.REMOTE_WRITERS](module)
    module.DataStreamWriter().start("/out")
    assert noted(file) == ({} if local else {"q": f"not guarded: {run_hook.SERVED}"})
