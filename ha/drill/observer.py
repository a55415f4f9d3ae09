"""What a drill sees while it runs: the histories of all members, as far as they are written.

Everything that takes part writes its history into one folder of this host, so the drill itself needs neither ZooKeeper
nor HDFS, and is not blinded by what it breaks.
"""

from pathlib import Path

from ha.drill.judge import fresh
from ha.drill.programs.feed import FED
from ha.history.events import Completed, Ended, Event, Fault, Granted, LookedUp, decode, encode
from store.clock import now

HISTORY = "history"


class Observer:
    """Reads a folder's histories on from where it was."""

    def __init__(self, folder: Path) -> None:
        self.events: list[Event] = []
        self.grants: list[Granted] = []
        """In the order in which they were seen."""
        self._history = folder / HISTORY
        self._fed = folder / FED
        self._read: dict[Path, int] = {}

    def look(self) -> None:
        """Take in what was written since."""
        for path in sorted(self._history.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                # In one read: going by lines, the rest of a line that was being written would look like one of its own.
                written, end, _ = file.read().rpartition(b"\n")
            self._read[path] = self._read.get(path, 0) + len(written) + len(end)
            for event in decode((written + end).splitlines(keepends=True)):
                self._take(event)

    def _take(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Granted):
            self.grants.append(event)

    def completed(self, since: float) -> list[Completed]:
        """New batches that were acknowledged after a time, in that order."""
        return [event for event in fresh(self.events) if event.ended >= since]

    def answers(self, since: float) -> list[LookedUp]:
        """The newest answer of each reader that was told of a leader after a time."""
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
        """Write down what is being done to them all; returns when."""
        return self._write(Fault(now(), "", what))

    def ended(self, contender: str) -> float:
        """Write down that a contender is gone; returns when."""
        return self._write(Ended(now(), "", contender))

    def _write(self, event: Fault | Ended) -> float:
        with (self._history / "drill.jsonl").open("ab") as file:
            file.write(encode(event))
        return event.at
