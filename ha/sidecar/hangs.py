"""Hangs: whether the command of a sidecar still does its work, by the driver's heartbeat and by the liveness probe."""

from dataclasses import dataclass

from ha.config.settings import Settings
from ha.sidecar.command import Command
from ha.sidecar.heartbeat import Beat, Watch
from ha.sidecar.liveness import Liveness, Schedule
from ha.sidecar.probes import PROGRESS, ProbeOf
from leader.job.fenced_directory import FencedDirectory
from leader.timing import NEVER
from store.clock import now

HANG, PROBE_FAILED = "hang", "probe-failed"
"""How a leadership ended, in one word of the history."""


@dataclass(frozen=True, slots=True)
class Hang:
    """A command that does not do its work any more.

    Attributes:
        cause: one word, for the history.
        said: one sentence.
        beat: tells which processes to ask for their stacks; None if the program does not beat.
    """

    cause: str
    said: str
    beat: Beat | None


class HangWatch:
    """Watches one command; a run of it is watched from its grant until it has ended, or was asked to."""

    def __init__(self, settings: Settings, command: Command, probe_of: ProbeOf | None) -> None:
        """Watch nothing yet; ``probe_of`` is None for no liveness probe."""
        self._settings, self._command, self._probe_of = settings, command, probe_of
        self._heartbeat = Watch(settings.heartbeat_timeout)
        self._liveness: Liveness | None = None

    def begin(self, directory: FencedDirectory) -> None:
        """Begin with a run that was granted this directory just now."""
        if self._probe_of is None:
            return
        settings = self._settings
        schedule = Schedule(
            now(),
            initial_delay=settings.liveness_initial_delay,
            period=settings.liveness_period,
            timeout=NEVER if settings.liveness_probe.startswith(PROGRESS) else settings.liveness_timeout,
            threshold=settings.liveness_failure_threshold,
        )
        probe = self._probe_of(directory, self._command.variables(directory.leader))
        self._liveness = Liveness(directory.job, probe, schedule)

    def end(self) -> None:
        """Watch no more."""
        self._liveness = None
        self._heartbeat.hangs(now(), None)

    def look(self) -> Hang | None:
        """Look once, as at least every two seconds; returns the hang, if there is one."""
        if not self._command.runs or self._command.kill_at != NEVER:
            self.end()
            return None
        beat = self._command.beat
        if self._heartbeat.hangs(now(), beat):
            return Hang(HANG, f"The driver did not answer for {self._heartbeat.silence:.0f} s.", beat)
        if self._liveness is not None and self._liveness.look():
            times = self._settings.liveness_failure_threshold
            return Hang(PROBE_FAILED, f"The liveness probe has failed {times} times: {self._liveness.wrong}.", beat)
        return None
