"""``ha host config``: the value and the source of each setting."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.ha.command_line import CommandLine

pytestmark = pytest.mark.usefixtures("quick")


def shown(cli: CommandLine, *arguments: str) -> dict[str, dict[str, Any]]:
    return {each["setting"]: each for each in cli("host config --json", *arguments).json}


def test_each_setting_says_where_it_comes_from(quick: Path, cli: CommandLine) -> None:
    Path("ha.toml").write_text("audit = 20\nshort_ttl = 3\nrestart_strategy = 'fixed-delay'\n")
    found = shown(cli, "--zookeeper", "zk:2181")
    sources = {name: (each["value"], each["source"]) for name, each in found.items()}
    assert sources["files"] == (quick.as_uri(), "HA_FILES")
    assert sources["zookeeper"] == ("zk:2181", "the command line")
    assert sources["audit"] == (20, "ha.toml")
    assert sources["short_ttl"] == (10, "HA_SHORT_TTL"), "the environment comes before the file"
    assert sources["restart_strategy"] == ("fixed-delay", "ha.toml")
    assert sources["heartbeat_timeout"] == (50, "default")
    assert sources["call_timeout"] == (1.5, "default"), "what it comes to, not the 0 that stands for it"


def test_the_table_names_the_variable_and_the_default(cli: CommandLine) -> None:
    lines = {line.split()[0]: line.split(maxsplit=1)[1] for line in cli("host config").out.splitlines()}
    assert lines["stop_grace"].split() == ["20", "s", "HA_STOP_GRACE"]
    assert lines["zookeeper"].split() == ["(no", "ZooKeeper)", "default"]
