"""ZooKeeper with a bound on everything: a client, its session's clock, and what one can ask."""

from store.zookeeper.client import ZooKeeper
from store.zookeeper.operations import (
    MAX_REQUEST_BYTES,
    Children,
    Create,
    Delete,
    Event,
    Exists,
    Get,
    Kind,
    Operation,
    Set,
    Stat,
    Sync,
)
from store.zookeeper.session import Connection, Session

__all__ = [
    "MAX_REQUEST_BYTES",
    "Children",
    "Connection",
    "Create",
    "Delete",
    "Event",
    "Exists",
    "Get",
    "Kind",
    "Operation",
    "Session",
    "Set",
    "Stat",
    "Sync",
    "ZooKeeper",
]
