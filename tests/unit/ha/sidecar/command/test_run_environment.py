"""The environment of a run: what a PySpark command gets without being asked."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.config.sources import load
from ha.hook.entry import PLANS
from ha.program import end_file
from ha.sidecar.command.run_directory import RunFiles
from ha.sidecar.command.run_environment import RunEnvironment
from ha.sidecar.command.spark_overlay import CLOSING
from leader.job.programs import Program
from leader.layout.names import LeaderDirectory


@pytest.mark.parametrize(("command", "sooner"), [(["python", "orders.py"], True), (["sleep", "7"], False)])
def test_only_what_may_use_spark_closes_files_sooner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], sooner: bool
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    process: Any = SimpleNamespace(settings=load({"files": tmp_path.as_uri()}), stores=None)
    files = RunFiles(tmp_path, 1)
    found, _ = RunEnvironment(process, "orders").prepare(Program(command), files, None, [])
    assert found.get("SPARK_CONF_DIR") == (str(files.spark) if sooner else None)
    if sooner:
        lines = (files.spark / "spark-defaults.conf").read_text().splitlines()
        assert {f"{name} {value}" for name, value in CLOSING.items()} <= {*lines}


@pytest.mark.parametrize(
    ("command", "engine", "hidden"),
    [
        (["python3.11", "orders.py"], False, False),
        (["/opt/spark/bin/spark-submit", "orders.py"], False, False),
        (["sh", "-c", "spark-submit orders.py | tee log"], False, True),
        (["./launch.sh"], False, True),
        (["env", "python", "orders.py"], True, False),
    ],
)
def test_a_command_that_may_hide_its_end_has_failed_until_its_program_says_more(
    tmp_path: Path, command: list[str], *, engine: bool, hidden: bool
) -> None:
    stores = SimpleNamespace(directory_uri=lambda *_: "file:///jobs/orders/1")
    process: Any = SimpleNamespace(settings=load({"files": tmp_path.as_uri()}), stores=stores)
    files, leader = RunFiles(tmp_path, 1), LeaderDirectory(1, "session")
    RunEnvironment(process, "orders", spark=True, engine=engine).prepare(Program(command), files, leader, [])
    assert bool(end_file.told(files.report).said) is hidden
    plans = json.loads((files.spark.with_name("spark-1.python") / PLANS).read_text())
    assert ("hidden_end" in plans) is hidden
