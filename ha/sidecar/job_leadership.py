"""JobLeadership: a sidecar's leadership of its job: the phase that it is in, and how it ends and is given back."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ha.daemon.process import ContendingProcess
from ha.sidecar.command import Command
from ha.sidecar.phase import Ending, Leading, Phase, Reconciling, Standby
from ha.sidecar.savepoints import Savepoints
from leader.layout.names import LeaderDirectory
from leader.timing import Timing
from store.clock import now

KILL_MARGIN_S = 0.2
"""A command that does not end when it is asked to is killed this long before the leadership's deadline."""


class JobLeadership:
    """One sidecar in one job. Its methods are called on the sidecar's thread."""

    def __init__(
        self,
        process: ContendingProcess,
        job: str,
        endpoints: Mapping[str, str],
        leads: Callable[[], bool],
        command: Command,
        savepoints: Savepoints,
    ) -> None:
        """Begin as a standby; ``leads`` says what the contender believes."""
        self._process, self._job, self._endpoints, self._leads = process, job, endpoints, leads
        self._command, self._savepoints = command, savepoints
        self.phase: Phase = Standby()
        self.exit_code: int | None = None
        """The sidecar's; once it is set, the sidecar ends as soon as nothing is granted and no command runs."""
        self._recorded: LeaderDirectory | None = None
        """The leadership whose end stands in the history; its first cause is the one that counts."""

    @property
    def stands_by(self) -> bool:
        """Whether nothing is granted."""
        return isinstance(self.phase, Standby)

    @property
    def stop_grace(self) -> float:
        """Seconds that the command has to end when it is asked to."""
        return self._process.settings.stop_grace

    @property
    def timing(self) -> Timing:
        """The durations of the protocol."""
        return self._process.settings.timing

    @property
    def may_run(self) -> bool:
        """Whether the command may run as far as this process knows; the guard enforces the deadline anyway."""
        return self.exit_code is None and self._leads()

    def start_in(self, phase: Leading, seconds: float) -> None:
        """Have the command started in so many seconds; the leadership stays."""
        self.phase = replace(phase, start_at=now() + seconds)
        self._command.restarting(self.phase.start_at)

    def stop_command(self, until: float | None = None) -> None:
        """Ask the command to end: before ``until``, or within the grace period if there is no such time."""
        self._command.terminate(now() + self.stop_grace if until is None else until - KILL_MARGIN_S)

    def record_end(self, cause: str) -> None:
        """Write down why the present leadership ends, if nothing else has ended it before."""
        if not isinstance(self.phase, Standby) and self.phase.leader != self._recorded:
            self._recorded = self.phase.leader
            self._process.record_end(self._job, self._recorded, cause)

    def step_down(self, cause: str, reason: str) -> None:
        """Tell the contender that the leadership, if there is one, is to end; the revocation follows.

        Args:
            cause: one word, for the history.
            reason: one sentence, for the log.
        """
        self.record_end(cause)
        self.end_phase()
        self._process.step_down(self._job, reason)

    def end_phase(self) -> None:
        """From now on the command is not started again."""
        self._savepoints.end()
        if isinstance(self.phase, Leading | Reconciling):
            self.phase = Ending(self.phase.leader)
        elif isinstance(self.phase, Standby):
            self.phase = Standby()

    def take_up(self, leader: LeaderDirectory) -> None:
        """Take up the leadership of a sidecar that has died on this host, instead of contending."""
        self.phase = Reconciling(leader)
        self._process.adopt(self._job, leader, self._endpoints)

    def give_back(self) -> None:
        """Give the lease back, and contend again unless the sidecar ends."""
        successor = self.phase.successor if isinstance(self.phase, Ending) else ""
        self.phase = Standby()
        self._savepoints.end()
        self._command.given_up()
        self._process.release(self._job, successor)
        if self.exit_code is None:
            self._process.contend(self._job, self._endpoints)
