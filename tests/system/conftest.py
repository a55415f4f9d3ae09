"""A ZooKeeper server that a file's tests may hurt."""

from collections.abc import Iterator

import pytest

from tests.unit.store.zookeeper.helpers import Server, free_ports


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
