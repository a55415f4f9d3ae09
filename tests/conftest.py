"""Fixtures that several folders of tests share: the sandbox's real HDFS and ZooKeeper, and a line for people."""

import gc
import logging
import os
from collections.abc import Callable, Iterator

import hypothesis
import pytest

from ha.sandbox import Sandbox
from store.open import open_files
from tests.patience import PATIENCE_S, have_patience
from tests.servers import exit_if_lost

pytest_plugins = ["tests.stages", "tests.gate.record"]

TOLD = "told"
SANDBOX = pytest.StashKey[Sandbox | None]()
"""The sandbox that tests of this process have, once there is one."""

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
    """One ZooKeeper and one NameNode; HA_TEST_SANDBOX=<dir> borrows one that is up, as the gate's lanes do."""
    borrowed = os.environ.get("HA_TEST_SANDBOX")
    made = Sandbox(borrowed or tmp_path_factory.mktemp("sandbox"))
    try:
        made.up()
        with pytest.MonkeyPatch.context() as patch:
            environment = made.environment()
            for name in ("HADOOP_CONF_DIR", "HADOOP_USER_NAME"):
                patch.setenv(name, environment[name])
            request.session.stash[SANDBOX] = made
            yield made
    finally:
        request.session.stash[SANDBOX] = None
        if borrowed is None:
            made.down(wipe=True)


@pytest.fixture(autouse=True)
def servers_live(request: pytest.FixtureRequest) -> Iterator[None]:
    """End the run if a server of the sandbox is gone before a test, or after it and what its fixtures have repaired."""
    asks = any(request.node.get_closest_marker(each) for each in ("hdfs", "zookeeper"))
    if asks:
        _look(request.session)
    yield
    if asks:
        _look(request.session)


def _look(session: pytest.Session) -> None:
    made = session.stash.get(SANDBOX, None)
    if made is not None:
        exit_if_lost(made)


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
