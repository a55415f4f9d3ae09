"""Fixtures that several folders of tests share: the sandbox's real HDFS and ZooKeeper, and a line for people."""

import fcntl
import gc
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from ha.sandbox import Sandbox
from store.open import open_files
from tests.lanes import (
    begins_with_own_servers,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_xdist_make_scheduler,
)
from tests.patience import PATIENCE_S, have_patience

pytest_plugins = ["tests.stages"]
__all__ = ["pytest_collection_modifyitems", "pytest_configure", "pytest_xdist_make_scheduler"]

TOLD = "told"

# By default Hypothesis gives an example 0.2 s, and the making of ten examples 1 s. On a loaded machine that fails a
# test of which nothing is wrong. Each run has the same examples: a test that fails here fails everywhere.
# `make unit` tries a quarter of them.
hypothesis.settings.register_profile(
    "repeated", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.register_profile("unit", hypothesis.settings.get_profile("repeated"), max_examples=25)
hypothesis.settings.load_profile("repeated")


@pytest.fixture(scope="session", autouse=True)
def no_agent() -> Iterator[None]:
    """Tests see what they ask the stores, whatever runs on this host; those of the agent say where it writes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HA_SNAPSHOTS", "off")
        yield


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Undo what a test that runs the command line here does to the logging of this process."""
    root, names = logging.getLogger(), ("ha", "kazoo")
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in names:
        logging.getLogger(name).setLevel(levels[name])


@pytest.fixture(scope="session")
def sandbox(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """One ZooKeeper and one NameNode; HA_TEST_SANDBOX=<dir> borrows one that is up.

    Processes that run tests side by side share it, but for the one whose tests hurt it.
    """
    borrowed = os.environ.get("HA_TEST_SANDBOX")
    shared = hasattr(request.config, "workerinput") and not begins_with_own_servers()
    folder = _shared(tmp_path_factory) if shared else tmp_path_factory.mktemp("sandbox")
    made = Sandbox(borrowed or folder)
    try:
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # bounded: so is the start of a sandbox
            made.up()
        with pytest.MonkeyPatch.context() as patch:
            environment = made.environment()
            for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME"):
                patch.setenv(name, environment[name])
            yield made
    finally:
        if borrowed is None and not shared:
            made.down(wipe=True)


def _shared(factory: pytest.TempPathFactory) -> Path:
    """Below the folder of the process that runs the others: each of them has a folder in it."""
    return factory.getbasetemp().parent / "shared-sandbox"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Take the shared sandbox down, when all processes have ended."""
    if session.config.pluginmanager.has_plugin("dsession"):
        factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        Sandbox(factory.getbasetemp() / "shared-sandbox").down(wipe=True)


@pytest.fixture(scope="session")
def hdfs_uri(sandbox: Sandbox) -> str:
    """A root below which tests write, over Hadoop RPC. Everybody may look into it: some tests are other users."""
    uri = f"{sandbox.environment()['HA_FILES']}-tests"
    with open_files(uri, directory_mode=0o755) as files:
        files.call("make the root", lambda driver: driver.make_root(), PATIENCE_S)
    return uri


@pytest.fixture(scope="session")
def webhdfs_uri(sandbox: Sandbox, hdfs_uri: str) -> str:
    assert hdfs_uri, "the root is made"
    return f"{sandbox.environment()['HA_SANDBOX_WEBHDFS']}-tests"


@pytest.fixture(scope="session")
def zookeeper_hosts(sandbox: Sandbox) -> str:
    """The ZooKeeper server, as host:port."""
    return sandbox.environment()["HA_ZOOKEEPER"]


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Tell people what a long test found: the run's last part shows it."""
    return lambda text: record_property(TOLD, text)


@pytest.hookimpl(tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests told."""
    reports = [each for outcome in ("passed", "failed") for each in terminalreporter.getreports(outcome)]
    told = [(each.nodeid, text) for each in reports for name, text in each.user_properties if name == TOLD]
    if told:
        terminalreporter.section("what long tests found")
    for _, text in told:
        terminalreporter.write_line(str(text))


def pytest_itemcollected(item: pytest.Item) -> None:
    have_patience(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Take what has been imported and collected out of the garbage collector's sight: it stays until the end."""
    gc.collect()
    gc.freeze()
