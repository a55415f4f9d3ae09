"""A client of the sandbox's ZooKeeper."""

import itertools
import uuid
from collections.abc import Iterator

import pytest

from store.zookeeper import Exists, ZooKeeper
from tests.patience import PATIENCE_S
from tests.unit.store.zookeeper.helpers import connected

# A borrowed sandbox still has the nodes of earlier runs.
names = map(f"/test-{uuid.uuid4().hex}-{{}}".format, itertools.count())


@pytest.fixture
def hosts(zookeeper_hosts: str) -> str:
    return zookeeper_hosts + next(names)


@pytest.fixture
def zookeeper(hosts: str) -> Iterator[ZooKeeper]:
    with connected(hosts) as client:
        client.call(Exists("/"), PATIENCE_S)  # behind the creation of its chroot, which other clients are to see
        yield client
