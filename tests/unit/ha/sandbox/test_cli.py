"""Tests of ``ha lab sandbox``: output for people and for scripts."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ha.cli.sandbox import sandbox as group
from ha.sandbox import Sandbox


def ha(*arguments: str | Path) -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments], prog_name="ha lab sandbox")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    chosen = tmp_path_factory.mktemp("cli") / "box+1"
    yield chosen
    Sandbox(chosen).down(wipe=True)


def test_without_a_sandbox(tmp_path: Path) -> None:
    result = ha("status", "--dir", tmp_path)
    assert (result.exit_code, result.output) == (1, f"There is no sandbox in {tmp_path}.\n")
    result = ha("status", "--json", "--dir", tmp_path)
    assert (result.exit_code, json.loads(result.output)["servers"]) == (1, [])
    result = ha("env", "--dir", tmp_path)
    assert result.exit_code == 1
    assert result.output == f"Error: There is no sandbox in {tmp_path}: ha lab sandbox up makes one.\n"
    result = ha("down", "--dir", tmp_path)
    assert (result.exit_code, result.output) == (0, "The sandbox was down already.\n")
    assert list(tmp_path.iterdir()) == []


def test_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = ha("up", "--dir", tmp_path / "box")
    assert result.exit_code == 1
    assert "openjdk-17-jre-headless" in result.stderr


@pytest.mark.hdfs
@pytest.mark.zookeeper
@pytest.mark.slow
def test_up_status_env_down(directory: Path) -> None:
    result = ha("up", "--dir", directory)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("The sandbox is up after ")
    assert f'eval "$(ha lab sandbox env --dir {directory})"' in result.stdout
    assert "Waiting until everything serves" in result.stderr
    for data in ("namenode-1/name/current/VERSION", "datanode-1/blocks/current/VERSION"):
        assert (directory / "data" / data).is_file()  # and not in the working directory of the command

    result = ha("up", "--json", "--dir", directory)
    assert json.loads(result.stdout)["changed"] is False
    assert ha("up", "--dir", directory).stdout.startswith("The sandbox is up already.")

    result = ha("status", "--dir", directory)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0].split() == ["name", "kind", "pid", "port", "state", "role"]
    assert lines[1].split()[::4] == ["zookeeper-1", "up"]

    variables = json.loads(ha("env", "--json", "--dir", directory).output)
    assert variables["HADOOP_CONF_DIR"] == str(directory / "conf")
    assert f"export HADOOP_CONF_DIR={directory}/conf\n" in ha("env", "--dir", directory).output
    assert ha("up", "--zookeepers", "2", "--dir", directory).exit_code == 2

    Sandbox(directory).kill("datanode-1")
    result = ha("status", "--json", "--dir", directory)
    assert result.exit_code == 1
    assert [server["state"] for server in json.loads(result.output)["servers"]] == ["up", "up", "down"]

    assert ha("down", "--dir", directory).output == "The sandbox is down.\n"
    result = ha("down", "--wipe", "--json", "--dir", directory)
    assert json.loads(result.output) == {"changed": False, "wiped": True}
    assert not directory.exists()
