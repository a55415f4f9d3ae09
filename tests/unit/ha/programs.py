"""Real processes under test: each has its own directory, and all are ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

QUICK = {
    "HA_SHORT_TTL": "10",
    "HA_LONG_TTL": "60",
    "HA_SESSION_TIMEOUT": "12",
    "HA_HAND_OVER": "0.2",
    "HA_STOP_GRACE": "20",
    "HA_SNAPSHOTS": "off",
}
"""No agent, so that tests see each question to the stores, and leases that a stall of some seconds does not end.

A takeover is quick all the same if the leader gives its lease back, or if its process is seen to be gone.
"""

SHORT_LEASES = {"HA_SHORT_TTL": "2", "HA_LONG_TTL": "20", "HA_SESSION_TIMEOUT": "4"}
"""For a test that waits for the end of a lease: it is marked as timed."""

HA = (sys.executable, "-P", "-m", "ha.cli")


def _listen_to_interrupts() -> None:
    """Restore SIGINT: tests in the background have it ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Program:
    def __init__(self, command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> None:
        self.errors = directory / f"errors-{len(list(directory.iterdir()))}"
        self.output = directory / f"output-{len(list(directory.iterdir()))}"
        with self.errors.open("wb") as errors, self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                cwd=directory,
                env=dict(environment),
                stdout=output,
                stderr=errors,
                process_group=0,
                preexec_fn=_listen_to_interrupts,  # noqa: PLW1509  # it only sets a signal
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait(self, seconds: float = PATIENCE_S) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end; it said: {self.said}") from None

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def freeze(self) -> None:
        """Stop it, and wait until the kernel has done so: on a busy machine that takes some milliseconds."""
        self.send(signal.SIGSTOP)
        wait_until(lambda: _state(self.pid) == "T")

    @property
    def said(self) -> str:
        return self.errors.read_text()

    def until_said(self, text: str) -> None:
        wait_until(lambda: text in self.said or self.process.poll() is not None, what=f"said {text!r}")
        assert text in self.said, self.said

    def end(self) -> None:
        for number in (signal.SIGCONT, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
        self.process.wait(PATIENCE_S)


class Workplace:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.jobs = directory / "jobs"
        self.work = directory / "work"
        self.work.mkdir(parents=True)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HA_")}
        own = {"HA_FILES": self.jobs.as_uri(), "XDG_STATE_HOME": str(directory / "state")}
        self.environment = {**clean, **QUICK, **own, "PYTHONDONTWRITEBYTECODE": "1"}
        self.programs: list[Program] = []

    def start(self, *command: str, **environment: str) -> Program:
        program = Program(command, self.work, {**self.environment, **environment})
        self.programs.append(program)
        return program

    def ha(self, *arguments: str, **environment: str) -> Program:
        return self.start(*HA, *arguments, **environment)

    def end(self) -> None:
        for program in self.programs:
            program.end()


def alive(pid: int) -> bool:
    """Whether a process of that id runs; a zombie does not."""
    try:
        return _state(pid) not in {"Z", "X"}
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between opening and reading
        return False


def _state(pid: int) -> str:
    """Return the state of a process: field 3 of ``/proc/<pid>/stat``."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
