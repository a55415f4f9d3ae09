"""Fixtures that several folders of tests share: the sandbox's real HDFS and ZooKeeper."""

import os
from collections.abc import Iterator

import pytest

from ha.sandbox import Sandbox


@pytest.fixture(scope="session", autouse=True)
def no_agent() -> Iterator[None]:
    """Tests see what they ask the stores, whatever runs on this host; those of the agent say where it writes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HA_SNAPSHOTS", "off")
        yield


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """A sandbox with one ZooKeeper and one NameNode; HA_TEST_SANDBOX=<dir> borrows one that is up already."""
    borrowed = os.environ.get("HA_TEST_SANDBOX")
    made = Sandbox(borrowed or tmp_path_factory.mktemp("sandbox"))
    try:
        made.up()
        with pytest.MonkeyPatch.context() as patch:
            environment = made.environment()
            for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME"):
                patch.setenv(name, environment[name])
            yield made
    finally:
        if borrowed is None:
            made.down(wipe=True)


@pytest.fixture(scope="session")
def hdfs_uri(sandbox: Sandbox) -> str:
    """A root below which tests write, over Hadoop RPC."""
    return f"{sandbox.environment()['HA_FILES']}-tests"


@pytest.fixture(scope="session")
def webhdfs_uri(sandbox: Sandbox) -> str:
    """The same root, over WebHDFS."""
    return f"{sandbox.environment()['HA_SANDBOX_WEBHDFS']}-tests"


@pytest.fixture(scope="session")
def zookeeper_hosts(sandbox: Sandbox) -> str:
    """The ZooKeeper server, as host:port."""
    return sandbox.environment()["HA_ZOOKEEPER"]
