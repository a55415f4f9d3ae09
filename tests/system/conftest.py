"""Fixtures that tests of whole systems share: a ZooKeeper server to hurt, and an archive of Spark's classes."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping

import pytest

from ha.sandbox.ports import free_ports
from ha.sidecar.command import class_data as data_of_classes
from ha.sidecar.command.class_data import ClassData
from ha.sidecar.command.spark_overlay import spark_environment
from tests.unit.store.zookeeper.helpers import Server

Environment = Mapping[str, str]


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("zookeeper"), [(free_ports(1)[0], 0, 0)])
    yield made
    made.kill()


@pytest.fixture
def server(own_server: Server) -> Server:
    """A server of this file's own; it is up, or on its way."""
    own_server.up()
    return own_server


@pytest.fixture(scope="session")
def class_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Environment]]:
    """Return the variables with which a driver starts from an archive of classes; none until the archive is there.

    It halves the processor time of a start. A clean machine makes it while the first tests run; with their priority,
    since those that come next gain by it.
    """
    folder = tmp_path_factory.mktemp("class-data")
    data = ClassData([sys.executable], (folder / "training").as_uri())

    def variables() -> Environment:
        options = data.options(os.environ)
        overlay = folder / "conf"
        if options and not overlay.exists():
            spark_environment(overlay, os.environ, data.jars)
        return options and {**options, "SPARK_CONF_DIR": str(overlay), "SPARK_ENV_LOADED": ""}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_of_classes, "in_background", lambda: None)
        data.begin()
        yield variables
        data.close()


@pytest.fixture(autouse=True)
def drivers_start_sooner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("spark"):
        variables: Callable[[], Environment] = request.getfixturevalue("class_data")
        for name, value in variables().items():
            monkeypatch.setenv(name, value)
