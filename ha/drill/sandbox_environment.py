"""Sandbox environment: servers and members are processes of this host."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import ha
from ha.drill import kill
from ha.drill.environment import Ability, DrillError, Environment, Member, ProgramFailed, Strike
from ha.sandbox import Sandbox
from ha.sandbox.secured import STRANGER

ENSEMBLE = 3
NAMENODES = 2

NO_CREDENTIALS = {
    "HA_KERBEROS_KEYTAB": "",
    "HA_KERBEROS_PRINCIPAL": "",
    "HA_ZOOKEEPER_AUTH": "none",
    "HA_ZOOKEEPER_TLS_CERTIFICATE": "",
    "HA_ZOOKEEPER_TLS_KEY": "",
}


class Process(Member):
    """A member that is a process of this host, with everything below it."""

    def __init__(self, name: str, command: Sequence[str], variables: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self._log = folder / f"{name}.out"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=dict(variables), cwd=folder, stdout=log, stderr=log, start_new_session=True
            )
        self._below: list[int] = []

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        self._below += kill.descendants(self._process.pid)[1:]
        self._process.kill()
        self._process.wait()

    def strike(self, verb: Strike, kind: str) -> int:
        # Also below what a killed process has left.
        return next(filter(None, (kill.strike(verb, root, kind) for root in (self._process.pid, *self._below))), 0)

    def freeze(self) -> None:
        self._below = kill.descendants(self._process.pid)  # parents first: none of them sees another stand still
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        self._below += kill.descendants(self._process.pid)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: int) -> None:
        for pid in self._below:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue


class SandboxEnvironment(Environment):
    """Three ZooKeeper servers, two NameNodes with three JournalNodes, one DataNode, all on loopback."""

    name = "sandbox"
    abilities = frozenset({Ability.RETURN, Ability.CLUSTER})
    elsewhere = "a Docker engine and its containers can"

    def __init__(
        self, folder: Path, zookeepers: int = ENSEMBLE, namenodes: int = NAMENODES, *, secure: bool = False
    ) -> None:
        """Prepare; nothing runs yet. In a secure sandbox the stores ask for a login, by Kerberos and TLS."""
        self.closed = secure
        self.name = "secured sandbox" if secure else "sandbox"
        self.cluster: Sandbox = Sandbox(folder)
        self._zookeepers, self._namenodes = zookeepers, namenodes

    def up(self, say: Callable[[str], None]) -> None:
        self.cluster.up(self._zookeepers, self._namenodes, progress=say, secure=self.closed)

    def down(self) -> None:
        self.cluster.down(wipe=True)

    def variables(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HA_")}
        return {**inherited, **self.cluster.environment(), "PYSPARK_PYTHON": sys.executable}

    def second(self, folder: Path) -> Environment:
        return SandboxEnvironment(folder / "second", zookeepers=1, namenodes=1)

    @property
    def scratch(self) -> str:
        file_system = self.cluster.environment()["HA_FILES"].rsplit("/", 1)[0]
        return f"{file_system}/ha-tests/drills" if self.closed else f"{file_system}/drills"  # the root has no owner

    def member_path(self, path: Path) -> str:
        return str(path.absolute())

    def strangers(self) -> Mapping[str, Mapping[str, str]]:
        if not self.closed:
            return super().strangers()
        other = self.cluster.environment(STRANGER)  # another user of the realm; the other one has no credentials
        return {STRANGER: other, "nobody": {**other, **NO_CREDENTIALS}}

    def driver(self, program: str) -> str:
        return example(program)

    def start_member(
        self, name: str, command: Sequence[str], variables: Mapping[str, str], folder: Path, beside: str
    ) -> Member:
        del beside
        return Process(name, _translated(command), {**self.variables(), **variables}, folder)

    def call(self, command: Sequence[str], folder: Path, timeout: float) -> str:
        try:
            done = subprocess.run(
                _translated(command),
                env=self.variables(),
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=timeout,
                check=True,
            )
        except subprocess.TimeoutExpired:
            raise DrillError(f"{' '.join(command[:3])} took longer than {timeout:.0f} s.") from None
        except subprocess.CalledProcessError as error:
            raise ProgramFailed(command, error.returncode, error.stdout, error.stderr) from error
        return done.stdout


def example(program: str) -> str:
    """Return the path of an example that drills run: in the source tree, or where the distribution has put it."""
    package = Path(ha.__file__).parent
    for path in (package / "drill" / program, package.parent / "examples" / program):
        if path.exists():
            return str(path)
    raise DrillError(f"{program}, which drills run, is not there: reinstall hybrid-ha (looked in {package}).")


def _translated(command: Sequence[str]) -> list[str]:
    return [sys.executable if word == "python" else word for word in command]
