"""Copies: a ZooKeeper for readers that holds only a test's data."""

from typing import Any

from store.errors import Invalid, NotFound, NotSent
from store.zookeeper import Connection, Get, Stat, Sync
from tests.unit.leader.grants import PlayedZooKeeper


class Copies(PlayedZooKeeper):
    def __init__(self) -> None:
        self.nodes: dict[str, bytes] = {}
        self.asked = 0

    def call(self, operation: object, timeout: float) -> Any:
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
