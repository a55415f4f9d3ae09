"""The contract of stores where a root is mounted: by a router of HDFS federation, and by a table of ViewFs."""

import uuid
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from store.files import Files
from store.open import driver_of
from tests.system.integration.router import routing
from tests.unit.store import test_contract, test_files_contract, test_files_names

pytestmark = [pytest.mark.hdfs, pytest.mark.slow]

MOUNT = "/jobs"
TABLE = "mounted"


@pytest.fixture(scope="module")
def router(hdfs_uri: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Its address."""
    parts = urlsplit(hdfs_uri)
    mounts = {MOUNT: ("ns0", f"{parts.path}{MOUNT}")}
    with routing(tmp_path_factory.mktemp("router"), {"ns0": [parts.netloc]}, mounts) as address:
        yield address


@pytest.fixture
def table(hdfs_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a table of ViewFs, in Hadoop's configuration."""
    key = f"fs.viewfs.mounttable.{TABLE}.link.{MOUNT}"
    entry = f"<property><name>{key}</name><value>{hdfs_uri}{MOUNT}</value></property>"
    (tmp_path / "core-site.xml").write_text(f"<configuration>{entry}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    return TABLE


@pytest.fixture(params=["hdfs-router", "viewfs-table"])
def files(request: pytest.FixtureRequest) -> Iterator[Files]:
    scheme, _, fixture = request.param.partition("-")
    driver = driver_of(f"{scheme}://{request.getfixturevalue(fixture)}{MOUNT}/{uuid.uuid4().hex}")()
    driver.make_root()
    yield driver
    driver.close()


for each in (test_contract, test_files_contract, test_files_names):
    for name, test in vars(each).items():
        if name.startswith("test_") and "files" in signature(test).parameters:
            globals()[name] = test
