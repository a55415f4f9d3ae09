"""Sandbox: starts, inspects, breaks and stops its servers."""

import contextlib
import getpass
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from ha.hosts.java import find_java
from ha.sandbox import hadoop_conf, hdfs, realm, servers, zookeeper
from ha.sandbox.jars import CONNECTOR, fetched
from ha.sandbox.launcher import Launcher
from ha.sandbox.polling import SandboxError, until
from ha.sandbox.ports import LOOPBACK
from ha.sandbox.secured import USER, Secured
from ha.sandbox.server_process import Condition, condition, send
from ha.sandbox.servers import KILL_TIMEOUT_S, READY_TIMEOUT_S, ServerStatus, status_of
from ha.sandbox.state import USUAL_TICKET_LIFE, Directory, Server, State, check_numbers, default_directory, new_state

_ROUNDS = 3  # rounds of ``up``: a NameNode that was paused and replaced ends itself only after it was resumed


def _silent(_message: str) -> None:
    """Ignore progress."""


class Sandbox:
    """Real ZooKeeper and HDFS servers that live in one directory, as processes of their own.

    Any number of objects, in any number of processes, may stand for the same sandbox: all they know is on disk.
    Every call has a time limit, and raises :class:`SandboxError` when it cannot keep its promise. Servers are named
    ``zookeeper-1``, ``journalnode-1``, ``namenode-1``, ``datanode-1``; other names are an error, too.
    """

    def __init__(self, directory: str | Path | None = None) -> None:
        self._directory = Directory(Path(directory) if directory is not None else default_directory())
        self._cached_launcher: Launcher | None = None

    @property
    def directory(self) -> Path:
        return self._directory.root

    def up(
        self,
        zookeepers: int | None = None,
        namenodes: int | None = None,
        progress: Callable[[str], None] = _silent,
        timeout_s: float = READY_TIMEOUT_S,
        *,
        secure: bool | None = None,
        ticket_life: int | None = None,
        kafka: bool = False,
    ) -> bool:
        """Start or resume what is not running, wait until everything serves; return whether anything had to be done."""
        # `zookeepers`: 1 or 3; None takes what the directory has already, else 1. `namenodes`: 1, or 2 with a shared
        # journal and no automatic failover; None as above. `progress`: is told each step in one sentence. `timeout_s`:
        # seconds that each server has to become ready. `secure`: whether the stores want to know who asks (Kerberos and
        # TLS); None as above. `ticket_life`: of a secure sandbox that is made: minutes that each ticket lasts; None is
        # a day. `kafka`: whether there is to be a Kafka broker as well; a sandbox that has one keeps it.
        check_numbers(zookeepers or 1, namenodes or 1)  # before anything is written
        with self._directory.locked():
            state = self._load_or_make(zookeepers, namenodes, secure, ticket_life)
            if kafka and not state.of("kafka"):
                state.add_kafka()
                self._directory.save(state)
            if _serves(state):
                return False
            for _ in range(_ROUNDS):
                self._repair(state, progress, timeout_s)
                if all(condition(server.process) == "up" for server in state.servers):
                    return True
            raise SandboxError(f"The servers in {self.directory} do not stay up; see {self._directory.logs}.")

    def down(self, *, wipe: bool = False) -> bool:
        """Stop all servers, and delete what the sandbox has made if told to; return whether any was running."""
        if self._directory.load() is None:
            return False
        with self._directory.locked():
            state = self._state()
            running = [server for server in state.servers if condition(server.process) != "down"]
            servers.stop(running)
            if wipe:
                self._directory.wipe()
            return bool(running)

    def status(self) -> list[ServerStatus]:
        """Return how each server is; empty if there is no sandbox in this directory."""
        state = self._directory.load()
        return [status_of(server, state) for server in state.servers] if state else []

    def environment(self, user: str = USER) -> dict[str, str]:
        """Return the environment variables that make clients use this sandbox."""
        # A secure sandbox has two users: the owner of the jobs, and :data:`ha.sandbox.secured.STRANGER`.
        state = self._state()
        port = "secure" if state.secured else "client"
        brokers = state.of("kafka")
        return {
            "HA_FILES": f"{hadoop_conf.filesystem(state)}/ha",
            "HA_ZOOKEEPER": _addresses(state.host, port, state.of("zookeeper")),
            "HADOOP_CONF_DIR": str(self._directory.conf),
            "HA_SANDBOX_WEBHDFS": f"{hadoop_conf.web_filesystem(state)}/ha",
            **(Secured(state).environment_of(user) if state.secured else {"HADOOP_USER_NAME": state.user}),
            **(_kafka_environment(brokers) if brokers else {}),
        }

    def names(self, kind: str = "") -> list[str]:
        """Return the names of the servers of a kind, or of all, in the order in which they start."""
        return [server.name for server in self._state().servers if kind in ("", server.kind)]

    def start(self, name: str) -> None:
        """Start a server that is down, on its old ports and data; does not wait until it serves."""
        with self._changing() as state:
            server = state.named(name)
            if condition(server.process) != "down":
                raise SandboxError(f"{name} is running already.")
            servers.start(self._directory, state, server, self._launcher(state))

    def stop(self, name: str) -> None:
        """End a server politely (SIGTERM, after 10 s SIGKILL); fine if it is down already."""
        with self._changing() as state:
            servers.stop([state.named(name)])

    def kill(self, name: str) -> None:
        """End a server at once (SIGKILL); fine if it is down already."""
        with self._changing() as state:
            servers.kill(state.named(name))

    def pause(self, name: str) -> None:
        """Stop a server's clock (SIGSTOP): it keeps its connections and answers nothing."""
        self._signal(name, signal.SIGSTOP, "paused")

    def resume(self, name: str) -> None:
        """Resume a paused server (SIGCONT)."""
        self._signal(name, signal.SIGCONT, "up")

    def wait_ready(self, name: str, timeout_s: float = READY_TIMEOUT_S) -> None:
        state = self._state()
        server = state.named(name)
        servers.wait_ready(self._directory, server, timeout_s)
        if state.secured and server.kind == "namenode":  # its page, which would say it, wants a login
            until(lambda: self._in_safe_mode(state, server), timeout_s, f"{name} is not ready")

    def wipe_zookeeper(self) -> None:
        """Stop all ZooKeeper servers, delete what they hold, start them again and wait until they serve."""
        with self._changing() as state:
            ensemble = state.of("zookeeper")
            servers.stop(ensemble)
            for server in ensemble:
                shutil.rmtree(self._directory.data / server.name, ignore_errors=True)
            servers.start_all(self._directory, state, ensemble, self._launcher(state), _silent)
            for server in ensemble:
                servers.wait_ready(self._directory, server, READY_TIMEOUT_S)

    def zookeeper_leader(self) -> str:
        """Return the name of the ZooKeeper server that leads the ensemble."""
        for each in self._state().of("zookeeper"):
            if zookeeper.mode(each) == "leader":
                return each.name
        raise SandboxError("No ZooKeeper server leads.")

    def active_namenode(self) -> str | None:
        """Return the name of the active NameNode; None if none of them answers that it is."""
        active = hdfs.active_namenode(self._state())
        return active.name if active is not None else None

    def failover(self, to: str) -> None:
        """Make a NameNode the active one, whatever the other one does; return when it takes writes."""
        with self._changing() as state:
            target = state.named(to)
            other = next((each for each in state.of("namenode") if each.name != to), None)
            if target.kind != "namenode" or other is None:
                raise SandboxError(f"{to} is not one of two NameNodes.")
            if hdfs.role(target, state) != hdfs.ACTIVE:
                identities = (hadoop_conf.namenode_id(other), hadoop_conf.namenode_id(target))
                self._administer(state, "failover", "DFSHAAdmin", "-failover", *identities)
            until(lambda: hdfs.not_writable(target, state), READY_TIMEOUT_S, f"{to} does not take writes")

    def safe_mode(self, on: bool) -> None:
        """Make the active NameNode refuse all writes, or accept them again."""
        with self._changing() as state:
            self._safe_mode(state, on)

    def tickets(self, user: str = USER) -> int:
        """Return how many tickets a user of a secure sandbox has been given until now, by the centre's log."""
        log = self._directory.log("kdc-1")
        return len(re.findall(rf"AS_REQ .*ISSUE: .* {user}@", log.read_text(encoding="utf-8", errors="replace")))

    def edits(self) -> list[str]:
        """Return what HDFS has executed until now, in that order: its edit log, one XML document for each segment."""
        state = self._state()
        return hdfs.read_edits(state, self._directory.data, self._launcher(state))

    # The following methods work on a state that the caller has locked.

    def _repair(self, state: State, progress: Callable[[str], None], timeout_s: float) -> None:
        launcher = self._launcher(state, progress)
        paused = [server for server in state.servers if condition(server.process) == "paused"]
        for server in paused:
            progress(f"Resuming {server.name}")
            send(server.process, signal.SIGCONT)
        missing = [server for server in state.servers if condition(server.process) == "down"]
        if missing:
            progress(f"Starting {', '.join(server.name for server in missing)}")
            servers.start_all(self._directory, state, missing, launcher, progress)
        if hdfs.was_put_in_safe_mode(state):
            progress("Leaving safe mode")
            self._safe_mode(state, on=False)
        progress("Waiting until everything serves")
        for server in state.servers:
            try:
                servers.wait_ready(self._directory, server, timeout_s)
            except SandboxError:
                if server not in paused or condition(server.process) != "down":
                    raise
                return  # it may end itself because of what it missed: the next round starts it again
        if hdfs.active_namenode(state) is None:
            first = state.of("namenode")[0]
            progress(f"Making {first.name} active")
            identity = hadoop_conf.namenode_id(first)
            self._administer(state, "activate", "DFSHAAdmin", "-transitionToActive", identity)
        until(lambda: hdfs.no_writes(state), timeout_s, "HDFS takes no writes")
        launcher.prepare_faster_starts(progress)

    def _safe_mode(self, state: State, on: bool) -> None:
        namenode = hdfs.active_namenode(state)
        if namenode is None:
            raise SandboxError("No NameNode is active.")
        address, word = hadoop_conf.address(namenode, state), "enter" if on else "leave"
        said = self._administer(state, "safemode", "DFSAdmin", "-fs", address, "-safemode", word)
        if f"Safe mode is {'ON' if on else 'OFF'}" not in said:
            raise SandboxError(f"{namenode.name} did not {word} safe mode.")

    def _in_safe_mode(self, state: State, namenode: Server) -> str | None:
        tool = ("DFSAdmin", "-fs", hadoop_conf.address(namenode, state), "-safemode", "get")
        return None if "Safe mode is OFF" in self._administer(state, "safemode", *tool) else "it is in safe mode"

    def _administer(self, state: State, name: str, tool: str, *arguments: str) -> str:
        """Run one of Hadoop's tools as the superuser; return what it said."""
        variables = Secured(state).superuser() if state.secured else None
        return self._launcher(state).run(name, hadoop_conf.administration(tool, *arguments), variables)

    def _state(self) -> State:
        state = self._directory.load()
        if state is None:
            raise SandboxError(f"There is no sandbox in {self.directory}: ha lab sandbox up makes one.")
        return state

    def _load_or_make(
        self, zookeepers: int | None, namenodes: int | None, secure: bool | None, ticket_life: int | None
    ) -> State:
        state = self._directory.load()
        if state is None:
            self._directory.check_unused()
            if secure and (reason := realm.missing()):
                raise SandboxError(reason)
            folder = str(self._directory.data / "secured") if secure else ""
            state = new_state(_user(), zookeepers or 1, namenodes or 1, folder, ticket_life or USUAL_TICKET_LIFE)
            self._directory.save(state)
        if secure is not None and secure != bool(state.secured):
            raise self._made_otherwise(f"was made {'without' if secure else 'with'} --secure")
        if ticket_life not in {None, state.ticket_life}:
            raise self._made_otherwise(f"has tickets of {state.ticket_life} minutes, not {ticket_life}")
        wanted_servers = (("ZooKeeper server", "zookeeper", zookeepers), ("NameNode", "namenode", namenodes))
        for word, kind, wanted in wanted_servers:
            there = sum(server.kind == kind for server in state.servers)
            if wanted is not None and wanted != there:
                raise self._made_otherwise(f"has {there} {word}(s), not {wanted}")
        self._directory.make(private=bool(state.secured))
        return state

    def _made_otherwise(self, how: str) -> SandboxError:
        hint = "take it down with --wipe first, or use another directory"
        return SandboxError(f"The sandbox in {self.directory} {how}: {hint}.")

    def _launcher(self, state: State, progress: Callable[[str], None] = _silent) -> Launcher:
        if self._cached_launcher is None:
            properties = Secured(state).properties if state.secured else {}
            self._cached_launcher = Launcher(self._directory, state.user, progress, properties)
        return self._cached_launcher

    @contextlib.contextmanager
    def _changing(self) -> Iterator[State]:
        self._state()  # a directory without a sandbox stays as it is
        with self._directory.locked():
            yield self._state()

    def _signal(self, name: str, number: signal.Signals, expected: Condition) -> None:
        with self._changing() as state:
            server = state.named(name)
            if not send(server.process, number):
                raise SandboxError(f"{name} is down.")

            def obstacle() -> str | None:
                now = condition(server.process)
                return None if now == expected else f"it is {now}"

            until(obstacle, KILL_TIMEOUT_S, f"{name} does not follow {number.name}")


def _addresses(host: str, port: str, servers: list[Server]) -> str:
    return ",".join(f"{host}:{server.ports[port]}" for server in servers)


def _kafka_environment(brokers: list[Server]) -> dict[str, str]:
    jars = fetched(CONNECTOR, find_java().path, _silent)
    return {
        "HA_SANDBOX_KAFKA": _addresses(LOOPBACK, "broker", brokers),
        "HA_SANDBOX_KAFKA_JARS": ",".join(map(str, jars)),
    }


def _serves(state: State) -> bool:
    ready = all(condition(server.process) == "up" and servers.obstacle(server) is None for server in state.servers)
    return ready and hdfs.no_writes(state) is None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the user of a container may have no name
        return f"uid{os.getuid()}"
