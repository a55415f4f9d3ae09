"""A plugin of pytest: tells the gate, line by line, what a lane is doing; and runs only the tests that it was given.

A line is a JSON object. ``begins`` names a test that begins, ``when`` (setup, call, teardown) a phase that has ended.
``ended`` is the last line: a process whose record lacks it has died.
"""

import faulthandler
import json
import os
import signal
import time
from pathlib import Path
from typing import IO, Any

import pytest

MARKS = ("hdfs", "programs", "slow", "spark", "zookeeper")
UNBOUNDED_S = 3600.0
"""The gate's limit for a test that has none: its stage has one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plan", type=Path, help="collect only, and write each test's id, marks and fixtures there")
    parser.addoption("--only", type=Path, help="run the tests alone whose ids are in this JSON file")
    parser.addoption("--record", type=Path, help="append what each test does to this file")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record") is not None:
        config.pluginmanager.register(Recorder(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    path: Path | None = config.getoption("--only")
    if path is not None:
        chosen = frozenset(json.loads(path.read_text()))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    path: Path | None = session.config.getoption("--plan")
    if path is not None:
        planned = [
            {
                "id": item.nodeid,
                "marks": [name for name in MARKS if item.get_closest_marker(name)],
                "fixtures": [name for name in ("spark",) if name in getattr(item, "fixturenames", ())],
            }
            for item in session.items
        ]
        path.write_text(json.dumps(planned))


class Recorder:
    """Writes the lines of one process."""

    def __init__(self, config: pytest.Config) -> None:
        path: Path = config.getoption("--record")
        self._out: IO[str] = path.open("a", buffering=1)
        self._limits: dict[str, float] = {}
        self._cores = 0.0
        # Pytest puts its own file in place of the output, which is lost with the process.
        self._stacks = path.with_suffix(".stacks").open("a")
        faulthandler.register(signal.SIGUSR1, self._stacks)

    def _write(self, **line: Any) -> None:
        self._out.write(json.dumps({"at": time.monotonic(), **line}) + "\n")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        usual = float(session.config.getini("timeout") or 0)
        for item in session.items:
            mark = item.get_closest_marker("timeout")
            self._limits[item.nodeid] = (
                float(mark.args[0]) if mark is not None and mark.args else usual
            ) or UNBOUNDED_S
        self._write(collected=len(session.items))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._cores = _of_cores()
        self._write(begins=nodeid, limit=self._limits[nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report: pytest.TestReport = yield
        raised = call.excinfo if report.failed else None
        self._write(
            id=item.nodeid, when=report.when, outcome=report.outcome, seconds=report.duration,
            cores=_of_cores() - self._cores, skipped=_reason(report),
            error=f"{raised.typename}: {raised.value}" if raised is not None else None,
            text=report.longreprtext if report.failed else None,
        )  # fmt: skip
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._write(ended=int(exitstatus))


def _of_cores() -> float:
    """Return the seconds of processors of this process, and of those that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _reason(report: pytest.TestReport) -> str | None:
    return str(report.longrepr[2]) if report.skipped and isinstance(report.longrepr, tuple) else None
