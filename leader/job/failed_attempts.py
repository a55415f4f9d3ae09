"""FailedAttempts: counts a job's failures in a row without progress, across all leaders. Behind the fence.

    graph/attempts=<failures>~<hopeless>~<batches>~<cause>~<host>~<0|1>[~<sequence>]
    graph/waits=<sequence>~<milliseconds>

The first folder counts: a failure renames it once, and nothing else does. A file would cost half a second, for which
the next leader would have to wait. It moves with the leader directory, so a change of leader forgets no failure.
Progress is a completed batch of any query. A remedy, if the last number says that there is one, lies in the folder, as
packed names. The second folder shows people that a leader waits because of the failures with that sequence.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import msgspec

from leader.errors import InvalidName
from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout import packed_names
from leader.layout.names import GRAPH, SEQUENCE, escape, unescape
from store.errors import AlreadyExists, NotFound, StoreError, Unknown
from store.files import Entry

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0
"""Between two tries. A command that has run for the longest pause is not failing at its start: that is progress too."""

TRIES = 4  # of one change, while changes that the store executes late come before it
LONGEST_CAUSE, LONGEST_HOST = 40, 100  # bytes of them in a name. It has 255, and its numbers take less than 100
_REMEDY = "remedy"
_NUMBER = "(0|[1-9][0-9]{0,17})"
_TEXT = "([A-Za-z0-9._-]*)"
_ATTEMPTS = re.compile(rf"attempts={_NUMBER}~{_NUMBER}~([0-9a-f]{{16}}|)~{_TEXT}~{_TEXT}~([01]){SEQUENCE}")
_WAITS = re.compile(rf"waits={_NUMBER}~{_NUMBER}")


class Attempts(msgspec.Struct, frozen=True):
    """Failures in a row."""

    failures: int = 0  # their number
    cause: str = ""  # how the last one has ended, in one word
    host: str = ""  # where that was
    batches: str = ""  # digest of the newest completed batch of each query at the last one; empty if there was none
    hopeless: int = 0  # how many of them no restart could mend; they use up no attempts
    remedy: str = ""  # what to do about the last one, because no restart mends it; empty if one may

    @property
    def used(self) -> int:
        """Attempts that are used up."""
        return self.failures - self.hopeless

    @property
    def pause(self) -> float:
        """Seconds before the next try: none after the first failure, then 1, 2, 4 and so on to 300."""
        # One that no restart mends is tried once on the next host, and then at the longest pause.
        if self.failures <= 1:
            return 0.0
        if self.remedy:
            return LONGEST_PAUSE_S
        return min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2.0 ** min(self.failures - 2, 20))


@dataclass(frozen=True, slots=True)
class _Found:
    """One listing of the folder."""

    # The failures so far, without the remedy.
    attempts: Attempts = Attempts()  # noqa: RUF009  # it is frozen
    name: str = ""  # of the folder that counts; empty if there is none yet
    sequence: int = 0  # its sequence; 0 if there is none
    has_remedy: bool = False  # whether a remedy lies in it
    older: tuple[str, ...] = ()  # other folders that counted once
    waits: tuple[str, ...] = ()  # names of the folders that say that a leader waits
    next_try_ms: int = 0  # when it tries again, by the store's clock; 0 if none waits


class FailedAttempts:
    """The failures of one job; only its leader changes them. Unreadable if somebody has damaged their entries."""

    def __init__(self, directory: FencedDirectory) -> None:
        self._directory = directory
        self._doubted: Attempts | None = None  # the last ones written, while it is not known whether they are

    def load(self) -> Attempts:
        """Return the failures so far: none if a batch has been completed since the last one."""
        found = self.shown()[0]
        return Attempts() if found.failures and self._batches() != found.batches else found

    def shown(self) -> tuple[Attempts, int]:
        """Return the last failures, and when the next try is, in milliseconds by the store's clock; 0 if none waits."""
        found = self._find()
        if not found.has_remedy:
            return found.attempts, found.next_try_ms
        inside = [each.name for each in self._directory.list(f"{GRAPH}/{found.name}")]
        remedy = packed_names.read(_REMEDY, str, inside) or ""
        return msgspec.structs.replace(found.attempts, remedy=remedy), found.next_try_ms

    def wait(self, seconds: float) -> None:
        """Note for how long the present leader waits, so that others can say when the next try is; 0: it tries now."""
        found = self._find()
        for each in found.waits:
            self._directory.delete(f"{GRAPH}/{each}")
        if seconds:
            self._directory.make_folder(f"{GRAPH}/waits={found.sequence}~{round(seconds * 1000)}")

    def add(self, cause: str, host: str, seconds: float, remedy: str = "") -> Attempts:
        """Count a failure, unless there was progress; return the failures in a row. Called again, it counts once."""
        # Again: on the same object, after an unknown outcome.
        if seconds >= LONGEST_PAUSE_S:
            self.forget()
            return Attempts()
        batches = self._batches()

        def after(before: Attempts) -> Attempts:
            if self._doubted is not None and before == msgspec.structs.replace(self._doubted, remedy=""):
                return self._doubted  # it is there, and a name that is only seen may be forgotten
            if batches != before.batches:
                before = Attempts()
            hopeless = before.hopeless + bool(remedy)
            return Attempts(before.failures + 1, cause, host, batches, hopeless, remedy)

        return self._change(after)

    def forget(self) -> None:
        """Reset the count."""
        if self._find().name:
            self._change(lambda _: Attempts())

    def _change(self, change: Callable[[Attempts], Attempts]) -> Attempts:
        for _ in range(TRIES):
            found = self._find()
            attempts = change(found.attempts)
            self._doubted = attempts
            with suppress(AlreadyExists, NotFound):  # a former change of this leader was executed only now
                self._replace(found, attempts)
                self._doubted = None
                return attempts
        raise Unknown(f"The failures of job {self._directory.job!r} keep changing.")

    def _batches(self) -> str:
        return _digest(Checkpoints(self._directory).state().queries)

    def _replace(self, found: _Found, attempts: Attempts) -> None:
        source, older = f"{GRAPH}/{found.name}", found.older
        if attempts.remedy or not found.name:
            source, older = self._new(attempts.remedy), (*older, found.name)
        self._directory.commit(source, f"{GRAPH}/{_name(attempts)}", max(found.sequence, 1) + 1)
        with suppress(StoreError):  # the newest one counts
            for each in filter(None, older):
                self._directory.delete(f"{GRAPH}/{each}")

    def _new(self, remedy: str) -> str:
        """Make a folder that counts nothing yet, with the remedy in it; returns its path."""
        self._directory.make_folder(GRAPH)
        if not remedy:
            self._directory.make_folder(made := f"{GRAPH}/{_name(Attempts())}")
            return made
        made = self._directory.stage(None)
        for each in packed_names.written(_REMEDY, remedy):
            self._directory.make_folder(f"{made}/{each}")
        return made

    def _find(self) -> _Found:
        return _read(self._directory.list(GRAPH))


def _read(entries: Sequence[Entry]) -> _Found:
    counted = filter(None, (_counted(each.name) for each in entries))
    counts = sorted(counted, key=lambda each: (each.sequence, each.name))
    waits = [(each, match) for each in entries if (match := _WAITS.fullmatch(each.name))]
    names = tuple(each.name for each, _ in waits)
    if not counts:
        return _Found(waits=names)
    newest = counts[-1]
    until = [each.modified_ms + int(match[2]) for each, match in waits if int(match[1]) == newest.sequence]
    older = tuple(each.name for each in counts[:-1])
    return replace(newest, older=older, waits=names, next_try_ms=max(until, default=0))


def _counted(name: str) -> _Found | None:
    """Read the name of a folder that counts; None if it was not written here."""
    match = _ATTEMPTS.fullmatch(name)
    if match is None:
        return None
    try:
        attempts = Attempts(int(match[1]), unescape(match[4]), unescape(match[5]), match[3], int(match[2]))
    except InvalidName:
        return None
    return _Found(attempts, name, int(match[7] or 1), match[6] == "1")


def _name(attempts: Attempts) -> str:
    cause, host = _short(attempts.cause, LONGEST_CAUSE), _short(attempts.host, LONGEST_HOST)
    counted = f"{attempts.failures}~{attempts.hopeless}~{attempts.batches}"
    return f"attempts={counted}~{cause}~{host}~{int(bool(attempts.remedy))}"


def _short(text: str, most: int) -> str:
    while len(escaped := escape(text)) > most:
        text = text[:-1]
    return escaped


def _digest(batches: dict[str, int]) -> str:
    if not batches:
        return ""
    return hashlib.sha256(msgspec.json.encode(sorted(batches.items()))).hexdigest()[:16]
