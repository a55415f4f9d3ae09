"""Two sidecars of one job with their drivers: a leader and a standby, and whether the standby is ready."""

import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Event
from typing import TypeVar

from benchmarks.spark.words import Verdict, Words
from ha.drill.sandbox_environment import Process
from ha.history.events import Granted, load
from store.clock import now

T = TypeVar("T")

PATIENCE = 180.0  # Seconds to wait for steps that take 30 s on an idle machine
LOOK = 0.05  # Seconds between two checks
WARM = re.compile(r"^The query is (?:not )?warm\.$", re.MULTILINE)
COLD = re.compile("contending as")
"""Line in the log of a sidecar, or of its program, when it is ready to take over, perhaps after a failed rehearsal."""


class NotSo(Exception):
    """An expected state was not reached; the text names it, and has the end of the logs."""


class Sidecar(Process):
    """``ha run`` of the program that reads the words."""

    def __init__(
        self,
        name: str,
        words: Words,
        environment: Mapping[str, str],
        folder: Path,
        *,
        warm: bool,
        class_data: bool = False,
        interval: float = 0,
    ) -> None:
        self.warm = warm
        self._ready_line = WARM if warm else COLD
        self._history = folder / f"history-{name}"
        self._history.mkdir()
        self._ready = 0
        command = [
            *(sys.executable, "-m", "ha.cli", "run", words.job, "--contender", name),
            *("--endpoint", f"jobmaster={name}:1", "--standby", "warm" if warm else "cold"),
            *(["--class-data"] if class_data else []),
            "--",
            *(sys.executable, *words.program(interval, warm=warm)),
        ]
        super().__init__(name, command, {**environment, "HA_HISTORY": str(self._history)}, folder)

    @property
    def grants(self) -> list[Granted]:
        return [event for event in load(self._history) if isinstance(event, Granted)]

    def wait(self, seconds: float) -> int | None:
        """Wait for its end; return its exit code, None if it does not end in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def again(self) -> None:
        """Note that the former leader is a standby now: it is ready when its log says so again."""
        self._ready = self._times_ready

    @property
    def ready(self) -> bool:
        return self._times_ready > self._ready

    @property
    def _times_ready(self) -> int:
        return len(self._ready_line.findall(self.log()))


class Sidecars:
    """The leading sidecar and the standby."""

    def __init__(self, words: Words, environment: Mapping[str, str], folder: Path, interval: float = 0) -> None:
        self._interval = interval
        self._words, self._environment, self._folder = words, environment, folder
        self._numbers = count(1)
        self.zookeeper = environment["HA_ZOOKEEPER"]
        self.all: list[Sidecar] = []

    def start(self, *, warm: bool, class_data: bool = False) -> Sidecar:
        own = (f"{self._words.job}-{next(self._numbers)}", self._words, self._environment, self._folder)
        made = Sidecar(*own, warm=warm, class_data=class_data, interval=self._interval)
        self.all.append(made)
        return made

    def in_order(self) -> list[Sidecar]:
        """Put the sidecar first that was granted the newest epoch, and return all."""
        self.all.sort(key=lambda each: -max((grant.epoch for grant in each.grants), default=0))
        return self.all

    def drop(self, sidecar: Sidecar) -> None:
        sidecar.end()
        self.all.remove(sidecar)

    def until(self, condition: Callable[[], T | None], what: str, seconds: float = PATIENCE) -> T:
        """Wait until the condition is true, and return its value."""
        end = now() + seconds
        while not (found := condition()):
            if now() > end or not all(sidecar.running for sidecar in self.all):
                said = "\n".join(f"{sidecar.name}: {sidecar.log()[-1500:]}" for sidecar in self.all)
                raise NotSo(f"{self._words.job}: this did not happen within {seconds:g} s: {what}.\n{said}")
            Event().wait(LOOK)
        return found

    def through(self, disturb: Callable[[], T]) -> tuple[T, Verdict]:
        """Let warm sidecars count the words while they are disturbed, until all are counted; compare the output."""
        with ExitStack() as stack:
            stack.callback(self._words.close)
            stack.callback(self.end)
            with self._words.feeding():
                self.start(warm=True)
                self.until(self._words.commits, "the first leader commits a batch")
                self.start(warm=True)
                found = disturb()
            self._words.stop()
            for sidecar in self.all:
                if sidecar.wait(PATIENCE) != 0:
                    raise NotSo(f"{sidecar.name} has not finished the job: {sidecar.log()[-1500:]}")
            return found, self._words.judge()

    def end(self) -> None:
        for sidecar in [*self.all]:
            self.drop(sidecar)
