"""Member in a container of its own, and calls of the Docker engine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from types import FunctionType
from typing import TypeVar, cast

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container

from ha.drill.environment import DrillError, Member, Strike
from store.clock import now, wall

T = TypeVar("T")

DISK = "/tmp"  # noqa: S108  # of the container

_KILL = ("python3", "-m", "ha.drill.kill")
# Init has one child, the main process. The shell lives until the container has ended. If it ended by itself, it would
# wake containerd, which notes the time first and then collects whatever has ended by then.
_KILL_MAIN = "kill -9 $(cat /proc/1/task/1/children); exec sleep 30"


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
