"""Publications: the information that readers of a job find in the file system, replayed from its changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ha.history.checkpoint_rules import PathTree
from ha.history.events import Event, Stored
from leader.layout.information import LeaderInformation, Record
from leader.layout.names import RECORD


@dataclass(frozen=True, slots=True)
class Publication:
    """The information that readers find from a time on."""

    since: float
    information: LeaderInformation | None


def publications(events: Sequence[Event], job: str) -> Iterator[Publication]:
    """Yield every change of the information that readers find in the file system, in order."""
    tree = PathTree(job)
    last: LeaderInformation | None = None
    for event in events:
        if isinstance(event, Stored) and (f"/{RECORD}/" in event.path or "/" not in event.path):
            tree.apply(event)
            now = Record.parse(tree.listed(RECORD)).published(job, tree.directory) if tree.directory else None
            if now != last:
                last = now
                yield Publication(event.at, now)
