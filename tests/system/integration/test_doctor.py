"""``ha host doctor`` against real HDFS and real ZooKeeper."""

import json

import pytest

from ha.cli import exit_code


def test_servers_are_well(
    stores: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HA_FILES", stores["files"])
    monkeypatch.setenv("HA_ZOOKEEPER", stores["zookeeper"])
    exit_code(["host", "doctor", "--json"])
    found = {each["check"]: each for each in json.loads(capsys.readouterr().out)}
    assert found["zookeeper"]["level"] in {"ok", "warning"}, found
    assert found["ensemble"]["found"].endswith(" standalone.")
    assert found["files"]["level"] in {"ok", "warning"}, found
    assert found["access"]["level"] == "warning"
