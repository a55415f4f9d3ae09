"""Containers: a drill's member in one of its own, and the stack of the compose file's servers for one folder.

The names of a stack, its volumes, ports and network are its own, so those of ``make up`` and of other folders are not
touched.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from ipaddress import IPv4Network
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, cast

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container

import ha
from ha.drill.environment import DrillError, Member, Strike
from store.clock import now, wall

T = TypeVar("T")

DISK = "/tmp"  # noqa: S108  # of the container

_KILL = ("python3", "-m", "ha.drill.kill")
# Init has one child, the main process. The shell lives until the container has ended. If it ended by itself, it would
# wake containerd, which notes the time first and then collects whatever has ended by then.
_KILL_MAIN = "kill -9 $(cat /proc/1/task/1/children); exec sleep 30"

FILES = ("compose.yaml", "compose.clocks.yaml")
NETS = tuple(f"172.29.{number}" for number in range(84, 256))
"""Beginnings of addresses: the network of a stack has one of these, and that of ``make up`` none."""

UP_LIMIT_S = 240.0


@contextmanager
def engine() -> Iterator[None]:
    """Turn an error of the Docker engine into one of the drill: it ends this drill, and none of the next ones."""
    # Also a decorator.
    try:
        yield
    except (DockerException, requests.RequestException) as error:
        raise DrillError(f"The Docker engine did not do its part: {error}") from error


def on_engine(kind: type[T]) -> type[T]:
    """Have each public method of a class raise errors of the engine as :func:`engine` does."""
    for name, method in vars(kind).items():
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(kind, name, engine()(method))
    return kind


@on_engine
class Contained(Member):
    """A container whose first process is an init, and whose second one is the member."""

    def __init__(self, name: str, container: Container, client: "docker.DockerClient") -> None:
        self.name = name
        self._container = container
        self._docker = client
        self._log = ""

    @property
    def running(self) -> bool:
        return self._state() in {"running", "paused", "created"}

    @property
    def exit_code(self) -> int | None:
        return None if self._state() != "exited" else int(self._container.attrs["State"]["ExitCode"])

    def ended_at(self) -> float:
        """Return when its last process has ended, by the engine's note: it answers much later."""
        if self._state() != "exited":
            return now()
        return now() - wall() + datetime.fromisoformat(self._container.attrs["State"]["FinishedAt"]).timestamp()

    def log(self) -> str:
        with suppress(NotFound, APIError):  # it was removed: return what was read last
            self._log = self._container.logs().decode(errors="replace")
        return self._log

    def kill(self) -> None:
        self._container.exec_run(["sh", "-c", _KILL_MAIN])
        self._container.wait(timeout=30)

    def strike(self, verb: Strike, kind: str) -> int:
        return int(executed(self._container, [*_KILL, verb, "1", kind]))

    def freeze(self) -> None:
        self._container.pause()

    def thaw(self) -> None:
        self._container.unpause()

    def lose(self) -> None:
        # First, so that no dying process can tell anybody.
        for network in self._container.attrs["NetworkSettings"]["Networks"]:
            self._docker.networks.get(network).disconnect(self._container, force=True)
        self._container.kill()

    def fill_disk(self) -> None:
        self._container.exec_run(["sh", "-c", f"head -c 100G /dev/zero > {DISK}/full"])

    def clear_disk(self) -> None:
        self._container.exec_run(["rm", "-f", f"{DISK}/full"])

    def exhaust_memory(self) -> None:
        self._container.exec_run([*_KILL, "exhaust", "1", "jvm"], detach=True)

    def end(self) -> None:
        self.log()
        try:
            if self._state() == "paused":
                self._container.unpause()
            self._container.remove(force=True)
        except (NotFound, APIError):
            return

    def _state(self) -> str:
        try:
            self._container.reload()
        except NotFound:
            return "removed"
        return str(self._container.status)


def executed(container: Container, command: Sequence[str]) -> str:
    """Run a program in a container and return its output."""
    code, output, errors = run_in(container, command)
    if code:
        raise DrillError(f"{' '.join(command)} failed with {code}: {(errors or output).strip()[-300:]}")
    return output


def run_in(container: Container, command: Sequence[str]) -> tuple[int, str, str]:
    """Run a program in a container; return its exit code, its output and its errors."""
    code, streams = container.exec_run(list(command), demux=True)
    output, errors = cast("tuple[bytes | None, bytes | None]", streams)
    return int(code or 0), (output or b"").decode(), (errors or b"").decode()


def compose_folder() -> Path:
    """Return the folder of the compose files: ``HA_COMPOSE``, or the one of the source tree."""
    given = os.environ.get("HA_COMPOSE")
    found = Path(given) if given else Path(ha.__file__).parent.parent / "docker"
    if not (found / "compose.yaml").exists():
        raise DrillError(f"There is no compose.yaml in {found}: set HA_COMPOSE to the folder `docker` of the sources.")
    return found


class Stack:
    """Servers for the drills of one folder; the same folder finds them again."""

    def __init__(self, folder: Path, networks: Callable[[], Iterable[Any]]) -> None:
        """Ask for nothing yet; ``networks`` returns the networks of the engine."""
        self.name = f"hybrid-ha-drill-{hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:6]}"
        self.clocks = folder / "clocks"
        self.net = NETS[0]
        self._networks = networks

    def nets(self) -> Iterator[str]:
        """Yield the network of the stack if it is there, else each one with free addresses."""
        there = {each.name: each.attrs["IPAM"]["Config"] or () for each in self._networks()}
        for net in NETS:
            ours = IPv4Network(f"{net}.0/24")
            names = {name for name, parts in there.items() if any(_overlap(ours, each["Subnet"]) for each in parts)}
            if names == {self.name} or not (names or self.name in there):
                yield net

    def up(self, services: Sequence[str]) -> None:
        """Create and start services, in a network of their own."""
        for net in self.nets():
            self.net = net
            try:
                return self._compose(["up", "-d", "--no-build", *services])
            except DrillError:
                if net in self.nets():
                    raise  # it was not taken meanwhile
        raise DrillError(
            f"The networks {NETS[0]}.* to {NETS[-1]}.* are taken: `docker network prune` removes old ones."
        )

    def down(self) -> None:
        """Remove the servers, and their data."""
        self._compose(["down", "--volumes", "--remove-orphans", "--timeout", "5"])

    def arguments(self) -> list[str]:
        """Return the options of Compose that make it speak of these servers, and of nothing else."""
        return ["--project-name", self.name, *(part for name in FILES for part in ("-f", str(compose_folder() / name)))]

    def variables(self) -> dict[str, str]:
        return {"HA_CLOCKS": str(self.clocks), "HA_STACK": self.name, "HA_PUBLISHED": "", "HA_NET": self.net}

    def _compose(self, what: Sequence[str]) -> None:
        try:
            done = subprocess.run(
                [*compose_command(), *self.arguments(), *what],
                cwd=compose_folder(),
                env={**os.environ, **self.variables()},
                capture_output=True,
                text=True,
                timeout=UP_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise DrillError(f"Compose took longer than {UP_LIMIT_S:.0f} s to {what[0]}.") from None
        if done.returncode:
            raise DrillError(f"Compose failed to {what[0]}: {done.stderr.strip()[-500:]}")


def _overlap(ours: IPv4Network, other: str) -> bool:
    return ":" not in other and ours.overlaps(IPv4Network(other))


def compose_command() -> list[str]:
    """Return the command of Compose: the engine's plugin, or the program of its first version."""
    plugin = ["docker", "compose"]
    if (
        shutil.which("docker")
        and subprocess.run([*plugin, "version"], capture_output=True, check=False).returncode == 0
    ):
        return plugin
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    raise DrillError("Docker Compose is not there: install the plugin, or Debian's docker-compose.")
