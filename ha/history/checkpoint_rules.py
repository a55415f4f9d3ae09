"""Checker of S4 and S5: checkpoint ids are unique, checkpoints never go back, and acknowledged ones stay."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ha.history.events import CheckpointsRead, Completed, Counted, Event, Stored, Violation
from ha.history.highest import Highest
from leader.layout.names import CHECKPOINTS, LeaderDirectory, newest

Snapshots = Sequence[tuple[float, Mapping[str, int]]]

_QUERY = re.compile(r"([^=]+)=([0-9]+)(?:~.*)?")  # an entry of the counter or of a query's checkpoint, with its number

_CHECKPOINT = re.compile(r"([^=]+)=([0-9]+)~([0-9]+)~.*")
"""Query, batch and id of a checkpoint; the format of the rest of its name may change."""


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
