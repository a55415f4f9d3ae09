"""How the servers are."""

import msgspec

from ha.sandbox import hdfs, zookeeper
from ha.sandbox.process import Condition, condition
from ha.sandbox.state import Kind, Server


class ServerStatus(msgspec.Struct, frozen=True):
    """How one server is.

    Attributes:
        name: such as ``namenode-1``.
        kind: what it is.
        pid: its process; None if it is down.
        port: where clients reach it.
        state: ``up`` (the process runs), ``paused`` or ``down``.
        role: what it says it is, if it answers: active, standby, leader, follower, standalone, read-only.
    """

    name: str
    kind: Kind
    pid: int | None
    port: int
    state: Condition
    role: str | None


def status_of(server: Server) -> ServerStatus:
    """Look at a server, for two seconds at most."""
    state = condition(server.process)
    role = None
    if state == "up" and server.kind == "zookeeper":
        role = zookeeper.mode(server)
    elif state == "up" and server.kind == "namenode":
        role = hdfs.role(server)
    return ServerStatus(
        name=server.name,
        kind=server.kind,
        pid=server.process.pid if server.process is not None and state != "down" else None,
        port=next(iter(server.ports.values())),
        state=state,
        role=role,
    )
