"""HDFS of the sandbox: the state of its servers over HTTP, and its edit log."""

import json
import re
import shutil
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import Any

from ha.placement.load import beans, session_of
from ha.sandbox.hadoop_conf import NAMESERVICE, address, name_directory
from ha.sandbox.launcher import LaunchedProgram, Launcher
from ha.sandbox.polling import SandboxError
from ha.sandbox.ports import LOOPBACK, listens
from ha.sandbox.secured import Secured
from ha.sandbox.state import Server, State

ACTIVE = "active"
STANDBY = "standby"

_WRITE_TIMEOUT_S = 10.0
_PROBE = "/tmp/.sandbox-probe"  # noqa: S108  # a path in HDFS
_VIEWER = "org.apache.hadoop.hdfs.tools.offlineEditsViewer.OfflineEditsViewer"
_SEGMENT = re.compile(r"edits_(?:inprogress_)?([0-9]+)(-[0-9]+)?")
_TRIES = 3  # A NameNode may write to a segment while it is being read, or finish it, which gives the file another name


def role(namenode: Server, state: State) -> str | None:
    """Return ``active`` or ``standby``; None if the NameNode does not answer."""
    if not state.secured:
        return _role_on_its_page(namenode)
    if not listens(namenode.ports["rpc"]):
        return None
    refusal = Secured(state).refuses_reads(address(namenode, state))  # its pages want a login
    return ACTIVE if refusal is None else STANDBY if "state standby" in refusal else None


def _role_on_its_page(namenode: Server) -> str | None:
    state = bean(namenode.ports["http"], "NameNode", "NameNodeStatus").get("State")
    return state if state in {ACTIVE, STANDBY} else None


def active_namenode(state: State) -> Server | None:
    """Return the active NameNode; None if there is none that answers."""
    return next((server for server in state.of("namenode") if role(server, state) == ACTIVE), None)


def not_ready(server: Server) -> str | None:
    """Return what keeps a server from doing its part; None if nothing does."""
    if server.web == "https":  # what it does is seen by the first write
        return None if all(map(listens, server.ports.values())) else "it does not listen yet"
    if server.kind == "namenode":
        return _namenode_not_ready(server)
    if server.kind == "datanode":
        return _datanode_not_ready(server)
    return None if listens(next(iter(server.ports.values()))) else "it does not listen yet"


def not_listening(namenode: Server) -> str | None:
    """Return what is in the way as long as a NameNode has only just begun to start; None after that."""
    return None if listens(namenode.ports[namenode.web]) else "it does not listen yet"


def no_writes(state: State) -> str | None:
    """Return why a file cannot be written to HDFS; None if it was written (and deleted) just now."""
    active = [server for server in state.of("namenode") if role(server, state) == ACTIVE]
    if not active:
        return "no NameNode is active"
    # One that was paused and replaced believes that it is active until it writes: then its journal ends it.
    refusals = [reason for server in active if (reason := not_writable(server, state)) is not None]
    if len(active) > 1:
        return "two NameNodes believe that they are active"
    return refusals[0] if refusals else None


def not_writable(namenode: Server, state: State) -> str | None:
    """Return why a file cannot be written through a NameNode; None if it was written (and deleted) just now."""
    if state.secured:
        return Secured(state).prepare(address(namenode, state))
    who, url = {"user.name": state.user}, f"http://{LOOPBACK}:{namenode.ports['http']}/webhdfs/v1"
    make = {**who, "op": "MKDIRS", "permission": "1777"}  # for everybody, as on any cluster; it may be there
    create, headers = {**who, "op": "CREATE", "overwrite": "true"}, {"Content-Type": "application/octet-stream"}
    try:
        with session_of({}, "") as session:
            session.put(f"{url}/tmp", params=make, timeout=_WRITE_TIMEOUT_S)  # noqa: S108  # a path in HDFS
            answer = session.put(f"{url}{_PROBE}", b"written", params=create, headers=headers, timeout=_WRITE_TIMEOUT_S)
            if answer.status_code != HTTPStatus.CREATED:
                return f"a file could not be written: {_reason(answer.content)}"
            session.delete(f"{url}{_PROBE}", params={**who, "op": "DELETE"}, timeout=_WRITE_TIMEOUT_S)
    except OSError as error:  # those of requests are OSErrors
        return f"a file could not be written: {error}"
    return None


def was_put_in_safe_mode(state: State) -> bool:
    """Return whether the active NameNode is in safe mode by command, and so will not leave it; a secured one is not."""
    namenode = active_namenode(state)
    if namenode is None or namenode.web == "https":  # whose page asks for a ticket; nobody sets that mode there
        return False
    info = bean(namenode.ports["http"], "NameNode", "NameNodeInfo")
    return "turned on manually" in str(info.get("Safemode"))


def _namenode_not_ready(server: Server) -> str | None:
    if _role_on_its_page(server) is None or not listens(server.ports["rpc"]):
        return "it does not serve yet"
    state = bean(server.ports["http"], "NameNode", "FSNamesystemState").get("FSState", "Operational")
    return None if state == "Operational" else "it is in safe mode"


def _datanode_not_ready(server: Server) -> str | None:
    info = bean(server.ports["http"], "DataNode", "DataNodeInfo")
    if not info:
        return "it does not serve yet"
    actors = json.loads(info.get("BPServiceActorInfo") or "[]")
    running = [actor for actor in actors if actor.get("ActorState") == "RUNNING"]
    return None if running else "it has not found its NameNode yet"


def bean(port: int, service: str, name: str) -> dict[str, Any]:
    """Return one of a server's JMX beans; empty if it does not answer."""
    try:
        with session_of({}, "") as session:
            return beans(session, f"http://{LOOPBACK}:{port}", f"Hadoop:service={service},name={name}")[0]
    except (OSError, ValueError, LookupError):
        return {}


def _reason(body: bytes) -> str:
    try:
        return str(json.loads(body)["RemoteException"]["message"]).splitlines()[0]
    except (ValueError, KeyError, IndexError):
        return "HDFS gave no reason"


# --- the edit log


def read_edits(state: State, data: Path, launcher: Launcher) -> list[str]:
    """Return the edit log as XML, as Hadoop's own tool prints it: one document for each segment, oldest first."""
    # It holds every change that a client was told is done, since a NameNode answers after it has written.
    with tempfile.TemporaryDirectory(prefix="ha-edits-") as folder:
        return [_print_segment(segment, launcher) for segment in _copied(state, data, Path(folder))]


def _copied(state: State, data: Path, folder: Path) -> list[Path]:
    """Copy the edit log: reading takes a second a file, and a NameNode renames the last one every half minute."""
    for tries_left in reversed(range(_TRIES)):
        found = edit_segments(state, data)
        if not found:
            raise SandboxError(f"There is no edit log in {data}: ha lab sandbox up makes one.")
        try:
            return [Path(shutil.copy(segment, folder)) for segment in found]
        except FileNotFoundError as error:
            if not tries_left:
                raise SandboxError(f"The edit log in {data} changes faster than it can be copied: {error}.") from error
    raise AssertionError("the last try returns or raises")


def edit_segments(state: State, data: Path) -> list[Path]:
    """Return the files of the edit log, oldest first: each transaction is in one of them."""
    # Of two NameNodes only their common journal counts. Of the copies that its servers hold, a finished one is better
    # than one in progress: that may have been left behind by a NameNode or a server which died.
    folders = [data / server.name / "edits" / NAMESERVICE / "current" for server in state.of("journalnode")] or [
        name_directory(server, data) / "current" for server in state.of("namenode")
    ]
    best: dict[int, tuple[bool, int, Path]] = {}
    for path in (path for folder in folders for path in folder.glob("edits_*")):
        if match := _SEGMENT.fullmatch(path.name):
            candidate = (match[2] is not None, path.stat().st_mtime_ns, path)
            best[int(match[1])] = max(best.get(int(match[1]), candidate), candidate)
    return [path for _, (_, _, path) in sorted(best.items())]


def _print_segment(segment: Path, launcher: Launcher) -> str:
    with tempfile.TemporaryDirectory(prefix="ha-edits-") as folder:
        target = Path(folder, "edits.xml")
        tool = LaunchedProgram(_VIEWER, ("-i", str(segment), "-o", str(target), "-p", "xml"))
        launcher.run("edits", tool)
        try:
            return target.read_text(encoding="utf-8")
        except OSError as error:
            raise SandboxError(f"{segment} cannot be read: {error}.") from error
