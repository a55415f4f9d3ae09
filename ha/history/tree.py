"""Tree: the names of a job at any time, replayed from the changes that the file system has executed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ha.history.events import Event, Stored
from leader.layout.information import LeaderInformation, Record
from leader.layout.names import CHECKPOINTS, RECORD, LeaderDirectory, newest


@dataclass
class Tree:
    """The names below one job's directory."""

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
    def published(self) -> LeaderInformation | None:
        """The information that a reader finds there."""
        return Record.parse(self.listed(RECORD)).published(self.job, self.directory) if self.directory else None

    @property
    def checkpoints(self) -> list[str]:
        """The entries of the counter and the queries."""
        return self.listed(CHECKPOINTS)


@dataclass(frozen=True, slots=True)
class Publication:
    """The information that readers find from a time on."""

    since: float
    information: LeaderInformation | None


def publications(events: Sequence[Event], job: str) -> Iterator[Publication]:
    """Yield every change of the information that readers find in the file system, in order."""
    tree = Tree(job)
    last: LeaderInformation | None = None
    for event in events:
        if isinstance(event, Stored) and (f"/{RECORD}/" in event.path or "/" not in event.path):
            tree.apply(event)
            now = tree.published
            if now != last:
                last = now
                yield Publication(event.at, now)
