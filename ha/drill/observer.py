"""Observer: what a drill sees while it runs, from the histories that all members write.

All members write their histories into one folder of this host. So the drill's own faults in the stores do not blind it.
"""

from collections.abc import Sequence
from pathlib import Path

from ha.drill.clients import FED
from ha.history.events import Completed, Ended, Event, Fault, Granted, LookedUp, decode, encode
from store.clock import now

HISTORY = "history"


class Observer:
    """Reads the histories of a folder, each time from where it stopped."""

    def __init__(self, folder: Path) -> None:
        self.events: list[Event] = []
        self.grants: list[Granted] = []
        """In the order in which they were seen."""
        self._history = folder / HISTORY
        self._fed = folder / FED
        self._offsets: dict[Path, int] = {}

    def look(self) -> None:
        """Read what was written since the last call."""
        for path in sorted(self._history.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._offsets.get(path, 0))
                # In one read: reading by lines, the rest of a half-written line would look like a line of its own.
                written, end, _ = file.read().rpartition(b"\n")
            self._offsets[path] = self._offsets.get(path, 0) + len(written) + len(end)
            for event in decode((written + end).splitlines(keepends=True)):
                self.events.append(event)
                if isinstance(event, Granted):
                    self.grants.append(event)

    def completed(self, since: float) -> list[Completed]:
        """New batches that were acknowledged after a time, in that order."""
        return [event for event in new_batches(self.events) if event.ended >= since]

    def has_completed(self, query: str, batch: int) -> bool:
        """Whether this batch of a query was acknowledged, or a later one."""
        # Times cannot tell: an acknowledgement may arrive after the query has begun its next batch.
        return any(event.query == query and event.batch >= batch for event in new_batches(self.events))

    def answers(self, since: float) -> list[LookedUp]:
        """For each reader, the newest answer after a time that named a leader."""
        newest = {
            event.reader: event
            for event in self.events
            if isinstance(event, LookedUp) and event.outcome == "leader" and event.ended >= since
        }
        return list(newest.values())

    def fed(self) -> list[int]:
        """Numbers of the files that are in the input directory."""
        if not self._fed.exists():
            return []
        return [int(line) for line in self._fed.read_text(encoding="ascii").splitlines(keepends=True) if "\n" in line]

    def note(self, what: str) -> float:
        """Write down what the drill does to the job; return the time."""
        return self._write(Fault(now(), "", what))

    def ended(self, contender: str, at: float) -> float:
        """Write down when a contender has ended; return that time."""
        return self._write(Ended(at, "", contender))

    def _write(self, event: Fault | Ended) -> float:
        with (self._history / "drill.jsonl").open("ab") as file:
            file.write(encode(event))
        return event.at


def new_batches(events: Sequence[Event]) -> list[Completed]:
    """Return the acknowledgements of new batches; a new leader acknowledges the batch that it finds once more."""
    newest: dict[str, int] = {}
    found = []
    for event in sorted((each for each in events if isinstance(each, Completed)), key=lambda each: each.ended):
        if event.batch > newest.get(event.query, -1):
            newest[event.query] = event.batch
            found.append(event)
    return found
