"""Two sidecars of one job with their drivers: who leads, who stands by, and how ready it is."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from threading import Event
from typing import TypeVar

from benchmarks.spark.words import Words
from ha.drill.sandbox_ground import Process
from ha.history.events import Granted, load
from store.clock import now

T = TypeVar("T")

EXAMPLE = Path(__file__).parents[2] / "examples" / "word_count.py"

PATIENCE = 180.0
"""Seconds for what takes 30 on a machine that does nothing else."""

LOOK = 0.05
"""Seconds between two looks."""

WARM = "The query is warm."
COLD = "contending as"
"""What a sidecar, or its program, says when it is ready to take over."""


class NotSo(Exception):
    """Something did not come about; the text says what, and what was said last."""


class Sidecar(Process):
    """``ha run`` of the word count."""

    def __init__(self, name: str, words: Words, environment: Mapping[str, str], folder: Path, *, warm: bool) -> None:
        """Start it."""
        self.warm = warm
        self._history = folder / f"history-{name}"
        self._history.mkdir()
        self._ready = 0
        command = [
            *(sys.executable, "-m", "ha.cli", "run", words.job, "--contender", name),
            *("--endpoint", f"jobmaster={name}:1", "--standby", "warm" if warm else "cold", "--"),
            *(sys.executable, str(EXAMPLE), "--input", words.input, "--output", words.output),
            *("--max-files", "1", "--interval", "0", "--checkpoint-ids", *(["--warm"] if warm else [])),
        ]
        super().__init__(name, command, {**environment, "HA_HISTORY": str(self._history)}, folder)

    @property
    def grants(self) -> list[Granted]:
        """All that it was granted, in order."""
        return [event for event in load(self._history) if isinstance(event, Granted)]

    def wait(self, seconds: float) -> int | None:
        """Return what it ends with; None if it does not end in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def again(self) -> None:
        """It was the leader and is a standby now: it is ready when it says so once more."""
        self._ready = self._times_ready

    @property
    def ready(self) -> bool:
        """Whether it stands by as it should."""
        return self._times_ready > self._ready

    @property
    def _times_ready(self) -> int:
        return self.log().count(WARM if self.warm else COLD)


class Sidecars:
    """The one that leads and the one that stands by."""

    def __init__(self, words: Words, environment: Mapping[str, str], folder: Path) -> None:
        """Start nothing yet.

        Args:
            words: what they count.
            environment: all their variables.
            folder: for what they say; it exists.
        """
        self._words, self._environment, self._folder = words, environment, folder
        self._numbers = count(1)
        self.zookeeper = environment["HA_ZOOKEEPER"]
        self.all: list[Sidecar] = []

    def start(self, *, warm: bool) -> Sidecar:
        """Start one more."""
        name = f"{self._words.job}-{next(self._numbers)}"
        made = Sidecar(name, self._words, self._environment, self._folder, warm=warm)
        self.all.append(made)
        return made

    def drop(self, sidecar: Sidecar) -> None:
        """Kill it and all that it has started."""
        sidecar.end()
        self.all.remove(sidecar)

    def until(self, condition: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
        """Wait for the condition to be true, and return what it says.

        Raises:
            NotSo: it does not come true.
        """
        end = now() + seconds
        while not (found := condition()):
            if now() > end or not all(sidecar.running for sidecar in self.all):
                said = "\n".join(f"{sidecar.name}: {sidecar.log()[-1500:]}" for sidecar in self.all)
                raise NotSo(f"{self._words.job}: not within {seconds:g} s: {what}.\n{said}")
            Event().wait(LOOK)
        return found

    def end(self) -> None:
        """Leave nothing behind."""
        for sidecar in [*self.all]:
            self.drop(sidecar)
