"""ZooKeeper with a bound on everything: a client, its session's clock, and the operations.

Imports are lazy: a reader that the agent of its host answers never pays for kazoo.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_PLACES = {"ZooKeeper": "client", "Connection": "session", "Session": "session"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'store.zookeeper' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # laziness is the point

    module = import_module(f"store.zookeeper.{_PLACES.get(name, 'operations')}")
    return globals().setdefault(name, getattr(module, name))
