"""Schedule of the liveness probe: when a run of the command is tried, and when it counts as dead."""

from dataclasses import dataclass, field

PAUSE_S = 2.0
"""A try that begins or ends so much too late was paused, as on a suspended machine: its failure does not count."""

LATE_S = 0.5  # a try that has not come back this long after its time-out has failed; the next one waits until it has
NO_ANSWER = "it has no answer in time"


@dataclass(slots=True)
class Schedule:
    """The tries of one run. The caller gives the time; durations in seconds."""

    due: float  # when the next try is due
    period: float  # from one try to the next
    timeout: float  # of one try; infinite if the probe ends by itself
    threshold: int  # failures in a row after which the run is dead
    failures: int = 0  # in a row
    wrong: str = ""  # the fault that the last failed try has found
    _began: float | None = field(default=None)
    _late: bool = field(default=False)

    @property
    def dead(self) -> bool:
        """Whether the run is dead."""
        return self.failures >= self.threshold

    def look(self, at: float) -> bool:
        """Take note of the time; returns whether a try begins now. One that is late has failed."""
        if self._began is None:
            if at >= self.due:
                self._began, self._late = at, False
                return True
        elif self._late:
            if at >= self.due:
                self._note(self.due, at, NO_ANSWER)
        elif at >= self._began + self.timeout + LATE_S:
            self._late = True
            self._note(self._began, at, NO_ANSWER)
        return False

    def answered(self, began: float, ended: float, wrong: str | None) -> None:
        """Note a try that has come back; ``wrong`` is the fault, empty if alive, None (no change) if not known."""
        if self._began != began:
            return  # of an earlier run
        late, self._began, self._late = self._late, None, False
        if not late:
            self._note(began, ended, wrong)

    def _note(self, began: float, ended: float, wrong: str | None) -> None:
        paused = began - self.due > PAUSE_S or ended - began > self.timeout + PAUSE_S
        self.due = ended + self.period if paused else max(self.due + self.period, ended)
        if wrong == "":
            self.failures = 0
        elif wrong is not None:
            self.wrong, self.failures = wrong, self.failures + (not paused)
