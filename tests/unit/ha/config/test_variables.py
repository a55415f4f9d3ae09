"""Variables that begin with HA_: a misspelt one is refused, and the package knows its own."""

import re
from pathlib import Path

import pytest

from ha.config.settings import reference
from ha.config.sources import OWN, load
from ha.program.variables import PROGRAM
from leader.errors import InvalidSettings

ROOT = Path(__file__).parents[4]
SETTINGS = {each.variable for each in reference()}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("HA_FILE", "did you mean HA_FILES?"),
        ("HA_ZOOKEPER", "did you mean HA_ZOOKEEPER?"),
        ("HA_CONF", "did you mean HA_CONFIG?"),
        ("HA_", "`ha host config` lists all settings."),
        ("HA_XQJ", "`ha host config` lists all settings."),
        ("HA_SERVICE_HOSTS", "did you mean HA_HTTP_HOSTS?"),
    ],
)
def test_a_misspelt_variable_is_refused_with_a_suggestion(name: str, meant: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        load({}, {name: "hdfs://nameservice1/ha"})
    assert str(caught.value) == (
        f"{name} in the environment is not a setting: {meant} If it is another program's, unset it for this one."
    )


@pytest.mark.parametrize(
    "name",
    [
        "HADOOP_CONF_DIR",
        "HAPROXY",
        "ha_file",
        "HA_UI_SERVICE_HOST",
        "HA_SERVICE_PORT",
        "HA_UI_SERVICE_PORT_HTTP",
        "HA_PORT",
        "HA_ZOOKEEPER_PORT",
        "HA_ZOOKEEPER_PORT_2181_TCP",
        "HA_ZOOKEEPER_PORT_2181_TCP_ADDR",
        *sorted(OWN - {"HA_CONFIG"}),
    ],
)
def test_variables_of_others_and_of_this_package_are_no_mistakes(name: str) -> None:
    assert load({}, {name: "x"}).stores.zookeeper == ""


def test_an_empty_variable_is_not_set() -> None:
    assert load({}, {"HA_FILE": ""}).stores.zookeeper == ""


def test_every_variable_that_the_package_or_its_tests_use_is_known() -> None:
    sources = [path for room in ("ha", "leader", "store", "docker") for path in (ROOT / room).rglob("*") if _text(path)]
    sources += [*(ROOT / "tests").rglob("conftest.py"), *(ROOT / "tests" / "system").rglob("*.py"), ROOT / "Makefile"]
    named = {name for path in sources for name in re.findall(r"\bHA_[A-Z][A-Z0-9_]*\b", path.read_text())}
    assert {"HA_FILES", "HA_BELIEF", "HA_NET"} <= named
    assert named - SETTINGS - OWN - set(PROGRAM) == {"HA_UI_SERVICE_HOST"}, "add it to OWN or PROGRAM"


def _text(path: Path) -> bool:
    return path.is_file() and path.suffix in {".py", ".yaml", ".sh"}
