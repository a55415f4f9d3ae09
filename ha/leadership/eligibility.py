"""Eligibility: what a process has to know before it contends: its host is not drained, and its roots are sound.

Who cannot see an order to stay away stays away: it may be there.

The roots are tried once before a process may lead, each with ten requests at most. A job waits until the root where it
lies has kept the contract; a new one waits for all roots of a group. Whoever waits for a root that does not answer is
told later: a silent store proves nothing. A user who may not write at the root tries it in the job's directory, where a
leader must be allowed to write. A root whose quota is used up lets nothing be made, but takeovers must go on there: it
passes with a warning, because its first answer, to a rename of nothing, was right.
"""

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ha.placement.place import SEPARATOR
from leader.contender.runtime import Runtime
from leader.job.barring import bar_if_drained
from leader.layout.bar import Bar
from leader.timing import Timing
from store import contract
from store.bounded import BoundedFiles
from store.clock import now, wall
from store.errors import NoSpace, NotFound, PermissionDenied, StoreError
from store.files import Files
from store.outcome import Outcome

AGAIN_S = 30.0  # before a refusal is tried again: it may have been mended
MOST_CALLS = 10  # a try that was too slow gets twice as long, up to so many time-outs of a call

_log = logging.getLogger("ha")


class DrainedHost:
    """What one process knows of the order, by job."""

    def __init__(self, runtime: Runtime, files: BoundedFiles, timing: Timing, contender: str) -> None:
        """Look for nothing yet."""
        self._runtime, self._files, self._timing, self._contender = runtime, files, timing, contender
        self._lock = threading.Lock()
        self._blind: dict[str, str] = {}
        self.looked: set[str] = set()
        """Jobs of which it is known; on the runtime's thread."""
        self._waiting: dict[str, Callable[[], object]] = {}

    def unknown(self, job: str) -> str:
        """Return why it is not known, as a sentence; empty if it is, or was not asked."""
        with self._lock:
            return self._blind.get(job, "")

    def look(self, job: str) -> None:
        """Bar this process from the job in the background if its host is drained; asked until there is an answer."""
        self._files.submit(
            "drained",
            lambda driver: bar_if_drained(driver, job, self._contender, wall()),
            self._timing.call_timeout,
            lambda outcome: self._runtime.post(lambda: self._take(job, outcome)),
        )

    def then(self, job: str, act: Callable[[], object]) -> None:
        """Act as soon as it is known; on the runtime's thread."""
        if job in self.looked:
            act()
        else:
            self._waiting[job] = act

    def forget(self, job: str) -> None:
        """Act no more; on the runtime's thread."""
        self._waiting.pop(job, None)

    def _take(self, job: str, outcome: Outcome[Bar | None]) -> None:
        if not outcome.done:
            self._cannot_look(job, f"It is not known whether this host is drained: {outcome.error}.")
            pause = AGAIN_S if isinstance(outcome.error, PermissionDenied) else self._timing.retry
            self._runtime.call_at(now() + pause, lambda: self.look(job))
            return
        with self._lock:
            self._blind.pop(job, None)
        if (order := outcome.result()) is not None:
            _log.warning("%s: this host is %s, so it takes nothing over.", job, order)
        self.looked.add(job)
        if (act := self._waiting.pop(job, None)) is not None:
            act()

    def _cannot_look(self, job: str, sentence: str) -> None:
        with self._lock:
            told = job in self._blind
            self._blind[job] = sentence
        if not told:
            _log.warning("%s: %s It takes nothing over before that is known.", job, sentence)


class _Place(NamedTuple):
    root: str  # its URI
    job: str  # whose directory is tried; empty for the root itself


class _Waiting(NamedTuple):
    act: Callable[[], object]  # contends
    refuse: Callable[[str], object]  # takes the sentence that says what is broken


_kept: set[_Place] = set()
"""What this process has tried. A set: adding and asking are atomic, so no fork leaves it locked."""


class Trial:
    """The trial of one contender's roots. All but the constructor runs on the runtime's thread, or is posted to it."""

    def __init__(self, runtime: Runtime, files: BoundedFiles, timing: Timing) -> None:
        self._runtime, self._timing = runtime, timing
        self._roots: dict[str, BoundedFiles] = {files.uri: files}
        self._where: Callable[[str], str | None] = lambda _: files.uri
        if SEPARATOR in files.uri:
            from ha.placement.group_files import GroupFiles  # noqa: PLC0415  # most processes have one root

            if isinstance(files, GroupFiles):
                self._roots, self._where = files.roots, files.known
        self._broken: dict[_Place, str] = {}
        self._denied: set[str] = set()
        self._tries: dict[_Place, int] = {}
        self._errors: dict[_Place, type[StoreError]] = {}  # of the newest try of each
        self._asked: set[_Place] = set()
        self._waiting: dict[str, _Waiting] = {}
        self.said = ""
        """Why it is not known yet whether a root keeps the contract."""

    def then(self, job: str, act: Callable[[], object], refuse: Callable[[str], object]) -> None:
        """Have one of the two called as soon as the roots are known; both are called on the runtime's thread."""

        def begin() -> None:
            self._waiting[job] = _Waiting(act, refuse)
            self._look(job)

        self._runtime.post(begin)

    def forget(self, job: str) -> None:
        """Call nothing for the job any more."""
        self._runtime.post(lambda: self._waiting.pop(job, None))

    def _look(self, job: str) -> None:
        if job not in self._waiting:
            return
        places = {root: _Place(root, job if root in self._denied else "") for root in self._roots}
        unknown = [place for place in places.values() if place not in _kept]
        sentence = next((self._broken[each] for each in unknown if each in self._broken), "")
        if sentence:
            self._waiting.pop(job).refuse(sentence)
        elif not unknown or places.get(self._where(job) or "") in _kept:
            self._waiting.pop(job).act()
        else:
            for place in unknown:
                self._ask(place)

    def _ask(self, place: _Place) -> None:
        if place in self._asked:
            return
        self._asked.add(place)
        factor = min(2 ** self._tries.get(place, 0), MOST_CALLS)
        answered = partial(self._answered, place)
        self._roots[place.root].submit(
            "contract",
            lambda driver: _try(driver, place.job),
            factor * self._timing.call_timeout,
            lambda outcome: self._runtime.post(lambda: answered(outcome)),
        )

    def _answered(self, place: _Place, outcome: Outcome[str]) -> None:
        error = outcome.error
        if isinstance(error, NoSpace):
            _log.warning("%s could not be tried in full, because nothing can be made there: %s", place.root, error)
        if outcome.value and error is None:
            self._broken[place] = outcome.value
        elif error is None or isinstance(error, NoSpace):
            _kept.add(place)
        elif isinstance(error, PermissionDenied) and not place.job:
            self._denied.add(place.root)
        else:
            self._again(place, error)
            return
        self._look_again(place)

    def _again(self, place: _Place, error: StoreError) -> None:
        tries = self._tries[place] = min(self._tries.get(place, 0) + 1, MOST_CALLS)
        self.said = f"{place.root} could not be tried yet: {error}"
        if self._errors.get(place) is not type(error):  # its text has a path that no other try has
            self._errors[place] = type(error)
            _log.warning("%s", self.said)
        pause = min(2 ** (tries - 1) * self._timing.retry, self._timing.renewal)
        self._runtime.call_at(now() + pause, lambda: self._look_again(place))

    def _look_again(self, place: _Place) -> None:
        self._asked.discard(place)
        for job in list(self._waiting):
            self._look(job)


def _try(driver: Files, job: str) -> str:
    try:
        return contract.broken(driver, contract.fresh(job))
    except NotFound:  # no job has used this root yet
        if job:
            raise
        driver.make_root()
        return contract.broken(driver, contract.fresh())
