"""Servers of one sandbox: starts, watches and ends them."""

import functools
import os
import shutil
import signal
from collections.abc import Callable, Iterable

import msgspec

from ha.sandbox import hadoop_conf, hdfs, jars, kafka, zookeeper
from ha.sandbox.launcher import LaunchedProgram, Launcher, last_lines
from ha.sandbox.polling import SandboxError, TooLateError, until
from ha.sandbox.ports import is_free
from ha.sandbox.secured import Secured
from ha.sandbox.server_process import Condition, condition, send, spawn, wait_gone
from ha.sandbox.state import Directory, Kind, Server, State

READY_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 10.0
KILL_TIMEOUT_S = 10.0


def start(directory: Directory, state: State, server: Server, launcher: Launcher) -> None:
    """Start a server that is down, on its ports and its data, and remember its process."""
    for use, port in server.ports.items():
        if not is_free(port):
            raise SandboxError(f"Port {port} ({use} of {server.name}) is taken by another process.")
    try:
        if server.kind == "kdc":
            _start_centre(directory, state, server)
            return
        if server.kind == "zookeeper":
            zookeeper.configure(server, state, directory.data)
            program = zookeeper.program(server, state, directory.data)
        elif server.kind == "kafka":
            program = _broker(directory, server, launcher)
        else:
            hadoop_conf.write(state, directory.conf)
            program = hadoop_conf.program(server, state, directory.data, directory.temporary)
    except OSError as error:
        raise SandboxError(f"The configuration of {server.name} cannot be written: {error}.") from error
    server.process = launcher.start(server.name, program)
    directory.save(state)


def start_all(
    directory: Directory, state: State, servers: Iterable[Server], launcher: Launcher, progress: Callable[[str], None]
) -> None:
    """Start servers as much at the same time as possible; format HDFS if that was never done."""
    chosen = list(servers)
    for server in chosen:
        if server.kind == "kdc":  # all others ask it at their start
            start(directory, state, server, launcher)
            wait_ready(directory, server, READY_TIMEOUT_S)
    for server in chosen:
        if server.kind in {"zookeeper", "journalnode", "kafka"}:
            start(directory, state, server, launcher)
    if not state.formatted:
        progress("Formatting HDFS (once)")
        _format(directory, state, launcher)
    namenodes = [server for server in chosen if server.kind == "namenode"]
    for server in namenodes:
        start(directory, state, server, launcher)
    # A DataNode that connects just before its NameNode accepts registrations is refused, and sleeps for 5 s.
    # By the time it has come so far, a NameNode whose web server listens now is open.
    for server in namenodes:
        _wait(directory, server, functools.partial(hdfs.not_listening, server), READY_TIMEOUT_S)
    for server in chosen:
        if server.kind == "datanode":
            start(directory, state, server, launcher)


def _broker(directory: Directory, server: Server, launcher: Launcher) -> LaunchedProgram:
    configuration = kafka.configure(server, directory.data)
    classes = jars.kafka_classpath(launcher.java, launcher.progress)
    if not kafka.formatted(server, directory.data):
        launcher.run("format-kafka", kafka.formatting(configuration, classes))
    return kafka.program(configuration, classes)


def _start_centre(directory: Directory, state: State, server: Server) -> None:
    secured = Secured(state)
    secured.make()
    environment = {**os.environ, **secured.realm.environment}
    server.process = spawn(secured.realm.command(), environment, directory.log(server.name))
    directory.save(state)


def obstacle(server: Server) -> str | None:
    """Return what keeps a server from doing its part; None if nothing does."""
    if server.kind == "kafka":
        return kafka.not_ready(server)
    return zookeeper.not_ready(server) if server.kind == "zookeeper" else hdfs.not_ready(server)


def wait_ready(directory: Directory, server: Server, timeout_s: float) -> None:
    """Wait until a server does its part."""
    _wait(directory, server, lambda: obstacle(server), timeout_s)


def stop(servers: Iterable[Server]) -> None:
    """End servers politely, all at once; those that do not follow within 10 s are killed."""
    stopping = [server for server in servers if send(server.process, signal.SIGTERM)]
    for server in stopping:
        send(server.process, signal.SIGCONT)  # a paused process acts on SIGTERM only when it goes on
    for server in stopping:
        if not wait_gone(server.process, STOP_TIMEOUT_S):
            kill(server)


def kill(server: Server) -> None:
    send(server.process, signal.SIGKILL)
    if not wait_gone(server.process, KILL_TIMEOUT_S):
        raise SandboxError(f"{server.name} survived SIGKILL for {KILL_TIMEOUT_S:.0f} seconds.")


def _format(directory: Directory, state: State, launcher: Launcher) -> None:
    hadoop_conf.write(state, directory.conf)
    for journal in state.of("journalnode"):
        wait_ready(directory, journal, READY_TIMEOUT_S)
    first, *others = state.of("namenode")
    arguments = ("-format", "-nonInteractive", "-force")
    launcher.run("format", hadoop_conf.program(first, state, directory.data, directory.temporary, *arguments))
    names = hadoop_conf.name_directory(first, directory.data)
    for other in others:  # Hadoop's own way to set up a standby needs a running NameNode; copying is as good
        shutil.copytree(names, hadoop_conf.name_directory(other, directory.data), dirs_exist_ok=True)
    state.formatted = True
    directory.save(state)


def _wait(directory: Directory, server: Server, obstacle_now: Callable[[], str | None], timeout_s: float) -> None:
    log = directory.log(server.name)

    def still() -> str | None:
        if condition(server.process) == "down":
            raise SandboxError(f"{server.name} has ended; {last_lines(log)}")
        return obstacle_now()

    try:
        until(still, timeout_s, f"{server.name} is not ready")
    except TooLateError as error:
        raise SandboxError(f"{error} Here are {last_lines(log)}") from error


class ServerStatus(msgspec.Struct, frozen=True):
    """Status of one server."""

    name: str
    kind: Kind
    pid: int | None  # None if it is down
    port: int  # where clients reach it
    state: Condition
    role: str | None  # its own answer: active, standby, leader, follower, standalone, read-only; None without one


def status_of(server: Server, state: State) -> ServerStatus:
    """Look at a server, for some seconds at most."""
    now = condition(server.process)
    role = None
    if now == "up" and server.kind == "zookeeper":
        role = zookeeper.mode(server)
    elif now == "up" and server.kind == "namenode":
        role = hdfs.role(server, state)
    return ServerStatus(
        name=server.name,
        kind=server.kind,
        pid=server.process.pid if server.process is not None and now != "down" else None,
        port=next(iter(server.ports.values())),
        state=now,
        role=role,
    )
