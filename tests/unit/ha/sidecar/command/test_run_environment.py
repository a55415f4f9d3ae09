"""The environment of a run: what a PySpark command gets without being asked."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ha.config.sources import load
from ha.sidecar.command.run_environment import RunEnvironment
from ha.sidecar.command.run_files import RunFiles
from ha.sidecar.command.spark_overlay import CLOSING
from leader.job.programs import Program


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
