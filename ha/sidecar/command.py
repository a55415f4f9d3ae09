"""The command of a sidecar: started before or after the grant, told of the grant, asked to end, and killed in time.

:class:`Command` is the command over all its runs. :class:`ha.sidecar.guarded_command.GuardedCommand` is one run, or
:class:`ha.sidecar.orphan.Orphan` one that was taken up from a dead sidecar.
"""

import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

from ha.daemon.process import ContendingProcess
from ha.leadership import grant_file, remedy_file
from ha.leadership.deadline_file import DeadlineWriter
from ha.sidecar.class_data import ClassData
from ha.sidecar.engine import engine_command
from ha.sidecar.engine_state import EngineState
from ha.sidecar.engine_state import read as read_engine
from ha.sidecar.guard import JVM_ENDED
from ha.sidecar.guarded_command import GuardedCommand
from ha.sidecar.heartbeat import Beat, read
from ha.sidecar.memory import descendants, memory_of
from ha.sidecar.operator_requests import RESCALE_EXECUTORS, RESTART_QUERY
from ha.sidecar.orphan import DEADLINE, Orphan
from ha.sidecar.spark_overlay import spark_environment
from ha.sidecar.stored_program import StoredProgram
from ha.sidecar.succession import Succession
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

    child: GuardedCommand | Orphan
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
        engine: bool = False,
        class_data: ClassData | None = None,
        succession: Succession | None = None,
    ) -> None:
        """Prepare; nothing is started or taken up yet.

        Args:
            process: its stores and settings are used.
            job: the job's name.
            program: what is run; another one can be set before each start.
            ended: called on a thread of its own when a run has ended, with all processes that it started here.
            stored: where the files of the program come from; None if it was never stored.
            spark: use Spark's own configuration to tell the command where its checkpoints are.
            engine: start the program under an engine, so that its queries go on without it.
            class_data: an archive of Spark's classes, which the command uses if it is there; None not to.
            succession: what is left to another sidecar, and by another one; None if the command ends with its sidecar.
        """
        self._process = process
        self._job = job
        self._class_data = class_data
        self.program = program
        self._stored = stored
        self._ended = ended
        self._spark, self._with_engine = spark, engine
        self._succession = succession
        orphan = succession.orphan if succession is not None else None
        self._directory = Path(orphan.left.directory if orphan is not None else tempfile.mkdtemp(prefix="ha-"))
        self.deadline = DeadlineWriter(self._directory / DEADLINE, resume=orphan is not None)
        self._run: _Run | None = None
        self.starts = 0
        self._taken_up = 0
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
        return self._directory / f"queries-{run}"

    @property
    def jvm_ended(self) -> bool:
        """Whether the guard has ended the run that is over because its JVM had ended."""
        return self._run is not None and Path(f"{self.deadline.path}{JVM_ENDED}").exists()

    @property
    def engine(self) -> EngineState:
        """The state of the present run's engine; an empty one if there is none."""
        return read_engine(self._engine_file) if self._with_engine and self._run is not None else EngineState()

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
        return self._directory / f"heartbeat-{self.starts}"

    @property
    def _engine_file(self) -> Path:
        return self._directory / f"engine-{self.starts}"

    def program_file(self, verb: str) -> Path:
        """Return the file of :mod:`ha.leadership.program_file` of the present run for a verb."""
        return self._directory / f"{verb}-{self.starts}"

    @property
    def _settle(self) -> Path:
        return self._directory / f"settle-{self.starts}"

    @property
    def kill_at(self) -> float:
        """When :meth:`kill_late` has something to do, in seconds of the clock; NEVER if it was not asked to end."""
        return self._run.kill_at if self._run is not None else NEVER

    def start(self, leader: LeaderDirectory | None, excluded: Sequence[str] = ()) -> None:
        """Start it: with a grant, or, with None, as a warm standby that waits for one.

        Args:
            leader: the leadership.
            excluded: hosts that its executors are to keep off.

        Raises:
            OSError: it cannot be started.
            Unreadable: a file of its program is damaged.
        """
        self.starts += 1
        self._restarting, self._since = False, now()
        Path(f"{self.deadline.path}{JVM_ENDED}").unlink(missing_ok=True)
        grant = None if leader else self._directory / f"grant-{self.starts}"
        environment = {**self.program.environment, **self._environment(leader, grant)}
        environment["HA_EXCLUDED_HOSTS"] = ",".join(excluded)
        place = self._unpacked()
        options = self._class_data.options(os.environ) if self._class_data is not None else {}
        if self._spark or options or excluded:
            overlay = self._directory / f"spark-{self.starts}"
            jars = self._class_data.jars if self._class_data is not None and options else None
            known = {**os.environ, **environment}
            environment |= spark_environment(overlay, known, jars, spark=self._spark, excluded=excluded)
            environment |= options
        if leader is not None:
            self._record_running(leader)
        liveness = self._process.liveness_socket
        held = [liveness.fileno()] if liveness is not None else []
        self._taken_up = 0
        if leader is not None:
            self._leave(leader, grant)
        with self._succession.door() if self._succession is not None else nullcontext() as door:
            command, deadline = self.program.command, self.deadline.path
            if self._with_engine:
                command = engine_command(command, self._engine_file, self._process.settings)
            child = GuardedCommand(command, environment, deadline, held, grant, place, door)
        self._run = run = _Run(child, grant, leader.epoch if leader else 0)
        self._await(run)
        _log.info("%s: the command %s, guarded by process %d.", self._job, "runs" if leader else "warms up", child.pid)

    def take_up(self, orphan: Orphan) -> None:
        """Take up a command whose sidecar is gone: from now on it is as if this process had started it."""
        left = orphan.left
        self.program, self.starts, self._taken_up, self._since = left.run.program, left.starts, left.taken_up + 1, now()
        self._run = run = _Run(orphan, Path(left.grant) if left.grant else None, left.leader.epoch)
        self._leave(left.leader, run.grant)
        self._record_running(left.leader)
        self._await(run)
        _log.info("%s: the command that runs is taken up, guarded by process %d.", self._job, orphan.pid)

    def _leave(self, leader: LeaderDirectory, grant: Path | None) -> None:
        """Write down what a successor needs to take the present run up."""
        if self._succession is not None:
            liveness = self._process.liveness_socket
            self._succession.leave(
                leader=leader,
                program=self.program,
                directory=f"{self._directory}",
                starts=self.starts,
                grant=f"{grant or ''}",
                contact=liveness.contact if liveness is not None else None,
                taken_up=self._taken_up,
            )

    def _await(self, run: _Run) -> None:
        threading.Thread(target=self._wait, args=(run,), name="ha-wait", daemon=True).start()

    def _unpacked(self) -> Path | None:
        """Return the working directory of the next run, with the files of its program; None for one never stored."""
        if self._stored is None:
            return None
        self._stored.unpack(self.program, place := self._directory / f"program-{self.starts}")
        return place

    def grant(self, leader: LeaderDirectory) -> None:
        """Grant the job to the warm command, which goes on.

        Raises:
            OSError: the grant cannot be written; the command still waits.
        """
        run = self._run
        assert run is not None, "there is a command that waits"
        assert run.grant is not None, "a command that was started with a grant gets no other"
        self._leave(leader, run.grant)
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
        shutil.rmtree(self._directory, ignore_errors=True)

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
            "taken_up": self._taken_up,
            **({"program_starts": self.engine.starts} if self._with_engine else {}),
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
            "HA_RESTART": str(self.program_file(RESTART_QUERY)),
            "HA_EXECUTORS": str(self.program_file(RESCALE_EXECUTORS)),
            "HA_FILES": settings.files,
            "HA_ZOOKEEPER": settings.zookeeper,
            "HA_SNAPSHOTS": settings.snapshots,
            "HA_SPARK_JVM": "",
            "HA_ENGINE": "",
        }

    def _record_running(self, leader: LeaderDirectory) -> None:
        self._process.stores.history.ran(self._job, leader.epoch, running=True)

    def _wait(self, run: _Run) -> None:
        run.code = run.child.wait()
        if run.epoch:
            self._process.stores.history.ran(self._job, run.epoch, running=False)
        self._ended()
