"""The command of a sidecar: started before or after the grant, told of the grant, asked to end, and killed in time.

:class:`Command` is the command over all its runs. :class:`GuardedCommand` is one run: the two processes that
:mod:`ha.sidecar.guard` describes.
"""

import logging
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from ha.daemon.process import ContendingProcess
from ha.leadership import grant_file, remedy_file
from ha.leadership.deadline_file import DeadlineWriter
from ha.sidecar.class_data import ClassData
from ha.sidecar.guard import JVM_ENDED
from ha.sidecar.heartbeat import Beat, read
from ha.sidecar.memory import descendants, memory_of
from ha.sidecar.spark_overlay import spark_environment
from ha.sidecar.stored_program import StoredProgram
from ha.sidecar.thread_dumps import first_of, thread_dumps
from leader.job.programs import Program
from leader.layout.names import LeaderDirectory
from store.clock import now

NEVER = float("inf")
"""A time that does not come."""

ABLE, DRAINED = ".able", ".drained"
"""As in :mod:`ha.spark.supervision.settling`, which needs PySpark."""

_log = logging.getLogger("ha")


class CommandState(Enum):
    """The state of a sidecar's command."""

    COLD = "cold"
    """It is not running: the job is not granted, and no standby warms up."""
    WARMING = "warming"
    """It was started and does not wait for its grant yet."""
    WARM = "warm"
    """It waits for its grant."""
    RUNNING = "running"
    """The job is granted to it."""
    RESTARTING = "restarting"
    """It has failed and will be started again within this leadership."""


class GuardedCommand:
    """One run of a command under a guard, which kills it when the leadership or the sidecar is gone."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        deadline: Path,
        held: Sequence[int] = (),
        grant: Path | None = None,
        place: Path | None = None,
    ) -> None:
        """Start the guard, which starts the command.

        Args:
            command: program and arguments.
            environment: added to this process's own.
            deadline: the file of the :class:`ha.leadership.deadline_file.DeadlineWriter`.
            held: descriptors that the guard keeps open until the command's whole process group is gone.
            grant: the deadline counts from when this file exists; None if the job is granted already.
            place: the command's working directory; None for this process's own.
        """
        # -P: a directory called `ha` in the user's working directory must not be imported instead of this package.
        interpreter = [sys.executable, "-P", "-m", "ha.sidecar.guard"]
        arguments = [*interpreter, str(deadline), *([str(grant)] if grant else []), "--", *command]
        self._guard = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, env={**os.environ, **environment}, pass_fds=held, cwd=place
        )
        self._pipe_lock = threading.Lock()
        self._asked_to_end = False

    @property
    def pid(self) -> int:
        """Process id of the guard."""
        return self._guard.pid

    def wait(self) -> int:
        """Wait until the command has ended; returns its exit code, or 128 + signal if a signal ended it.

        The result is 128 + TERM if the command ended with 0 after it was asked to end: its work is not finished.
        """
        code = self._guard.wait()
        self.abandon()
        if code == 0 and self._asked_to_end:
            code = -signal.SIGTERM
        return code if code >= 0 else 128 - code

    def terminate(self) -> None:
        """Send TERM to the command's whole process group."""
        self._asked_to_end = True
        self._send(b"T")

    def kill(self) -> None:
        """Kill the command's whole process group."""
        self._send(b"K")

    def abandon(self) -> None:
        """Close the pipe to the guard, as the end of this process does: a command that still runs is killed."""
        pipe = self._guard.stdin
        assert pipe is not None, "the guard was started with a pipe"
        with self._pipe_lock:
            pipe.close()

    def _send(self, letter: bytes) -> None:
        pipe = self._guard.stdin
        assert pipe is not None, "the guard was started with a pipe"
        with self._pipe_lock:  # once the descriptor is closed, its number may be another file's
            if pipe.closed:
                return
            try:
                os.write(pipe.fileno(), letter)
            except BrokenPipeError:
                return  # the guard has ended, and the command with it


@dataclass(slots=True, eq=False)
class _Run:
    """One run of the command.

    Attributes:
        child: the guard and the command.
        grant: the file in which the run looks for its grant; None if it was started with one.
        epoch: the epoch that was granted to it; 0 if none yet.
        kill_at: when it is killed unless it has ended, in seconds of the clock; NEVER if it was not asked to end.
        code: its exit code, once it has ended.
    """

    child: GuardedCommand
    grant: Path | None
    epoch: int
    kill_at: float = NEVER
    code: int = 0


class Command:
    """The command of one job. At most one run of it is there at a time."""

    def __init__(
        self,
        process: ContendingProcess,
        job: str,
        program: Program,
        ended: Callable[[], None],
        *,
        stored: StoredProgram | None = None,
        spark: bool = False,
        class_data: ClassData | None = None,
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            process: its stores and settings are used.
            job: the job's name.
            program: what is run; another one can be set before each start.
            ended: called on a thread of its own when a run has ended, with all processes that it started here.
            stored: where the files of the program come from; None if it was never stored.
            spark: use Spark's own configuration to tell the command where its checkpoints are.
            class_data: an archive of Spark's classes, which the command uses if it is there; None not to.
        """
        self._process = process
        self._job = job
        self._class_data = class_data
        self.program = program
        self._stored = stored
        self._ended = ended
        self._spark = spark
        self._directory = tempfile.TemporaryDirectory(prefix="ha-", ignore_cleanup_errors=True)
        self.deadline = DeadlineWriter(Path(self._directory.name, "deadline"))
        self._run: _Run | None = None
        self.starts = 0
        self._restarting, self._start_at = False, 0.0
        self._since = now()

    @property
    def runs(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._run is not None

    @property
    def granted(self) -> bool:
        """Whether it runs with a grant."""
        return (run := self._run) is not None and run.epoch > 0

    def report(self, run: int) -> Path:
        """Return the file in which a run reports on its queries; runs are numbered from 1."""
        return Path(self._directory.name, f"queries-{run}")

    @property
    def jvm_ended(self) -> bool:
        """Whether the guard has ended the run that is over because its JVM had ended."""
        return self._run is not None and Path(f"{self.deadline.path}{JVM_ENDED}").exists()

    @property
    def remedy(self) -> str:
        """The remedy that the present run has named for its failure, which no restart mends; mostly empty."""
        return remedy_file.read(self.report(self.starts)) if self._run is not None else ""

    @property
    def beat(self) -> Beat | None:
        """The newest heartbeat of the present run; None if it has sent none."""
        return read(self._heartbeat) if self._run is not None else None

    def thread_dumps(self, beat: Beat | None) -> str:
        """Return the stacks of the processes that beat, as far as they can be had within a few seconds.

        If none beats: those of the first Python and the first JVM that the command has started.
        """
        if beat is None:
            found = descendants(self._run.child.pid) if self._run is not None else []
            beat = Beat(0, first_of("python", found), first_of("java", found))
        return thread_dumps(beat.python, beat.jvm, Path(f"{self._heartbeat}.python"))

    def variables(self, leader: LeaderDirectory) -> dict[str, str]:
        """Return the variables of the environment that a run finds when it is started with a grant."""
        return self._environment(leader, None)

    @property
    def _heartbeat(self) -> Path:
        return Path(self._directory.name, f"heartbeat-{self.starts}")

    @property
    def restart_file(self) -> Path:
        """The file of :mod:`ha.leadership.restart_file` of the present run."""
        return Path(self._directory.name, f"restart-{self.starts}")

    @property
    def _settle(self) -> Path:
        return Path(self._directory.name, f"settle-{self.starts}")

    @property
    def kill_at(self) -> float:
        """When :meth:`kill_late` has something to do, in seconds of the clock; NEVER if it was not asked to end."""
        return self._run.kill_at if self._run is not None else NEVER

    def start(self, leader: LeaderDirectory | None) -> None:
        """Start it: with a grant, or, with None, as a warm standby that waits for one.

        Raises:
            OSError: it cannot be started.
            Unreadable: a file of its program is damaged.
        """
        self.starts += 1
        self._restarting, self._since = False, now()
        Path(f"{self.deadline.path}{JVM_ENDED}").unlink(missing_ok=True)
        grant = None if leader else Path(self._directory.name, f"grant-{self.starts}")
        environment = {**self.program.environment, **self._environment(leader, grant)}
        place = self._unpacked()
        options = self._class_data.options(os.environ) if self._class_data is not None else {}
        if self._spark or options:
            overlay = Path(self._directory.name, f"spark-{self.starts}")
            jars = self._class_data.jars if self._class_data is not None and options else None
            environment |= spark_environment(overlay, {**os.environ, **environment}, jars, spark=self._spark)
            environment |= options
        if leader is not None:
            self._record_running(leader)
        liveness = self._process.liveness_socket
        held = [liveness.fileno()] if liveness is not None else []
        child = GuardedCommand(self.program.command, environment, self.deadline.path, held, grant, place)
        self._run = run = _Run(child, grant, leader.epoch if leader else 0)
        threading.Thread(target=self._wait, args=(run,), name="ha-wait", daemon=True).start()
        _log.info("%s: the command %s, guarded by process %d.", self._job, "runs" if leader else "warms up", child.pid)

    def _unpacked(self) -> Path | None:
        """Return the working directory of the next run, with the files of its program; None for one never stored."""
        if self._stored is None:
            return None
        self._stored.unpack(self.program, place := Path(self._directory.name, f"program-{self.starts}"))
        return place

    def grant(self, leader: LeaderDirectory) -> None:
        """Grant the job to the warm command, which goes on.

        Raises:
            OSError: the grant cannot be written; the command still waits.
        """
        run = self._run
        assert run is not None, "there is a command that waits"
        assert run.grant is not None, "a command that was started with a grant gets no other"
        grant_file.grant(run.grant, leader)
        run.epoch, self._since = leader.epoch, now()
        self._record_running(leader)
        _log.info("%s: epoch %d is granted to the warm command.", self._job, leader.epoch)

    def terminate(self, latest: float) -> None:
        """Ask it to end. It is killed at ``latest``, or sooner if an earlier call said so."""
        if self._run is not None:
            self._run.child.terminate()
            self._run.kill_at = min(self._run.kill_at, latest)

    def settle(self, seconds: float, *, drain: bool) -> bool:
        """Have the queries of the program end in order, and then the program; returns whether it knows how."""
        if not Path(f"{self._settle}{ABLE}").exists():
            return False
        staged = Path(f"{self._settle}.staged")
        staged.write_bytes(msgspec.json.encode({"seconds": seconds, "drain": drain}))
        staged.replace(self._settle)
        return True

    @property
    def drained(self) -> bool:
        """Whether the run that has ended had processed all that there was, as :meth:`settle` asked."""
        return Path(f"{self._settle}{DRAINED}").exists()

    def kill_late(self) -> None:
        """Kill it if it was asked to end and has not done so in time."""
        if self._run is not None and now() >= self._run.kill_at:
            _log.warning("%s: the command did not end in time and is killed.", self._job)
            self._run.child.kill()
            self._run.kill_at = NEVER

    def end(self) -> tuple[int, bool]:
        """Forget the run that has ended; returns its exit code, and whether that means that the job has finished.

        A warm command that exits with 0 before it has taken its grant has not done the job's work.
        """
        run, self._run, self._since = self._run, None, now()
        assert run is not None, "a run has ended"
        return run.code, run.code == 0 and (run.grant is None or grant_file.taken(run.grant))

    def restarting(self, at: float) -> None:
        """Note that it will be started within the leadership, at this time of the clock."""
        self._restarting, self._start_at = True, at

    def given_up(self) -> None:
        """Note that the leadership is over."""
        self._restarting, self._since = False, now()

    def close(self) -> None:
        """Kill it if it runs, and remove the files that were shared with it."""
        if self._run is not None:
            self._run.child.kill()
        self.deadline.close()
        self._directory.cleanup()

    def status(self) -> dict[str, Any]:
        """Return its state, the seconds since that began, its starts, its stored version, its processes and memory."""
        run, since = self._run, self._since
        if run is None:
            state = CommandState.RESTARTING if self._restarting else CommandState.COLD
        elif run.epoch or run.grant is None:
            state = CommandState.RUNNING
        elif (awaited := grant_file.awaited_since(run.grant)) is not None:
            state, since = CommandState.WARM, awaited
        else:
            state = CommandState.WARMING
        processes, memory = memory_of(run.child.pid) if run is not None else (0, 0)
        waits = {"next_start_seconds": round(max(0.0, self._start_at - now()), 1)}
        return {
            "state": state.value,
            "seconds": round(max(0.0, now() - since), 1),
            "starts": self.starts,
            "version": self.program.version or None,
            "processes": processes,
            "memory_bytes": memory,
            **(waits if state is CommandState.RESTARTING else {}),
        }

    def _environment(self, leader: LeaderDirectory | None, grant: Path | None) -> dict[str, str]:
        settings = self._process.settings
        # An empty value hides the variable of another sidecar, if this sidecar is that one's command.
        return {
            "HA_JOB": self._job,
            "HA_EPOCH": str(leader.epoch) if leader else "",
            "HA_SESSION_ID": leader.session_id if leader else "",
            "HA_LEADER_DIRECTORY": self._process.stores.directory_uri(self._job, leader) if leader else "",
            "HA_GRANT": str(grant or ""),
            "HA_BELIEF": str(self.deadline.path),
            "HA_HEARTBEAT": str(self._heartbeat) if settings.heartbeat_timeout else "",
            "HA_HEARTBEAT_TIMEOUT": f"{settings.heartbeat_timeout:g}",
            "HA_QUERIES": str(self.report(self.starts)),
            "HA_SETTLE": str(self._settle),
            "HA_RESTART": str(self.restart_file),
            "HA_FILES": settings.files,
            "HA_ZOOKEEPER": settings.zookeeper,
            "HA_SNAPSHOTS": settings.snapshots,
            "HA_SPARK_JVM": "",
        }

    def _record_running(self, leader: LeaderDirectory) -> None:
        self._process.stores.history.ran(self._job, leader.epoch, running=True)

    def _wait(self, run: _Run) -> None:
        run.code = run.child.wait()
        if run.epoch:
            self._process.stores.history.ran(self._job, run.epoch, running=False)
        self._ended()
