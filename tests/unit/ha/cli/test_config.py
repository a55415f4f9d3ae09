"""``ha config show``: the value and the source of each setting."""

import json
from pathlib import Path
from typing import Any

import pytest

from ha.cli import exit_code

pytestmark = pytest.mark.usefixtures("quick")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    assert exit_code(["config", "show", "--json", *arguments]) == 0
    return {each["setting"]: each for each in json.loads(capsys.readouterr().out)}


def test_each_setting_says_where_it_comes_from(quick: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("ha.toml").write_text("drift = 0.02\nshort_ttl = 3\n[restart-strategy]\ntype = 'fixed-delay'\n")
    found = shown(capsys, "--zookeeper", "zk:2181")
    sources = {name: (each["value"], each["source"]) for name, each in found.items()}
    assert sources["files"] == (quick.as_uri(), "HA_FILES")
    assert sources["zookeeper"] == ("zk:2181", "the command line")
    assert sources["drift"] == (0.02, "ha.toml")
    assert sources["short_ttl"] == (2, "HA_SHORT_TTL"), "the environment comes before the file"
    assert sources["restart-strategy.type"] == ("fixed-delay", "ha.toml")
    assert sources["audit"] == (30, "default")
    assert sources["call_timeout"] == (0.5, "default"), "what it comes to, not the 0 that stands for it"


def test_the_table_names_the_variable_and_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["config", "show"]) == 0
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()}
    assert lines["stop_grace"].split() == ["20", "s", "HA_STOP_GRACE"]
    assert lines["zookeeper"].split() == ["(no", "ZooKeeper)", "default"]


def test_a_misspelt_variable_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HA_FILE", "hdfs://nameservice1/ha")
    assert exit_code(["config", "show"]) == 2
    assert "did you mean HA_FILES?" in capsys.readouterr().err
