"""Fixtures of the ZooKeeper client's tests."""

import contextlib
import itertools
import socket
import uuid
from collections.abc import Iterator

import pytest

from store.zookeeper import ZooKeeper
from tests.store.zookeeper.helpers import Server, connected, free_ports

# A borrowed sandbox still has the nodes of earlier runs.
names = map(f"/test-{uuid.uuid4().hex}-{{}}".format, itertools.count())


@pytest.fixture
def hosts(zookeeper_hosts: str) -> str:
    """The shared server, with a chroot of this test's own."""
    return zookeeper_hosts + next(names)


@pytest.fixture
def zookeeper(hosts: str) -> Iterator[ZooKeeper]:
    with connected(hosts) as client:
        yield client


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = Server(tmp_path_factory.mktemp("zookeeper"), [(free_ports(1)[0], 0, 0)])
    yield made
    made.kill()


@pytest.fixture
def server(own_server: Server) -> Server:
    """A server that may be hurt; it is up, or on its way."""
    own_server.up()
    return own_server


@pytest.fixture
def black_hole() -> Iterator[int]:
    """A port whose queue of connections is full, so that the kernel drops every further SYN."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
