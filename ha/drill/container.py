"""A member in a container of its own."""

from collections.abc import Sequence
from contextlib import suppress
from typing import cast

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from ha.drill.engine import engine
from ha.drill.ground import DrillError, Member

PREFIX = "hybrid-ha-"
NETWORK = "hybrid-ha"
DISK = "/tmp"  # noqa: S108  # of the container

_KILL_MAIN = "kill -9 $(cat /proc/1/task/1/children)"  # of init there is one child: the main process


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
        """What its main process ended with; None if it has not ended, or was removed."""
        return None if self._state() != "exited" else int(self._container.attrs["State"]["ExitCode"])

    def log(self) -> str:
        """What it has printed until now."""
        with suppress(NotFound, APIError):  # removed: what was read last
            self._log = self._container.logs().decode(errors="replace")
        return self._log

    @engine()
    def kill(self) -> None:
        """SIGKILL its main process; the container ends with it."""
        self._container.exec_run(["sh", "-c", _KILL_MAIN])
        self._container.wait(timeout=30)

    @engine()
    def strike(self, what: str, verb: str = "kill") -> int:
        """Do something to a process below it."""
        said = executed(self._container, ["python3", "-m", "ha.drill.programs.strike", "1", what, verb])
        return int(said.strip() or 0)

    @engine()
    def freeze(self) -> None:
        """Stop the clocks of all its processes."""
        self._container.pause()

    @engine()
    def thaw(self) -> None:
        """Let all of them go on."""
        self._container.unpause()

    @engine()
    def lose(self) -> None:
        """Take the network away first: what dies afterwards cannot say so to anybody."""
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
        """Take all the memory there is, until the kernel has ended a process."""
        self._container.exec_run(["python3", "-m", "ha.drill.programs.exhaust"], detach=True)

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
    """Run a program in a container and return what it printed.

    Raises:
        DrillError: it failed.
    """
    code, said, complained = run_in(container, command)
    if code:
        raise DrillError(f"{' '.join(command)} failed with {code}: {(complained or said).strip()[-300:]}")
    return said


def run_in(container: Container, command: Sequence[str]) -> tuple[int, str, str]:
    """Run a program in a container; return its exit code, what it printed, and what it complained of."""
    code, streams = container.exec_run(list(command), demux=True)
    said, complained = cast("tuple[bytes | None, bytes | None]", streams)
    return int(code or 0), (said or b"").decode(), (complained or b"").decode()
