"""Liveness: when a sidecar probes its command, and when the command counts as dead.

:class:`Schedule` decides, and is pure. :class:`Liveness` makes each try on a thread of its own, because nothing bounds
a name server or a server that sends a byte now and then. The sidecar's thread only looks at what has come back.
"""

import logging
import threading
from collections.abc import Callable

from ha.sidecar.probes import Probe
from leader.errors import NotLeader
from store.clock import now
from store.errors import StoreError

PAUSE_S = 2.0
"""A try that begins or ends later than it should by more than this was paused, and the command perhaps with it, as on a
suspended machine: that it failed does not count."""

LATE_S = 0.5
"""A try that has not come back this long after its time-out has failed; the next one waits until it has."""

NO_ANSWER = "it has no answer in time"

_log = logging.getLogger("ha")


class Schedule:
    """The tries of one run of the command. The caller gives the time."""

    def __init__(self, began: float, *, initial_delay: float, period: float, timeout: float, threshold: int) -> None:
        """Begin; durations in seconds.

        Args:
            began: when the command was granted the job, or was started again.
            initial_delay: from then to the first try.
            period: from one try to the next.
            timeout: of one try; infinite if the probe ends by itself.
            threshold: failures in a row after which the command is dead.
        """
        self.due = began + initial_delay
        self.failures = 0
        self._period, self.timeout, self.threshold = period, timeout, threshold

    @property
    def dead(self) -> bool:
        """Whether the command is dead."""
        return self.failures >= self.threshold

    def answered(self, began: float, ended: float, *, alive: bool | None) -> None:
        """Note a try.

        Args:
            began: when it began.
            ended: when it ended.
            alive: whether the command is alive; None if that is not known, which changes nothing.
        """
        paused = began - self.due > PAUSE_S or ended - began > self.timeout + PAUSE_S
        self.due = ended + self._period if paused else max(self.due + self._period, ended)
        if alive:
            self.failures = 0
        elif alive is False and not paused:
            self.failures += 1


def _in_background(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="ha-probe", daemon=True).start()


class Liveness:
    """Probes one run of the command; :meth:`look` is to be called at least every two seconds."""

    def __init__(
        self,
        job: str,
        probe: Probe,
        schedule: Schedule,
        clock: Callable[[], float] = now,
        start: Callable[[Callable[[], None]], object] = _in_background,
    ) -> None:
        """Ask nothing yet.

        Args:
            job: name of the job, for the log.
            probe: makes one try.
            schedule: of this run.
            clock: gives seconds.
            start: has a function called elsewhere, and returns at once.
        """
        self._job, self._probe, self._schedule, self._clock, self._start = job, probe, schedule, clock, start
        self._try: _Try | None = None
        self.wrong = ""
        """The fault that the last failed try has found."""

    def look(self) -> bool:
        """Take what has come back, and begin a try if one is due; returns whether the command is dead."""
        at, trying = self._clock(), self._try
        if trying is not None and trying.ended is not None:
            self._try = None
            if not trying.given_up:
                self._note(trying.began, trying.ended, trying.wrong)
        elif trying is not None and not trying.given_up and at >= trying.began + self._schedule.timeout + LATE_S:
            trying.given_up = True
            self._note(trying.began, at, NO_ANSWER)
        elif trying is not None and trying.given_up and at >= self._schedule.due:
            self._note(self._schedule.due, at, NO_ANSWER)
        elif trying is None and at >= self._schedule.due:
            self._try = begun = _Try(at)
            self._start(lambda: self._ask(begun))
        return self._schedule.dead

    def _ask(self, trying: "_Try") -> None:
        try:
            trying.wrong = self._probe(self._schedule.timeout)
        except TimeoutError:
            trying.wrong = NO_ANSWER
        except OSError as error:
            trying.wrong = error.strerror or f"{error}"
        except (StoreError, NotLeader) as error:
            _log.warning("%s: whether the command makes progress is not known: %s", self._job, error)
            trying.wrong = None
        except Exception:  # noqa: BLE001  # our own fault, for which no command is to be killed
            _log.exception("%s: the liveness probe cannot ask.", self._job)
            trying.wrong = None
        trying.ended = self._clock()

    def _note(self, began: float, ended: float, wrong: str | None) -> None:
        schedule = self._schedule
        schedule.answered(began, ended, alive=None if wrong is None else not wrong)
        if wrong:
            self.wrong = wrong
            said = "%s: the liveness probe has failed (%d of %d): %s."
            _log.warning(said, self._job, schedule.failures, schedule.threshold, wrong)


class _Try:
    """One try: written by its thread, ``ended`` last, and read by the sidecar's."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.ended: float | None = None
        self.wrong: str | None = ""
        self.given_up = False
