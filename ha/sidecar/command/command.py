"""The command of a sidecar: started before or after the grant, told of the grant, asked to end, and killed in time.

:class:`Command` is the command over all its runs. A :class:`ha.sidecar.command.guarded_command.Run` is one of them.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ha.daemon.process import ContendingProcess
from ha.hosts.crew import Crew
from ha.hosts.installation import gone
from ha.program import end_file, engine_state, grant_file, heartbeat, output_log, request_file, settle_file
from ha.program.deadline_file import DeadlineWriter
from ha.program.end_file import End
from ha.program.engine_state import EngineState
from ha.program.heartbeat import Beat
from ha.program.settle_file import Settle
from ha.sidecar.command.engine import engine_command
from ha.sidecar.command.guard import JVM_ENDED
from ha.sidecar.command.guarded_command import CommandState, GuardedCommand, Run
from ha.sidecar.command.memory import descendants, killed_for_memory, memory_of
from ha.sidecar.command.orphan import DEADLINE, Orphan
from ha.sidecar.command.run_directory import RunDirectory, RunFiles
from ha.sidecar.command.run_environment import RunEnvironment
from ha.sidecar.command.slot import Left
from ha.sidecar.command.succession import Succession
from ha.sidecar.command.thread_dumps import first_of, thread_dumps
from leader.errors import InvalidSettings, LeaderError
from leader.job.programs import Program
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER
from store.clock import now

_log = logging.getLogger("ha")


class Command:
    """The command of one job. At most one run of it is there at a time."""

    def __init__(
        self,
        process: ContendingProcess,  # its stores and settings are used
        job: str,
        program: Program,  # what is run; another one can be set before each start
        environment: RunEnvironment,  # of its runs
        # Called with a run's number, on its own thread, once that and all that it started here has ended.
        ended: Callable[[int], None],
        crew: Crew,  # waits for its ends
        *,
        engine: bool = False,  # start the program under an engine, so that its queries outlive it
        # What is left to another sidecar, and by another one; None if the command ends with its sidecar.
        succession: Succession | None = None,
    ) -> None:
        """Prepare; nothing is started or taken up yet. InvalidSettings if no temporary file can be made."""
        self._process = process
        self._job = job
        self.program = program
        self._environment = environment
        self._ended, self._crew = ended, crew
        self._with_engine = engine
        self._succession = succession
        orphan = succession.orphan if succession is not None else None
        try:
            self._directory = RunDirectory(Path(orphan.left.directory) if orphan is not None else None)
            self.deadline = DeadlineWriter(self._directory.path / DEADLINE, resume=orphan is not None)
        except OSError as error:
            raise InvalidSettings(f"{_no_place(error)} Mend that, or let TMPDIR name another directory.") from error
        self.obstacle = ""  # why no command can be started on this host, as one sentence; empty if it can
        self._run: Run | None = None
        self.starts = 0
        self._taken_up = 0
        self.start_at = NEVER  # when it is started again within the leadership, in seconds of the clock; for display
        self.since = now()
        self._killed_before = 0

    @property
    def runs(self) -> int:
        """The number of the run that has been started and has not ended; 0 if there is none."""
        return self.starts if self._run is not None else 0

    @property
    def files(self) -> RunFiles:
        """The files of the newest run."""
        return self.files_of(self.starts)

    def files_of(self, run: int) -> RunFiles:
        """Return the files of a run; runs are numbered from 1."""
        return RunFiles(self._directory.path, run)

    @property
    def jvm_ended(self) -> bool:
        """Whether the guard has ended the run that is over because its JVM had ended."""
        return self._run is not None and Path(f"{self.deadline.path}{JVM_ENDED}").exists()

    @property
    def engine(self) -> EngineState:
        """The state of the present run's engine; an empty one if there is none."""
        return engine_state.newest(self.files.engine) if self._with_engine and self._run is not None else EngineState()

    @property
    def told_end(self) -> End:
        """What the present run has said of its end, if it came now."""
        return end_file.told(self.files.report) if self._run is not None else End()

    def last_words(self) -> tuple[str, str]:
        """Return what else is known of the end of the newest run, and the last lines that it has written."""
        killed, lines = killed_for_memory() - self._killed_before, output_log.last_lines(self.files.output)
        said = [f"The kernel has killed {killed} of its cgroup's processes meanwhile: no memory."] if killed else []
        said += [f"Its last lines follow; `ha job logs {self._job}` has all."] if lines else []
        return " ".join(said), lines

    @property
    def beat(self) -> Beat | None:
        """The newest heartbeat of the present run; None if it has sent none."""
        return heartbeat.newest(self.files.heartbeat) if self._run is not None else None

    def thread_dumps(self, beat: Beat | None) -> str:
        """Return the stacks of the processes that beat, as far as they can be had within a few seconds."""
        # If none beats: those of the first Python and the first JVM that the command has started.
        if beat is None:
            found = descendants(self._run.child.pid) if self._run is not None else []
            beat = Beat(0, first_of("python", found), first_of("java", found))
        return thread_dumps(beat.python, beat.jvm, self.files.python_stacks)

    def variables(self, leader: LeaderDirectory) -> dict[str, str]:
        """Return the variables of the environment that a run finds when it is started with a grant."""
        return self._environment.variables(self.files, leader)

    @property
    def whole(self) -> bool:
        """Whether the present run still has its working directory: a standby's may be removed while it waits."""
        return self._run is None or self._run.place is None or self._run.place.exists()

    def keep(self) -> None:
        """Make sure that the files shared with the command are there, and not so old that a cleaner takes them."""
        try:
            self._make_place()
            self._directory.touch()
        except OSError as error:
            if not self.obstacle:
                self.obstacle = f"This host can start no command. {_no_place(error)}"
                _log.error("%s: %s", self._job, self.obstacle)
        else:
            self.obstacle = ""
        if (run := self._run) is not None:
            run.note_taken()

    def _make_place(self) -> None:
        self._directory.make(used=self._run is not None)
        self.deadline.make(self._directory.path / DEADLINE)

    def start(self, number: int, leader: LeaderDirectory | None, excluded: Sequence[str] = ()) -> None:
        """Start run ``number``, from 1: with a grant, or, with None, as a warm standby that waits for one."""
        # OSError: it cannot be started. LeaderError: a file of its program is damaged, or one of ours is gone.
        if lack := gone():
            raise LeaderError(lack)
        self.starts = number
        self._make_place()
        self.deadline.forget()
        self.since = now()
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
                command = engine_command(command, files.engine, self._process.settings.command)
            output_log.new(self._job, number, files.output)
            self._killed_before = killed_for_memory()
            lock = self._directory.descriptor
            child = GuardedCommand(command, environment, deadline, held, grant, place, door, lock, files.output)
        self._run = run = Run(child, grant, leader.epoch if leader else 0, place)
        self._await(run)
        _log.info("%s: the command %s, guarded by process %d.", self._job, "runs" if leader else "warms up", child.pid)

    def take_up(self, orphan: Orphan) -> None:
        """Take up a command whose sidecar is gone: from now on it is as if this process had started it."""
        left = orphan.left
        self.program, self.starts, self._taken_up, self.since = left.run.program, left.starts, left.taken_up + 1, now()
        self._run = run = Run(orphan, Path(left.grant) if left.grant else None, left.leader.epoch)
        self._leave(left.leader, run.grant)
        self._record_running(left.leader)
        self._await(run)
        _log.info("%s: the command that runs is taken up, guarded by process %d.", self._job, orphan.pid)

    def _leave(self, leader: LeaderDirectory, grant: Path | None) -> None:
        if self._succession is not None:
            liveness, order = self._process.liveness_socket, self._succession.order(self.program)
            contact, place = liveness.contact if liveness is not None else None, f"{self._directory.path}"
            self._succession.leave(Left(leader, order, place, self.starts, f"{grant or ''}", contact, self._taken_up))

    def _await(self, run: Run) -> None:
        number = self.starts

        def wait() -> None:
            run.code = run.child.wait()
            if run.epoch:
                self._process.stores.history.ran(self._job, run.epoch, running=False)
            self._ended(number)

        self._crew(wait)

    def grant(self, leader: LeaderDirectory) -> None:
        """Grant the job to the warm command. OSError if the grant cannot be written; the command still waits."""
        run = self._run
        assert run is not None, "there is a command that waits"
        assert run.grant is not None, "a command that was started with a grant gets no other"
        self._make_place()
        self._leave(leader, run.grant)
        grant_file.grant(run.grant, leader, self._process.stores.directory_uri(self._job, leader))
        run.epoch, self.since = leader.epoch, now()
        self._record_running(leader)
        _log.info("%s: epoch %d is granted to the warm command.", self._job, leader.epoch)

    def terminate(self) -> None:
        """Ask it to end."""
        if (run := self._run) is not None:
            run.child.terminate()

    def kill(self) -> None:
        """Kill it."""
        if (run := self._run) is not None:
            run.child.kill()

    def settle(self, seconds: float, *, drain: bool) -> bool:
        """Have the queries of the program end in order, and then the program; returns whether it knows how."""
        able = request_file.able(self.files.settle)
        if able:
            settle_file.ask(self.files.settle, Settle(seconds, drain))
        return able

    @property
    def drained(self) -> bool:
        """Whether the run that has ended had processed all that there was, as :meth:`settle` asked."""
        return settle_file.drained(self.files.settle)

    def end(self) -> tuple[int, bool]:
        """Forget the run that has ended; returns its exit code, and whether that means that the job has finished."""
        run, self._run, self.since = self._run, None, now()
        assert run is not None, "a run has ended"
        return run.code, run.has_finished

    def given_up(self) -> None:
        """Note that the leadership is over."""
        self.since = now()

    def close(self) -> None:
        """Kill it if it runs, and remove the files that were shared with it."""
        if self._run is not None:
            self._run.child.kill()
        self.deadline.close()
        self._directory.close()

    def status(self) -> dict[str, Any]:
        """Return its state, the seconds since that began, its starts, its stored version, its processes and memory."""
        run, resting = self._run, CommandState.COLD if self.start_at == NEVER else CommandState.RESTARTING
        state, since = (resting, self.since) if run is None else run.state(self.since)
        processes, memory = memory_of(run.child.pid) if run is not None else (0, 0)
        waits = {"next_start_seconds": round(max(0.0, self.start_at - now()), 1)}
        return {
            "state": state.value,
            "seconds": round(max(0.0, now() - since), 1),
            "starts": self.starts,
            "taken_up": self._taken_up,
            **({"program_starts": self.engine.starts} if self._with_engine else {}),
            "version": self.program.version or None,
            "processes": processes,
            "memory_bytes": memory,
            "obstacle": self.obstacle,
            **(waits if state is CommandState.RESTARTING else {}),
        }

    def _record_running(self, leader: LeaderDirectory) -> None:
        self._process.stores.history.ran(self._job, leader.epoch, running=True)


def _no_place(error: OSError) -> str:
    return f"Its files cannot be made in {error.filename or 'the temporary directory'}: {error.strerror or error}."
