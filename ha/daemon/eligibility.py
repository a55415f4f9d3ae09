"""Eligibility: whether this process could lead its jobs at all, found out at the start and not at the takeover.

A standby that may not write in a job's directory stands by for ever and takes nothing over. The check renames the
leader directory and the lease to their own names: whatever the store answers, nothing has changed.
What bars every takeover, as a snapshot of the leader directory does, may come later. So it is looked for all the time,
but rarely, also by the leader, so the problem is logged before it hits.
"""

import logging
import threading
from collections.abc import Callable

from ha.hosts.installation import gone
from leader.contender.runtime import Runtime
from leader.job.barring import bar_if_drained
from leader.layout.bar import Bar
from leader.layout.tree import check_writable
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.clock import now, wall
from store.errors import NotSent, NotWritable, PermissionDenied, Refused
from store.files import Files
from store.outcome import Outcome

AGAIN_S = 30.0  # an obstacle is looked at again after this time: it may have been mended
RARELY_S = 600.0  # without an obstacle it is looked for one after this time: four calls of the store

Look = Callable[[Files], None]

_log = logging.getLogger("ha")


class Eligibility:
    """The reasons why this process cannot lead, by job."""

    def __init__(self, runtime: Runtime, files: BoundedFiles, timing: Timing) -> None:
        self._runtime, self._files, self._timing = runtime, files, timing
        self._lock = threading.Lock()
        self._obstacles: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._blind: dict[str, str] = {}  # by job, why it is not known whether this host is drained
        self.looked: set[str] = set()
        """Jobs of which it is known whether this host is drained; on the runtime's thread."""
        self._waiting: dict[str, Callable[[], object]] = {}  # until then, on the runtime's thread

    def obstacle(self, job: str) -> str | None:
        """Return why this process cannot lead the job, as one sentence; None if nothing is known against it."""
        with self._lock:
            return self._refused.get(job) or self._blind.get(job) or self._obstacles.get(job) or gone() or None

    def refuse(self, job: str, sentence: str) -> None:
        """Note an obstacle that lasts as long as this process."""
        with self._lock:
            self._refused[job] = sentence

    def check(self, job: str, also: Look | None = None) -> None:
        """Ask the store in the background whether this process may write in the job; again sooner if it may not."""
        # ``also`` is called each time after that, and raises nothing.

        def answered(outcome: Outcome[None]) -> None:
            self._note(job, outcome)
            pause = RARELY_S if self.obstacle(job) is None else AGAIN_S
            self._call_later(lambda: self.check(job, also), pause)

        def look(driver: Files) -> None:
            check_writable(driver, job)
            if also is not None:
                also(driver)

        self._files.submit("probe", look, self._timing.call_timeout, answered)

    def look_for_drain(self, job: str, contender: str) -> None:
        """Bar this process from the job in the background if its host is drained; asked until there is an answer."""

        def look(driver: Files) -> Bar | None:
            return bar_if_drained(driver, job, contender, wall())

        def answered(outcome: Outcome[Bar | None]) -> None:
            self._runtime.post(lambda: self._take(job, contender, outcome))

        self._files.submit("drained", look, self._timing.call_timeout, answered)

    def when_looked(self, job: str, act: Callable[[], object]) -> None:
        """Act as soon as that is answered: who cannot see an order to stay away stays away. On the runtime's thread."""
        if job in self.looked:
            act()
        else:
            self._waiting[job] = act

    def forget(self, job: str) -> None:
        """Act no more; on the runtime's thread."""
        self._waiting.pop(job, None)

    def _take(self, job: str, contender: str, outcome: Outcome[Bar | None]) -> None:
        if not outcome.done:
            self._cannot_look(job, outcome)
            pause = AGAIN_S if isinstance(outcome.error, PermissionDenied) else self._timing.retry
            self._runtime.call_at(now() + pause, lambda: self.look_for_drain(job, contender))
            return
        with self._lock:
            self._blind.pop(job, None)
        if (order := outcome.result()) is not None:
            _log.warning("%s: this host is %s, so it takes nothing over.", job, order)
        self.looked.add(job)
        if (act := self._waiting.pop(job, None)) is not None:
            act()

    def _cannot_look(self, job: str, outcome: Outcome[Bar | None]) -> None:
        sentence = f"It is not known whether this host is drained: {outcome.error}."
        with self._lock:
            told = self._blind.get(job)
            self._blind[job] = sentence
        if told is None:
            _log.warning("%s: %s It takes nothing over before that is known.", job, sentence)

    def _note(self, job: str, outcome: Outcome[None]) -> None:
        """Take an answer. A store that does not answer, or is in safe mode, says nothing about this process."""
        with self._lock:
            error, known = outcome.error, self._obstacles.get(job)
        if isinstance(error, Refused) and not isinstance(error, NotWritable | NotSent) and known is None:
            sentence = f"The job cannot be taken over: {error}."
            if isinstance(error, PermissionDenied):
                sentence = (
                    f"This process cannot take the job over, because its user may not write in {self._files.uri}/{job} "
                    f"or below it ({error}): give that right to the user."
                )
            _log.error("%s: not eligible. %s", job, sentence)
            with self._lock:
                self._obstacles[job] = sentence
        elif known is not None and outcome.done:
            _log.info("%s: eligible again: this process may change the job's directory now.", job)
            with self._lock:
                self._obstacles.pop(job, None)

    def _call_later(self, callback: Callable[[], None], seconds: float) -> None:
        self._runtime.post(lambda: self._runtime.call_at(now() + seconds, callback))
