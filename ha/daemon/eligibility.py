"""Eligibility: whether this process could lead its jobs at all, found out at the start and not at the takeover.

A standby that may not write in a job's directory stands by for ever and takes nothing over. The check renames the
leader directory and the lease to their own names: whatever the store answers, nothing has changed.
What bars every takeover, as a snapshot of the leader directory does, may come later. So it is looked for all the time,
but rarely, also by the leader, so the problem is logged before it hits. So is an installation that was replaced.
"""

import logging
import threading
from collections.abc import Callable

from ha.hosts.installation import replaced
from leader.contender.runtime import Runtime
from leader.layout.tree import check_writable
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.clock import now
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
        self._told = False  # whether it is known that the installation was replaced

    def obstacle(self, job: str) -> str | None:
        """Return why this process cannot lead the job, as one sentence; None if nothing is known against it."""
        with self._lock:
            if (lack := replaced()) and not self._told:
                _log.warning("%s: %s", job, lack)
            self._told = bool(lack)
            return self._refused.get(job) or self._obstacles.get(job) or lack or None

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
            self._runtime.post(lambda: self._runtime.call_at(now() + pause, lambda: self.check(job, also)))

        def look(driver: Files) -> None:
            check_writable(driver, job)
            if also is not None:
                also(driver)

        self._files.submit("probe", look, self._timing.call_timeout, answered)

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
