"""Container environment: the servers of the compose file; networks are cut, hosts are lost, clocks are shifted."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container

from ha.drill.container import Contained, Stack, executed, on_engine, run_in
from ha.drill.environment import Ability, DrillError, Environment, Member, ProgramFailed, Side
from ha.sandbox.hdfs import bean
from ha.sandbox.polling import until

MEMBER_IMAGE = "hybrid-ha/sidecar"
NETWORK_IMAGE = "hybrid-ha/network"
SHARED = "/drill"
INSTALLED = "/opt/hybrid-ha"
EXAMPLES = f"{INSTALLED}/examples"

NOWHERE = "192.0.2.1"  # an address that no host has (RFC 5737)

READY_LIMIT_S = 150.0
CALL_LIMIT_S = 60

# For each member: its memory, and a tmpfs for everything that it writes.
MEMORY = "1700m"
DISK = "400m"

ASK = "exec 3<>/dev/tcp/127.0.0.1/2181; echo -n srvr >&3; cat <&3"

KINDS = {"zookeeper": 3, "journalnode": 3, "namenode": 2, "datanode": 2}
WEB_PORT = "9870/tcp"  # of a NameNode; the host's port is any that was free

IDENTITIES = {"namenode-1": "nn1", "namenode-2": "nn2"}


@on_engine
class ContainerEnvironment(Environment):
    """Three ZooKeeper servers, two NameNodes with three JournalNodes, two DataNodes, each in its container."""

    name = "containers"
    elsewhere = "use the sandbox, or a host whose kernel lets containers filter packets"

    def __init__(self, folder: Path, packages: Sequence[Path] = ()) -> None:
        # Members see ``folder``, which all drills share, as ``/drill``. They get the Python packages in ``packages``
        # besides this project's own, which the images have.
        self.folder = folder.absolute()
        self.cluster = self
        self._packages = [package.absolute() for package in packages]
        self._members: dict[str, Contained] = {}
        self._broken: set[str] = set()
        self._shifted: set[str] = set()
        _check_engine()
        try:
            self._docker = docker.from_env(timeout=CALL_LIMIT_S)
            self._image = self._docker.images.get(MEMBER_IMAGE).attrs
        except NotFound:
            raise DrillError("The images are not there: build them with `make images`.") from None
        except DockerException as error:
            raise DrillError(f"No Docker engine answers ({error}): start one with docker/engine.") from error
        self.stack = Stack(self.folder, self._docker.networks.list)
        self._prefix = f"{self.stack.name}-"
        self._ours = f"^/?{self._prefix}"
        # A container ends with its first process, so nothing outlives a sidecar there.
        lacks = {Ability.RETURN} if self._filters_packets() else {Ability.RETURN, Ability.NETWORK}
        self.abilities = frozenset(Ability) - lacks

    # --- as a whole

    def up(self, say: Callable[[str], None]) -> None:
        self.stack.clocks.mkdir(parents=True, exist_ok=True)
        self.stack.clocks.chmod(0o777)
        for who in sorted(self._broken):
            self.mend(who)
        for who in sorted(self._shifted):
            self.shift_clock(who, 0.0)
        self._sweep()
        wanted = [server for kind in KINDS for server in self.names(kind)]
        for container in self._docker.containers.list(filters={"status": "paused", "name": self._ours}):
            container.unpause()
        if self._not_well(wanted):
            say("Starting the servers' containers")
            self.stack.up(wanted)
        until(lambda: ", ".join(self._not_well(wanted)) or None, READY_LIMIT_S, "Not well, see `docker logs`,")
        active = self.active_namenode()
        if not active:
            self.failover("namenode-1")
        elif self._safe(active):
            self.safe_mode(on=False)

    def down(self) -> None:
        for member in list(self._members.values()):
            member.end()
        self._sweep()
        self.stack.down()

    def variables(self) -> dict[str, str]:
        return dict(each.split("=", 1) for each in self._image["Config"]["Env"])

    @property
    def scratch(self) -> str:
        return f"{self.variables()['HA_FILES'].rsplit('/', 1)[0]}/drills"

    def member_path(self, path: Path) -> str:
        return f"{SHARED}/{path.absolute().relative_to(self.folder)}"

    def driver(self, program: str) -> str:
        return f"{EXAMPLES}/{program}"

    # --- members

    def start_member(
        self, name: str, command: Sequence[str], variables: Mapping[str, str], folder: Path, beside: str
    ) -> Member:
        self._let_in(folder)
        clock = {"LD_PRELOAD": "/usr/local/lib/clock.so", "CLOCK_OFFSET_FILE": f"/clocks/{name}"}
        container = self._run(name, command, {**clock, **variables}, beside)
        member = Contained(name, container, self._docker)
        self._members[name] = member
        return member

    def call(self, command: Sequence[str], folder: Path, timeout: float) -> str:
        del folder
        container = self._run("call", command, {})
        try:
            code = container.wait(timeout=timeout)["StatusCode"]
            output = container.logs(stdout=True, stderr=False).decode()
            if code:
                raise ProgramFailed(command, code, output, container.logs(stdout=False, stderr=True).decode())
        except (APIError, OSError) as error:
            raise DrillError(f"{' '.join(command[:3])} took longer than {timeout:.0f} s: {error}") from error
        finally:
            container.remove(force=True)
        return output

    def hosts(self) -> list[str]:
        found = self._docker.containers.list(filters={"name": self._ours})
        return sorted((each.name or "").removeprefix(self._prefix).removeprefix("member-") for each in found)

    # --- servers

    def names(self, kind: str) -> list[str]:
        return [f"{kind}-{number}" for number in range(1, KINDS[kind] + 1)]

    def stop(self, name: str) -> None:
        self._container(name).stop(timeout=10)

    def kill(self, name: str) -> None:
        self._container(name).kill()

    def start(self, name: str) -> None:
        self._container(name).start()

    def pause(self, name: str) -> None:
        self._container(name).pause()

    def resume(self, name: str) -> None:
        self._container(name).unpause()

    def wait_ready(self, name: str) -> None:
        def obstacle() -> str | None:
            return "see `docker logs`" if self._container(name).exec_run("health").exit_code else None

        until(obstacle, READY_LIMIT_S, f"{name} does not serve")

    def zookeeper_leader(self) -> str:
        for server in self.names("zookeeper"):
            _, output, _ = run_in(self._container(server), ["bash", "-c", ASK])
            if "Mode: leader" in output:
                return server
        raise DrillError("No ZooKeeper server leads.")

    def wipe_zookeeper(self) -> None:
        servers = self.names("zookeeper")
        for server in servers:
            self.kill(server)
        for server in servers:
            self._docker.containers.run(
                "hybrid-ha/zookeeper",
                ["-c", "rm -rf /data/*"],
                entrypoint="sh",
                volumes_from=[self._prefix + server],
                remove=True,
                network_mode="none",
            )
        for server in servers:
            self.start(server)
        for server in servers:
            self.wait_ready(server)

    def active_namenode(self) -> str | None:
        for server in self.names("namenode"):
            if self._bean(server, "NameNodeStatus").get("State") == "active":
                return server
        return None

    def failover(self, to: str) -> None:
        other = next(each for each in IDENTITIES if each != to)
        switch = ["hdfs", "haadmin", "-failover", IDENTITIES[other], IDENTITIES[to]]

        def obstacle() -> str | None:
            if self._bean(to, "NameNodeStatus").get("State") == "active":
                return "it does not leave safe mode" if self._safe(to) else None
            code, _, errors = run_in(self._container(to), switch)
            return f"exit code {code}, {errors.strip()[-300:]}"

        until(obstacle, READY_LIMIT_S, f"{to} cannot take over")

    def safe_mode(self, on: bool) -> None:
        active = self.active_namenode()
        if not active:
            raise DrillError("No NameNode is active.")
        verb = "enter" if on else "leave"
        executed(self._container(active), ["hdfs", "dfsadmin", "-fs", f"hdfs://{active}:8020", "-safemode", verb])

    def edits(self) -> list[str]:
        texts = []
        for server in self.names("journalnode"):  # of all, because one that was down has gaps
            output = executed(self._container(server), ["edits-xml", "--no-roll"])
            texts += [f"<?xml{part}" for part in output.split("<?xml")[1:]]
        return texts

    # --- networks and clocks

    def cut(self, who: str, others: Sequence[str], side: Side = "both") -> None:
        self._broken.add(who)
        self._on_network(who, ["cut", side, *map(self._address, others)])

    def degrade(self, who: str, delay: float, loss: float) -> None:
        self._broken.add(who)
        how = ["degrade", "--delay-ms", f"{delay * 1000:.0f}", "--loss", f"{loss:g}"]
        self._on_network(who, how, f"{self._prefix}network-{who}")

    def mend(self, who: str) -> None:
        self._broken.discard(who)
        with suppress(NotFound):
            self._docker.containers.get(f"{self._prefix}network-{who}").remove(force=True)
        try:
            if self._container(who).status == "running":
                self._on_network(who, ["mend"])
        except DrillError:
            return  # the container is gone, and its network with it

    def shift_clock(self, who: str, seconds: float) -> None:
        self._shifted.add(who)
        (self.stack.clocks / who).write_text(f"{seconds:+g}\n", encoding="ascii")

    # ---

    def _container(self, who: str) -> Container:
        for name in (self._prefix + who, f"{self._prefix}member-{who}"):
            try:
                return self._docker.containers.get(name)
            except NotFound:
                continue
        raise DrillError(f"There is no container of {who}.")

    def _address(self, who: str) -> str:
        return str(self._container(who).attrs["NetworkSettings"]["Networks"][self.stack.name]["IPAddress"])

    def _not_well(self, servers: Sequence[str]) -> list[str]:
        found = {each.name: each for each in self._docker.containers.list(filters={"name": self._ours})}
        return [each for each in servers if not _healthy(found.get(self._prefix + each))]

    def _safe(self, namenode: str) -> bool:
        return self._bean(namenode, "FSNamesystemState").get("FSState") != "Operational"

    def _bean(self, namenode: str, name: str) -> dict[str, Any]:
        published = self._container(namenode).attrs["NetworkSettings"]["Ports"].get(WEB_PORT)
        return bean(int(published[0]["HostPort"]), "NameNode", name) if published else {}

    def _hosts(self) -> dict[str, str]:
        given = self._container("namenode-1").attrs["HostConfig"]["ExtraHosts"]
        return dict(each.split(":", 1) for each in given)

    def _host(self, name: str, beside: str) -> dict[str, Any]:
        """Options that make a container a host, or a part of another: the network and the shared memory."""
        if not beside:
            return {"network": self.stack.name, "hostname": name, "extra_hosts": self._hosts(), "ipc_mode": "shareable"}
        other = f"container:{self._container(beside).id}"
        return {"network_mode": other, "ipc_mode": other}

    def _run(self, name: str, command: Sequence[str], variables: Mapping[str, str], beside: str = "") -> Container:
        words = ["python3" if word == "python" else word for word in command]
        packages = [f"{package}:{INSTALLED}/{package.name}:ro" for package in self._packages]
        with suppress(NotFound):
            self._docker.containers.get(f"{self._prefix}member-{name}").remove(force=True)
        return self._docker.containers.run(
            MEMBER_IMAGE,
            words,
            name=f"{self._prefix}member-{name}",
            entrypoint=["tini", "--"],
            environment={**variables, **({"PYTHONPATH": INSTALLED} if self._packages else {})},
            volumes=[f"{self.folder}:{SHARED}", f"{self.stack.clocks}:/clocks:ro", *packages],
            tmpfs={"/tmp": f"size={DISK},mode=1777,exec"},  # noqa: S108  # of the container
            mem_limit=MEMORY,
            memswap_limit=MEMORY,
            healthcheck={"test": ["NONE"]},
            detach=True,
            **self._host(name, beside),
        )

    def _on_network(self, who: str, command: Sequence[str], name: str = "") -> None:
        """Run the program that breaks networks beside a container; one with a name runs until it is removed."""
        beside = f"container:{self._container(who).id}"
        allowed, run, words = ["NET_ADMIN"], self._docker.containers.run, list(command)
        try:
            if name:
                run(NETWORK_IMAGE, words, name=name, network_mode=beside, cap_add=allowed, detach=True)
            else:
                run(NETWORK_IMAGE, words, network_mode=beside, cap_add=allowed, remove=True)
        except DockerException as error:
            raise DrillError(f"The network of {who} cannot be changed: {error}") from error

    def _let_in(self, folder: Path) -> None:
        """Let members, which are another user, reach their folder below the folder of all drills."""
        for each in (folder.absolute(), *folder.absolute().parents):
            each.chmod(each.stat().st_mode | 0o055)
            if each == self.folder:
                return

    def _filters_packets(self) -> bool:
        """Whether the kernel lets a container filter packets: tried in a network that leads nowhere."""
        command = ["cut", "both", NOWHERE]
        try:
            self._docker.containers.run(NETWORK_IMAGE, command, network_mode="none", cap_add=["NET_ADMIN"], remove=True)
        except DockerException:
            return False
        return True

    def _sweep(self) -> None:
        """Remove the members of earlier drills of this folder."""
        for container in self._docker.containers.list(all=True, filters={"name": f"{self._ours}(member|network)-"}):
            container.remove(force=True)
        self._members.clear()


def _check_engine() -> None:
    """Raise unless something listens at the engine's socket; Docker's own client would leave a socket open."""
    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not host.startswith("unix://"):
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(host.removeprefix("unix://"))
        except OSError as error:
            raise DrillError(
                f"No Docker engine answers at {host} ({error.strerror}): start one with docker/engine."
            ) from error


def _healthy(container: Container | None) -> bool:
    return container is not None and container.attrs["State"].get("Health", {}).get("Status") == "healthy"
