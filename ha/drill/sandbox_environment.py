"""Sandbox environment: servers and members are processes of this host."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import ha
from ha.drill import kill
from ha.drill.environment import Ability, DrillError, Environment, Member
from ha.sandbox import Sandbox, SandboxError
from ha.sandbox.secured import STRANGER

T = TypeVar("T")

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
        """Whether its main process has not ended."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Exit code of its main process."""
        return self._process.poll()

    def log(self) -> str:
        """Its output until now."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """SIGKILL its main process; the processes below it must end by themselves."""
        self._below += kill.descendants(self._process.pid)[1:]
        self._process.kill()
        self._process.wait()

    def kill_child(self, kind: str) -> int:
        """SIGKILL the processes of a kind below it, and below what it has left when it was killed."""
        return next(filter(None, (kill.kill(root, kind) for root in (self._process.pid, *self._below))), 0)

    def freeze_child(self, kind: str) -> int:
        """SIGSTOP the processes of a kind below it."""
        return kill.freeze(self._process.pid, kind)

    def expose_child(self, kind: str) -> int:
        """Make them the first that the kernel ends."""
        return kill.expose(self._process.pid, kind)

    def freeze(self) -> None:
        """Stop the clocks of all its processes, parents first, so that none of them sees another stand still."""
        self._below = kill.descendants(self._process.pid)
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let all of its processes go on."""
        self._signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill everything."""
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
        """Prepare; nothing runs yet.

        Args:
            folder: of the sandbox.
            zookeepers: how many; 1 is enough for a cluster that nobody disturbs.
            namenodes: how many.
            secure: whether the stores want to know who asks, by Kerberos and TLS.
        """
        self.closed = secure
        self.name = "secured sandbox" if secure else "sandbox"
        self._sandbox = Sandbox(folder)
        self._zookeepers, self._namenodes = zookeepers, namenodes

    def up(self, say: Callable[[str], None]) -> None:
        """Start or repair every server that does not serve."""
        _tried(lambda: self._sandbox.up(self._zookeepers, self._namenodes, progress=say, secure=self.closed))

    def down(self) -> None:
        """Stop all servers, and delete what they hold."""
        _tried(lambda: self._sandbox.down(wipe=True))

    def variables(self) -> dict[str, str]:
        """The variables that make a member use these servers."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HA_")}
        given = _tried(self._sandbox.environment)
        return {**inherited, **given, "PYSPARK_PYTHON": sys.executable}

    def second(self, folder: Path) -> Environment:
        """Another sandbox, with one server of each kind."""
        return SandboxEnvironment(folder / "second", zookeepers=1, namenodes=1)

    @property
    def scratch(self) -> str:
        """URI of a directory for the files of jobs."""
        file_system = _tried(self._sandbox.environment)["HA_FILES"].rsplit("/", 1)[0]
        return f"{file_system}/ha-tests/drills" if self.closed else f"{file_system}/drills"  # the root is nobody's

    def member_path(self, path: Path) -> str:
        """The absolute path: members share this host."""
        return str(path.absolute())

    def strangers(self) -> Mapping[str, Mapping[str, str]]:
        """Anybody; where the stores ask, another user of the realm, and somebody without any credentials."""
        if not self.closed:
            return super().strangers()
        other = _tried(lambda: self._sandbox.environment(STRANGER))
        return {STRANGER: other, "nobody": {**other, **NO_CREDENTIALS}}

    def driver(self, program: str) -> str:
        """The program of the distribution or the source tree."""
        return example(program)

    def start_member(
        self, name: str, command: Sequence[str], variables: Mapping[str, str], folder: Path, beside: str = ""
    ) -> Member:
        """Start a process of this host."""
        del beside
        return Process(name, _translated(command), {**self.variables(), **variables}, folder)

    def call(self, command: Sequence[str], folder: Path, timeout: float) -> str:
        """Run a program to its end."""
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
            raise DrillError(f"{' '.join(command[:3])} failed: {error.stderr.strip()[-500:]}") from error
        return done.stdout

    # --- servers

    def servers(self, kind: str) -> list[str]:
        """Names of the servers of a kind."""
        return [each.name for each in self._sandbox.status() if each.kind == kind]

    def stop(self, server: str) -> None:
        """Stop a server in an orderly way."""
        _tried(lambda: self._sandbox.stop(server))

    def kill(self, server: str) -> None:
        """SIGKILL a server."""
        _tried(lambda: self._sandbox.kill(server))

    def start(self, server: str) -> None:
        """Start a server that is down."""
        _tried(lambda: self._sandbox.start(server))

    def pause(self, server: str) -> None:
        """Stop a server's clock."""
        _tried(lambda: self._sandbox.pause(server))

    def resume(self, server: str) -> None:
        """Let a paused server go on."""
        _tried(lambda: self._sandbox.resume(server))

    def wait_ready(self, server: str) -> None:
        """Wait until a server serves."""
        _tried(lambda: self._sandbox.wait_ready(server))

    def zookeeper_leader(self) -> str:
        """The leader of the ensemble."""
        for each in self._sandbox.status():
            if each.kind == "zookeeper" and each.role == "leader":
                return each.name
        raise DrillError("No ZooKeeper server leads.")

    def wipe_zookeeper(self) -> None:
        """Stop all ZooKeeper servers, delete what they hold, start them again, and wait until they serve."""
        _tried(self._sandbox.wipe_zookeeper)

    def active_namenode(self) -> str:
        """The active NameNode; empty if there is none."""
        return _tried(self._sandbox.active_namenode) or ""

    def failover(self, to: str) -> None:
        """Make a NameNode the active one."""
        _tried(lambda: self._sandbox.failover(to))

    def safe_mode(self, on: bool) -> None:
        """Make the active NameNode refuse all writes, or accept them again."""
        _tried(lambda: self._sandbox.safe_mode(on))

    def edits(self) -> list[str]:
        """HDFS's edit log."""
        return _tried(self._sandbox.edits)


def example(program: str) -> str:
    """Return the path of an example that drills run: in the source tree, or where the distribution has put it.

    Raises:
        DrillError: it is in neither place.
    """
    package = Path(ha.__file__).parent
    for path in (package / "drill" / program, package.parent / "examples" / program):
        if path.exists():
            return str(path)
    raise DrillError(f"{program}, which drills run, is not there: install hybrid-ha anew (looked in {package}).")


def _translated(command: Sequence[str]) -> list[str]:
    return [sys.executable if word == "python" else word for word in command]


def _tried(do: Callable[[], T]) -> T:
    try:
        return do()
    except SandboxError as error:
        raise DrillError(str(error)) from error
