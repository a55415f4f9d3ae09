"""Member in a container of its own, and calls of the Docker engine."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import cast

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.models.containers import Container

from ha.drill.environment import DrillError, Member

PREFIX = "hybrid-ha-"
NETWORK = "hybrid-ha"
DISK = "/tmp"  # noqa: S108  # of the container

_KILL = ("python3", "-m", "ha.drill.kill", "1")
_KILL_MAIN = "kill -9 $(cat /proc/1/task/1/children)"  # init has one child: the main process


@contextmanager
def engine() -> Iterator[None]:
    """Turn an error of the Docker engine into one of the drill: it ends this drill, and none of the next ones.

    Also a decorator.

    Raises:
        DrillError: the engine refused a request, or does not answer.
    """
    try:
        yield
    except (DockerException, requests.RequestException) as error:
        raise DrillError(f"The Docker engine did not do its part: {error}") from error


class Contained(Member):
    """A container whose first process is an init, and whose second one is the member."""

    def __init__(self, name: str, container: Container, client: "docker.DockerClient") -> None:
        self.name = name
        self._container = container
        self._docker = client
        self._log = ""

    @property
    @engine()
    def running(self) -> bool:
        """Whether its main process has not ended."""
        return self._state() in {"running", "paused", "created"}

    @property
    @engine()
    def exit_code(self) -> int | None:
        """Exit code of its main process; None if it has not ended, or was removed."""
        return None if self._state() != "exited" else int(self._container.attrs["State"]["ExitCode"])

    def log(self) -> str:
        """Its output until now."""
        with suppress(NotFound, APIError):  # it was removed: return what was read last
            self._log = self._container.logs().decode(errors="replace")
        return self._log

    @engine()
    def kill(self) -> None:
        """SIGKILL its main process; the container ends with it."""
        self._container.exec_run(["sh", "-c", _KILL_MAIN])
        self._container.wait(timeout=30)

    @engine()
    def kill_child(self, kind: str) -> int:
        """SIGKILL the processes of a kind below it."""
        return int(executed(self._container, [*_KILL, kind, "kill"]))

    @engine()
    def freeze_child(self, kind: str) -> int:
        """SIGSTOP the processes of a kind below it."""
        return int(executed(self._container, [*_KILL, kind, "freeze"]))

    @engine()
    def expose_child(self, kind: str) -> int:
        """Make them the first that the kernel ends."""
        return int(executed(self._container, [*_KILL, kind, "expose"]))

    @engine()
    def freeze(self) -> None:
        """Stop the clocks of all its processes."""
        self._container.pause()

    @engine()
    def thaw(self) -> None:
        """Let all of its processes go on."""
        self._container.unpause()

    @engine()
    def lose(self) -> None:
        """Take the network away first, so that no dying process can tell anybody."""
        self._docker.networks.get(NETWORK).disconnect(self._container, force=True)
        self._container.kill()

    @engine()
    def fill_disk(self) -> None:
        """Leave no byte free where it writes."""
        self._container.exec_run(["sh", "-c", f"head -c 100G /dev/zero > {DISK}/full"])

    @engine()
    def clear_disk(self) -> None:
        """Undo ``fill_disk``."""
        self._container.exec_run(["rm", "-f", f"{DISK}/full"])

    @engine()
    def exhaust_memory(self) -> None:
        """Take all memory until the kernel has ended a process."""
        self._container.exec_run([*_KILL, "jvm", "exhaust"], detach=True)

    def end(self) -> None:
        """Leave nothing of it behind."""
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
    """Run a program in a container and return its output.

    Raises:
        DrillError: it failed.
    """
    code, output, errors = run_in(container, command)
    if code:
        raise DrillError(f"{' '.join(command)} failed with {code}: {(errors or output).strip()[-300:]}")
    return output


def run_in(container: Container, command: Sequence[str]) -> tuple[int, str, str]:
    """Run a program in a container; return its exit code, its output and its errors."""
    code, streams = container.exec_run(list(command), demux=True)
    output, errors = cast("tuple[bytes | None, bytes | None]", streams)
    return int(code or 0), (output or b"").decode(), (errors or b"").decode()
