"""Behind a gateway that drops the options of a rename nobody is granted a job, and each tool says why."""

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from leader.errors import InvalidSettings
from store.open import open_files
from tests.patience import PATIENCE_S
from tests.system.integration.gateway import gateway
from tests.unit.ha.programs import HA, QUICK, Program

pytestmark = [pytest.mark.hdfs, pytest.mark.slow]

WHY = "its server ignores `renameoptions`, as an HttpFS gateway does"
WRONG_USAGE = 2


@pytest.fixture
def root(webhdfs_uri: str, tmp_path: Path) -> Iterator[str]:
    """A root that is there, by the gateway's address."""
    parts = urlsplit(webhdfs_uri)
    path = f"{parts.path}/{tmp_path.name}"
    with open_files(f"webhdfs://{parts.netloc}{path}") as files:
        files.call("make the root", lambda driver: driver.make_root(), PATIENCE_S)
    with gateway(parts.netloc) as address:
        yield f"webhdfs://{address}{path}"


def test_of_four_sidecars_none_leads(root: str, tmp_path: Path) -> None:
    environment = {**QUICK, "HA_FILES": root, "HA_ZOOKEEPER": "", "PATH": "/usr/bin:/bin"}
    led = tmp_path / "led"
    writes = [sys.executable, "-c", f"open({str(led)!r}, 'a').write('x')"]
    programs = []
    for name in "abcd":
        folder = tmp_path / name
        folder.mkdir()
        programs.append(Program([*HA, "run", "orders", "--contender", name, "--", *writes], folder, environment))
    try:
        for each in programs:
            assert each.wait() == WRONG_USAGE
            assert WHY in each.said
    finally:
        for each in programs:
            each.end()
    assert not led.exists()


def test_a_program_that_leads_by_itself_is_told(root: str) -> None:
    block = ha.lead("orders", files=root, zookeeper="", timeout=PATIENCE_S)
    with pytest.raises(InvalidSettings, match="ignores `renameoptions`"), block:
        raise AssertionError("it leads")


def test_nothing_is_left_of_the_try(root: str, webhdfs_uri: str) -> None:
    block = ha.lead("orders", files=root, zookeeper="", timeout=PATIENCE_S)
    with pytest.raises(InvalidSettings), block:
        pass
    parts = urlsplit(webhdfs_uri)
    with open_files(f"webhdfs://{parts.netloc}{urlsplit(root).path}") as files:
        there = files.call("list", lambda driver: [each.name for each in driver.list("")], PATIENCE_S)
    assert [name for name in there if name != ".staging"] == []
