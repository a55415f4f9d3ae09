"""Rules of checkpoints (S4, S5) and of answers (S5, R1, R2): ids are unique, what was told stays and never goes back.

Readers are judged by this. So it shares nothing with :mod:`leader.layout.information`, by which they read: a mistake
there would otherwise be right by definition.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from ha.history.events import (
    CheckpointsRead,
    Completed,
    Counted,
    Event,
    Granted,
    LookedUp,
    Published,
    Stored,
    Violation,
)
from leader.layout.names import CHECKPOINTS, LeaderDirectory, newest

Snapshots = Sequence[tuple[float, Mapping[str, int]]]

_QUERY = re.compile(r"([^=]+)=([0-9]+)(?:~.*)?")  # an entry of the counter or of a query's checkpoint, with its number
_CHECKPOINT = re.compile(r"([^=]+)=([0-9]+)~([0-9]+)~.*")
"""Query, batch and id of a checkpoint; the format of the rest of its name may change."""

T = TypeVar("T")


class Highest(Generic[T]):
    """The highest number that had been told by some time, and by whom; what begins later may not tell a lower one."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._highest: list[tuple[int, T]] = []  # when each of these had ended

    def before(self, at: float) -> tuple[int, T] | None:
        """Return the highest one that had ended by then. Those that went on beside it say nothing."""
        ended = bisect_right(self._ends, at)
        return self._highest[ended - 1] if ended else None

    def add(self, ended: float, number: int, teller: T) -> None:
        """Add one that has ended after the others."""
        known = self._highest[-1] if self._highest else None
        self._ends.append(ended)
        self._highest.append(known if known is not None and known[0] >= number else (number, teller))


def check_checkpoints(events: Sequence[Event], job: str, tolerance: float) -> Iterator[Violation]:
    """Yield each break of S4 and S5 in the events of one job; see :func:`ha.history.checker.check`."""
    yield from _ids(events)
    yield from _ids_of_checkpoints(events)
    snapshots = _snapshots(events, job)
    yield from _never_back(snapshots)
    if snapshots:
        yield from _acknowledged(events, snapshots, tolerance)
    yield from _reads(events)


def _ids(events: Sequence[Event]) -> Iterator[Violation]:
    seen: dict[int, Counted] = {}
    highest: Highest[Counted] = Highest()
    for event in sorted((each for each in events if isinstance(each, Counted)), key=lambda each: each.ended):
        before = highest.before(event.at)
        if event.id in seen:
            first = seen[event.id]
            both = " and to ".join(f"{each.contender} at epoch {each.epoch}" for each in (first, event))
            yield Violation("S4", event.ended, f"Checkpoint id {event.id} was handed out twice: to {both}.")
        elif before is not None and event.id < before[0]:
            yield Violation("S4", event.ended, f"Checkpoint id {event.id} was handed out after {before[0]}.")
        seen[event.id] = event
        highest.add(event.ended, event.id, event)


def _ids_of_checkpoints(events: Sequence[Event]) -> Iterator[Violation]:
    """A completed checkpoint has an id of its own: no other batch has it, and no call handed it out."""
    counted = {event.id for event in events if isinstance(event, Counted)}
    batches: dict[int, str] = {}
    for event in events:
        if not isinstance(event, Stored) or f"/{CHECKPOINTS}/" not in event.path:
            continue
        name = (event.target or event.path).rpartition("/")[2]
        if match := _CHECKPOINT.fullmatch(name):
            number, batch = int(match[3]), f"{match[1]}={match[2]}"
            first = "a caller of next()" if number in counted else batches.setdefault(number, batch)
            if first != batch:
                yield Violation("S4", event.at, f"Checkpoint id {number} was handed out twice: to {first} and {batch}.")


def _entries(names: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        if match := _QUERY.fullmatch(name):
            found[match[1]] = max(int(match[2]), found.get(match[1], -1))
    return found


def _snapshots(events: Sequence[Event], job: str) -> list[tuple[float, dict[str, int]]]:
    """Each state of the counter and the queries that the store has held, and since when."""
    tree = PathTree(job)
    found: list[tuple[float, dict[str, int]]] = []
    for event in events:
        if isinstance(event, Stored) and (f"/{CHECKPOINTS}/" in event.path or "/" not in event.path):
            tree.apply(event)
            found.append((event.at, _entries(tree.checkpoints)))
    return found


def _never_back(snapshots: Snapshots) -> Iterator[Violation]:
    for (_, before), (at, after) in pairwise(snapshots):
        for name, value in before.items():
            if after.get(name, -1) < value:
                yield Violation("S4", at, f"{name} went from {value} back to {after.get(name, 'nothing')}.")


def _acknowledged(events: Sequence[Event], snapshots: Snapshots, tolerance: float) -> Iterator[Violation]:
    """An acknowledged number is in the store by the time of the answer; S4 says that it stays there."""
    for event in events:
        match event:
            case Completed(query=name, batch=value):
                pass
            case Counted(id=number):
                name, value = "next", number + 1
            case _:
                continue
        held = bisect_right(snapshots, event.ended + tolerance, key=lambda snapshot: snapshot[0])
        if held == 0 or snapshots[held - 1][1].get(name, -1) < value:
            yield Violation("S5", event.ended, f"{name}={value} was acknowledged, and the store does not hold it.")


def _reads(events: Sequence[Event]) -> Iterator[Violation]:
    readers: dict[str, dict[str, Highest[CheckpointsRead]]] = {}
    for event in sorted((each for each in events if isinstance(each, CheckpointsRead)), key=lambda each: each.ended):
        numbers = {"": event.next_id, **event.queries}
        highest = readers.setdefault(event.reader, {})
        known = [(name, each.before(event.at)) for name, each in highest.items()]
        if back := [found[1] for name, found in known if found is not None and numbers.get(name, -1) < found[0]]:
            both = " and later ".join(f"next={each.next_id} {dict(each.queries)}" for each in (back[0], event))
            yield Violation("S4", event.ended, f"{event.reader} read {both}.")
        for name, number in numbers.items():
            highest.setdefault(name, Highest()).add(event.ended, number, event)


@dataclass
class PathTree:
    """The names below one job's directory at any time, replayed from the changes that the file system has executed."""

    job: str
    names: set[str] = field(default_factory=set)
    directory: LeaderDirectory | None = None

    def apply(self, event: Stored) -> None:
        """Replay a change."""
        if event.operation == "rename":
            moved = {name for name in self.names if name == event.path or name.startswith(event.path + "/")}
            self.names -= moved
            self.names |= {event.target + name[len(event.path) :] for name in moved} | {event.target}
        elif event.operation == "make":
            self.names.add(event.path)
        elif event.path == ".":
            self.names, self.directory = set(), None  # the job was deleted by hand
        else:
            self.names = {name for name in self.names if name != event.path and not name.startswith(event.path + "/")}
        found = newest([path.partition("/")[0] for path in (event.path, event.target)])
        if found is not None and (self.directory is None or found > self.directory):
            self.directory = found

    def listed(self, folder: str) -> list[str]:
        """The names in a folder of the present leader directory."""
        if self.directory is None:
            return []
        prefix = f"{self.directory.name}/{folder}/"
        return [
            name[len(prefix) :] for name in self.names if name.startswith(prefix) and "/" not in name[len(prefix) :]
        ]

    @property
    def checkpoints(self) -> list[str]:
        """The entries of the counter and the queries."""
        return self.listed(CHECKPOINTS)


class PublishedAnswer(NamedTuple):
    """An answer, and since when all its parts are in the file system."""

    since: float
    epoch: int  # this and the session id are those of the leader directory
    session_id: str
    endpoints: tuple[tuple[str, str], ...]  # names and addresses, sorted


def published_answers(events: Sequence[Event]) -> Iterator[PublishedAnswer]:
    """Yield each answer of one job as soon as the last of its entries has been made in the file system."""
    # An entry counts for the directory in which it was made, if it bears the directory's epoch.
    parts: dict[tuple[str, str], dict[str, str]] = {}  # by a leader directory, and a publication below it
    for event in events:
        if not isinstance(event, Stored) or event.operation not in ("make", "rename"):
            continue
        directory, _, entry = (event.target or event.path).partition("/record/endpoint~")
        epoch, _, session_id = directory.partition("-")
        fields = entry.split("~", 3)
        if len(fields) != 4 or fields[0] != epoch:  # noqa: PLR2004  # epoch, version, count, name=address
            continue
        _, version, count, endpoint = fields
        name, _, address = endpoint.partition("=")
        found = parts.setdefault((directory, version), {})
        found[name] = unquote(address.replace("_", "%"))
        if len(found) == max(1, int(count)):
            endpoints = tuple(sorted(found.items())) if int(count) else ()
            yield PublishedAnswer(event.at, int(epoch), session_id, endpoints)


# --- S5 of leaderships: what a leader was told is in the file system by then


def check_leaderships(events: Sequence[Event], tolerance: float) -> Iterator[Violation]:
    """Yield each grant and publication that was acknowledged, and that the store does not hold by then."""
    stored: dict[tuple[object, ...], float] = {}
    for event in events:
        claimed = LeaderDirectory.parse(event.target) if isinstance(event, Stored) else None
        if claimed is not None:
            stored.setdefault((claimed.epoch, claimed.session_id), event.at)
    for answer in published_answers(events):
        stored.setdefault(answer[1:], answer.since)
    for event in events:
        match event:
            case Granted():
                what: tuple[object, ...] = event.epoch, event.session_id
            case Published():
                what = _answer(event)
            case _:
                continue
        if stored.get(what, inf) > event.at + tolerance:
            sentence = f"{event.contender} was told that {what} is stored, and the store does not hold it."
            yield Violation("S5", event.at, sentence)


# --- R1 and R2: a reader is told epochs that never go back, and answers that a real grant has published

_Answer = tuple[int, str, tuple[tuple[str, str], ...]]


def check_lookups(events: Sequence[Event], tolerance: float) -> Iterator[Violation]:
    """Yield each break of R1 and R2 in one job's events; see :func:`check`."""
    lookups = [event for event in events if isinstance(event, LookedUp) and event.outcome == "leader"]
    known = _published(events)
    for event in lookups:
        since = known.get(_answer(event))
        if since is None or since > event.ended + tolerance:
            early = f"{since - event.ended:.3f} s before it was published" if since is not None else ""
            answer = f"epoch {event.epoch}, {dict(event.endpoints)}, {early or 'that was never published'}"
            yield Violation("R2", event.ended, f"{event.reader} was told {answer}.")
    yield from _order(lookups)


def _answer(event: LookedUp | Published) -> _Answer:
    return event.epoch, event.session_id, tuple(sorted(event.endpoints.items()))


def _published(events: Sequence[Event]) -> dict[_Answer, float]:
    """Every correct answer, and since when it is one: from the file system's changes, else from what leaders said.

    A leader says that it has published when it has been told so. Readers may see it earlier, not before the grant.
    """
    found: dict[_Answer, float] = {}
    granted: dict[tuple[int, str], float] = {}
    for event in events:
        if isinstance(event, Granted):
            granted.setdefault((event.epoch, event.session_id), event.at)  # it may be granted again: taken up
    if any(isinstance(event, Stored) for event in events):
        for answer in published_answers(events):
            since = granted.get(answer[1:3])
            if since is not None:
                found.setdefault(answer[1:], max(answer.since, since))
        return found
    for event in events:
        if isinstance(event, Published):
            found.setdefault(_answer(event), granted.get((event.epoch, event.session_id), event.at))
    return found


def _order(lookups: Sequence[LookedUp]) -> Iterator[Violation]:
    readers: dict[str, Highest[LookedUp]] = {}
    sessions: dict[tuple[str, int], str] = {}
    for event in sorted(lookups, key=lambda each: each.ended):
        highest = readers.setdefault(event.reader, Highest())
        known = highest.before(event.at)
        if known is not None and event.epoch < known[0]:
            yield Violation("R1", event.ended, f"{event.reader} was told epoch {known[0]}, and later {event.epoch}.")
        if sessions.setdefault((event.reader, event.epoch), event.session_id) != event.session_id:
            yield Violation("R1", event.ended, f"{event.reader} was told two sessions of epoch {event.epoch}.")
        highest.add(event.ended, event.epoch, event)
