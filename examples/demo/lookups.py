"""Lookups: a reader that asks ten times a second who leads, during all faults."""

import threading
from collections import Counter
from dataclasses import dataclass, field

import ha
from leader.errors import LeaderError
from leader.lookup.answers import Answer
from store.clock import now

EVERY = 0.1
TIMEOUT = 2.0


@dataclass
class Lookups:
    """One answer to the reader."""

    by_source: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    slowest: float = 0.0
    went_back: int = 0
    newest: Answer | None = None
    first_seen: dict[int, float] = field(default_factory=dict)


class Reader:
    """Looks up the leader every 100 ms, from the first answer on."""

    def __init__(self, job: str, settings: dict[str, str]) -> None:
        self.lookups = Lookups()
        self._job = job
        self._client = ha.connect(**settings)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Start."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; idempotent."""
        self._stop.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        lookups = self.lookups
        while not self._stop.wait(EVERY):
            started = now()
            try:
                answer = self._client.leader(self._job, TIMEOUT)
            except LeaderError as error:
                if lookups.newest is not None:
                    lookups.failed.append(str(error))
                continue
            lookups.slowest = max(lookups.slowest, now() - started)
            lookups.by_source[answer.source.value] += 1
            if lookups.newest is not None and answer.epoch < lookups.newest.epoch:
                lookups.went_back += 1
            lookups.first_seen.setdefault(answer.epoch, now())
            lookups.newest = answer
