"""The command of a sidecar: started before or after the grant, told of the grant, asked to end, and killed in time.

:class:`Command` is the command over all its runs. A :class:`ha.sidecar.run.Run` is one of them: with a
:class:`ha.sidecar.guarded_command.GuardedCommand`, or the :class:`ha.sidecar.orphan.Orphan` of a dead sidecar.
"""

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ha.daemon.process import ContendingProcess
from ha.leadership import grant_file, program_file, remedy_file, settle_file
from ha.leadership.deadline_file import DeadlineWriter
from ha.leadership.settle_file import Settle
from ha.sidecar.engine import engine_command
from ha.sidecar.engine_state import EngineState
from ha.sidecar.engine_state import read as read_engine
from ha.sidecar.guard import JVM_ENDED
from ha.sidecar.guarded_command import GuardedCommand
from ha.sidecar.heartbeat import Beat, read
from ha.sidecar.memory import descendants, memory_of
from ha.sidecar.orphan import DEADLINE, Orphan
from ha.sidecar.run import CommandState, Run
from ha.sidecar.run_environment import RunEnvironment
from ha.sidecar.run_files import RunFiles
from ha.sidecar.succession import Succession
from ha.sidecar.thread_dumps import first_of, thread_dumps
from leader.job.programs import Program
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER
from store.clock import now

_log = logging.getLogger("ha")


class Command:
    """The command of one job. At most one run of it is there at a time."""

    def __init__(
        self,
        process: ContendingProcess,
        job: str,
        program: Program,
        environment: RunEnvironment,
        ended: Callable[[], None],
        *,
        engine: bool = False,
        succession: Succession | None = None,
    ) -> None:
        """Prepare; nothing is started or taken up yet.

        Args:
            process: its stores and settings are used.
            job: the job's name.
            program: what is run; another one can be set before each start.
            environment: of its runs.
            ended: called on a thread of its own when a run has ended, with all processes that it started here.
            engine: start the program under an engine, so that its queries go on without it.
            succession: what is left to another sidecar, and by another one; None if the command ends with its sidecar.
        """
        self._process = process
        self._job = job
        self.program = program
        self._environment = environment
        self._ended = ended
        self._with_engine = engine
        self._succession = succession
        orphan = succession.orphan if succession is not None else None
        self._directory = Path(orphan.left.directory if orphan is not None else tempfile.mkdtemp(prefix="ha-"))
        self.deadline = DeadlineWriter(self._directory / DEADLINE, resume=orphan is not None)
        self._run: Run | None = None
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

    @property
    def files(self) -> RunFiles:
        """The files of the newest run."""
        return self.files_of(self.starts)

    def files_of(self, run: int) -> RunFiles:
        """Return the files of a run; runs are numbered from 1."""
        return RunFiles(self._directory, run)

    @property
    def jvm_ended(self) -> bool:
        """Whether the guard has ended the run that is over because its JVM had ended."""
        return self._run is not None and Path(f"{self.deadline.path}{JVM_ENDED}").exists()

    @property
    def engine(self) -> EngineState:
        """The state of the present run's engine; an empty one if there is none."""
        return read_engine(self.files.engine) if self._with_engine and self._run is not None else EngineState()

    @property
    def remedy(self) -> str:
        """The remedy that the present run has named for its failure, which no restart mends; mostly empty."""
        return remedy_file.read(self.files.report) if self._run is not None else ""

    @property
    def beat(self) -> Beat | None:
        """The newest heartbeat of the present run; None if it has sent none."""
        return read(self.files.heartbeat) if self._run is not None else None

    def thread_dumps(self, beat: Beat | None) -> str:
        """Return the stacks of the processes that beat, as far as they can be had within a few seconds.

        If none beats: those of the first Python and the first JVM that the command has started.
        """
        if beat is None:
            found = descendants(self._run.child.pid) if self._run is not None else []
            beat = Beat(0, first_of("python", found), first_of("java", found))
        return thread_dumps(beat.python, beat.jvm, self.files.python_stacks)

    def variables(self, leader: LeaderDirectory) -> dict[str, str]:
        """Return the variables of the environment that a run finds when it is started with a grant."""
        return self._environment.variables(self.files, leader)

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
        files, grant = self.files, None if leader else self.files.grant
        environment, place = self._environment.prepare(self.program, files, leader, excluded)
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
                command = engine_command(command, files.engine, self._process.settings)
            child = GuardedCommand(command, environment, deadline, held, grant, place, door)
        self._run = run = Run(child, grant, leader.epoch if leader else 0)
        self._await(run)
        _log.info("%s: the command %s, guarded by process %d.", self._job, "runs" if leader else "warms up", child.pid)

    def take_up(self, orphan: Orphan) -> None:
        """Take up a command whose sidecar is gone: from now on it is as if this process had started it."""
        left = orphan.left
        self.program, self.starts, self._taken_up, self._since = left.run.program, left.starts, left.taken_up + 1, now()
        self._run = run = Run(orphan, Path(left.grant) if left.grant else None, left.leader.epoch)
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

    def _await(self, run: Run) -> None:
        threading.Thread(target=self._wait, args=(run,), name="ha-wait", daemon=True).start()

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
        able = program_file.able(self.files.settle)
        if able:
            settle_file.ask(self.files.settle, Settle(seconds, drain))
        return able

    @property
    def drained(self) -> bool:
        """Whether the run that has ended had processed all that there was, as :meth:`settle` asked."""
        return settle_file.drained(self.files.settle)

    def kill_late(self) -> None:
        """Kill it if it was asked to end and has not done so in time."""
        if self._run is not None and now() >= self._run.kill_at:
            _log.warning("%s: the command did not end in time and is killed.", self._job)
            self._run.child.kill()
            self._run.kill_at = NEVER

    def end(self) -> tuple[int, bool]:
        """Forget the run that has ended; returns its exit code, and whether that means that the job has finished."""
        run, self._run, self._since = self._run, None, now()
        assert run is not None, "a run has ended"
        return run.code, run.has_finished

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
        run, resting = self._run, CommandState.RESTARTING if self._restarting else CommandState.COLD
        state, since = (resting, self._since) if run is None else run.state(self._since)
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

    def _record_running(self, leader: LeaderDirectory) -> None:
        self._process.stores.history.ran(self._job, leader.epoch, running=True)

    def _wait(self, run: Run) -> None:
        run.code = run.child.wait()
        if run.epoch:
            self._process.stores.history.ran(self._job, run.epoch, running=False)
        self._ended()
