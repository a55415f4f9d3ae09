"""Copies: a ZooKeeper for readers that holds only a test's data."""

from collections.abc import Callable
from typing import Any, cast

from store.errors import Invalid, NotFound, NotSent
from store.zookeeper import Connection, Event, Get, Stat, Sync, ZooKeeper


class Copies:
    """Plays a connected ZooKeeper client, until a test disconnects it."""

    def __init__(self) -> None:
        self.state = Connection.CONNECTED
        self.nodes: dict[str, bytes] = {}
        self.asked = 0

    @property
    def client(self) -> ZooKeeper:
        """Return it under the type that readers expect."""
        return cast("ZooKeeper", self)

    def start(self) -> None:
        """Do nothing: it is connected already."""

    def wait(self, timeout: float, *_: Connection) -> Connection:
        del timeout
        return self.state

    def call(self, operation: object, timeout: float) -> Any:
        """Answer at once."""
        del timeout
        if self.state is not Connection.CONNECTED:
            raise NotSent("It is away.")
        self.asked += 1
        match operation:
            case Get(path):
                if path not in self.nodes:
                    raise NotFound(path)
                stat = dict.fromkeys(Stat.__struct_fields__, 0)
                return self.nodes[path], Stat(**stat)
            case Sync():
                return None
            case _:
                raise Invalid(f"{operation}")

    def add_listener(self, listener: Callable[[Event | Connection], None]) -> None:
        """Do nothing: nothing ever changes by itself."""

    def remove_listener(self, listener: Callable[[Event | Connection], None]) -> None:
        """Likewise."""
