"""What HDFS servers say about themselves, over HTTP."""

import http.client
import json
import socket
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ha.sandbox.ports import LOOPBACK
from ha.sandbox.state import Server, State

ACTIVE = "active"
STANDBY = "standby"

_ANSWER_TIMEOUT_S = 2.0
_WRITE_TIMEOUT_S = 10.0
_CREATED = 201
_OK = 200
_REDIRECT = 307
_PROBE = "/tmp/.sandbox-probe"  # noqa: S108  # a path in HDFS


def role(namenode: Server) -> str | None:
    """Return ``active`` or ``standby``; None if the NameNode does not answer."""
    bean = _bean(namenode, "Hadoop:service=NameNode,name=NameNodeStatus")
    state = bean.get("State") if bean else None
    return state if state in {ACTIVE, STANDBY} else None


def active_namenode(state: State) -> Server | None:
    """Return the active NameNode; None if there is none that answers."""
    return next((server for server in state.of("namenode") if role(server) == ACTIVE), None)


def not_ready(server: Server) -> str | None:
    """Return what keeps a server from doing its part; None if nothing does."""
    if server.kind == "namenode":
        return _namenode_not_ready(server)
    if server.kind == "datanode":
        return _datanode_not_ready(server)
    return None if _listens(server.ports["rpc"]) else "it does not listen yet"


def not_listening(namenode: Server) -> str | None:
    """Return what is in the way as long as a NameNode has only just begun to start; None after that."""
    return None if _listens(namenode.ports["http"]) else "it does not listen yet"


def no_writes(state: State) -> str | None:
    """Return why a file cannot be written to HDFS; None if it was written (and deleted) just now."""
    active = [server for server in state.of("namenode") if role(server) == ACTIVE]
    if not active:
        return "no NameNode is active"
    # One that was paused and replaced believes that it is active until it writes: then its journal ends it.
    refusals = [reason for server in active if (reason := not_writable(server, state.user)) is not None]
    if len(active) > 1:
        return "two NameNodes believe that they are active"
    return refusals[0] if refusals else None


def not_writable(namenode: Server, user: str) -> str | None:
    """Return why a file cannot be written through a NameNode; None if it was written (and deleted) just now."""
    port = namenode.ports["http"]
    try:
        # A directory for everybody, as on any cluster; it is there already after the first time.
        _webhdfs(port, "PUT", "/tmp", user, op="MKDIRS", permission="1777")  # noqa: S108  # a path in HDFS
        status, target, body = _webhdfs(port, "PUT", _PROBE, user, op="CREATE", overwrite="true")
        if status == _REDIRECT and target is not None:
            there = urlsplit(target)
            status, _, body = _request(
                there.port or 0, "PUT", f"{there.path}?{there.query}", body=b"written", timeout_s=_WRITE_TIMEOUT_S
            )
        if status != _CREATED:
            return f"a file could not be written: {_reason(body)}"
        _webhdfs(port, "DELETE", _PROBE, user, op="DELETE")
    except (OSError, http.client.HTTPException) as error:
        return f"a file could not be written: {error}"
    return None


def in_safe_mode(namenode: Server) -> bool | None:
    """Return whether a NameNode refuses writes for now; None if it does not answer."""
    bean = _bean(namenode, "Hadoop:service=NameNode,name=FSNamesystemState")
    return bean.get("FSState") != "Operational" if bean else None


def was_put_in_safe_mode(state: State) -> bool:
    """Return whether the active NameNode is in safe mode because somebody wanted that, and so will not leave it."""
    namenode = active_namenode(state)
    bean = _bean(namenode, "Hadoop:service=NameNode,name=NameNodeInfo") if namenode is not None else None
    return "turned on manually" in str(bean.get("Safemode")) if bean else False


def _namenode_not_ready(server: Server) -> str | None:
    if role(server) is None or not _listens(server.ports["rpc"]):
        return "it does not serve yet"
    return "it is in safe mode" if in_safe_mode(server) else None


def _datanode_not_ready(server: Server) -> str | None:
    bean = _bean(server, "Hadoop:service=DataNode,name=DataNodeInfo")
    if bean is None:
        return "it does not serve yet"
    actors = json.loads(bean.get("BPServiceActorInfo") or "[]")
    running = [actor for actor in actors if actor.get("ActorState") == "RUNNING"]
    return None if running else "it has not found its NameNode yet"


def _bean(server: Server, name: str) -> dict[str, Any] | None:
    """Return one of a server's JMX beans; None if it does not answer."""
    try:
        status, _, body = _request(server.ports["http"], "GET", f"/jmx?{urlencode({'qry': name})}")
        beans = json.loads(body)["beans"] if status == _OK else []
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return None
    return beans[0] if beans else None


def _webhdfs(port: int, method: str, path: str, user: str, **query: str) -> tuple[int, str | None, bytes]:
    query = {"user.name": user, **query}
    timeout_s = _WRITE_TIMEOUT_S
    return _request(port, method, f"/webhdfs/v1{quote(path)}?{urlencode(query)}", timeout_s=timeout_s)


def _request(
    port: int, method: str, target: str, body: bytes | None = None, timeout_s: float = _ANSWER_TIMEOUT_S
) -> tuple[int, str | None, bytes]:
    """Return status, ``Location`` and body of one HTTP exchange on loopback, whatever proxies the environment names."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout_s)
    headers = {"Content-Type": "application/octet-stream"} if body is not None else {}
    try:
        connection.request(method, target, body=body, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Location"), answer.read()
    finally:
        connection.close()


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["RemoteException"]["message"]).splitlines()[0]
    except (ValueError, KeyError, IndexError):
        return "HDFS gave no reason"


def _listens(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), _ANSWER_TIMEOUT_S):
            return True
    except OSError:
        return False
