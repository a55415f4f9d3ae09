"""EngineWatch: has failures of an engine's program counted and kept, which end no command and no leadership."""

import logging

from ha.metrics.contending import CommandCounters
from ha.sidecar.command import Command
from ha.sidecar.failures import CommandFailures, end_of_command
from leader.layout.names import LeaderDirectory

_log = logging.getLogger("ha")


class EngineWatch:
    """Watches the engine of one command, if it has one."""

    def __init__(self, job: str, command: Command, failures: CommandFailures, counters: CommandCounters) -> None:
        """Watch nothing yet."""
        self._job, self._command, self._failures, self._counters = job, command, failures, counters
        self._run, self._known = 0, 0

    def begin(self) -> None:
        """Take what has happened until now for known: another sidecar has led then."""
        self._run, self._known = self._command.starts, self._command.engine.failures

    def look(self, leader: LeaderDirectory) -> None:
        """Tell of a program that has failed and is started again; its last end is that of the command."""
        if self._run != self._command.starts:
            self._run, self._known = self._command.starts, 0
        state = self._command.engine
        if state.failures <= self._known or state.gave_up:
            return
        self._known = state.failures
        self._counters.restarted()
        _log.warning(
            "%s: the program has ended with %d; its JVM and queries go on, and it is started again in %.1f s.",
            self._job, state.code, state.delay,
        )  # fmt: skip
        said = f"The program has ended with {state.code}, and is started again: see its output. Its queries go on."
        self._failures.tell(leader, end_of_command(state.code, finished=False), said)
