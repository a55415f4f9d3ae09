"""Real contenders of one job, as processes, with their histories and their commands."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from kazoo.client import KazooClient

from benchmarks.baselines.election import path
from ha.history.events import Event, Granted, load
from store.clock import now
from tests.patience import PATIENCE_S
from tests.system.integration.participants import children, runs, state_of
from tests.system.integration.waiting import until

MODULES = {"kazoo": "benchmarks.baselines.kazoo_election", "curator": "benchmarks.baselines.curator_latch"}

SESSION_S = 4.0
"""Close to the smallest session timeout that ZooKeeper grants."""

READER = "reader"

STEP = """
echo "$HA_CONTENDER $$" >> beats
until [ -e "$HA_CONTENDER.end" ]; do sleep 0.05; done
exit $(cat "$HA_CONTENDER.end")
"""
"""Command that names its contender, and ends when and with the exit code that a test chooses."""

E = TypeVar("E", bound=Event)


def _frozen(pid: int) -> bool:
    """Whether a process is stopped, or waits in ``vfork`` for a child that was stopped before it could ``exec``."""
    state = state_of(pid)
    return state == "T" or (state == "D" and any(state_of(child) == "T" for child in children(pid)))


class Contenders:
    """All processes of one job; they end with the block."""

    def __init__(self, baseline: str, zookeeper: str, folder: Path) -> None:
        self.baseline = baseline
        self.job = f"job-{uuid.uuid4().hex[:8]}"
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._history = folder / "history"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HA_")},
            "HA_ZOOKEEPER": zookeeper,
            "HA_SESSION_TIMEOUT": str(SESSION_S),
            "HA_SHORT_TTL": str(SESSION_S),
            "HA_HISTORY": str(self._history),
            "HA_SNAPSHOTS": "off",
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        commands = [pid for name in self._processes for pid in self.commands(name)]
        for process in self._processes.values():
            process.kill()
            process.wait(PATIENCE_S)
        until(lambda: not any(map(runs, commands)), "the commands have ended")

    def contend(self, *names: str) -> None:
        for name in names:
            options = [self.job, "--contender", name, "--", "sh", "-c", STEP]
            self._start(name, [MODULES[self.baseline], *options])
        until(lambda: all("contending" in self.log(name) for name in names), "they contend")
        client = KazooClient(self._environment["HA_ZOOKEEPER"])
        client.start(PATIENCE_S)
        try:  # before each of them has its node, the one before it may lead again
            queue = path(self.baseline, self.job)
            contenders = len(self._processes.keys() - {READER})
            until(lambda: client.exists(queue) and len(client.get_children(queue)) >= contenders, "they queue")
        finally:
            client.stop()
            client.close()

    def read(self) -> None:
        self._start(
            READER, ["benchmarks.baselines.reading", self.baseline, self.job, "--every", "0.05", "--timeout", "0.5"]
        )

    def _start(self, name: str, arguments: Sequence[str]) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", *arguments], env=self._environment, cwd=self._folder, stdout=log, stderr=log
            )

    def signal(self, name: str, number: signal.Signals) -> int:
        self._processes[name].send_signal(number)
        return self.code(name)

    def code(self, name: str) -> int:
        return self._processes[name].wait(PATIENCE_S)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def tell(self, name: str, code: int) -> None:
        (self._folder / f"{name}.new").write_text(str(code))
        (self._folder / f"{name}.new").rename(self._folder / f"{name}.end")

    def beats(self) -> list[str]:
        return [contender for contender, _ in self._beats()]

    def commands(self, name: str) -> list[int]:
        return [pid for contender, pid in self._beats() if contender == name]

    def runs(self, name: str) -> bool:
        pids = self.commands(name)
        return bool(pids) and runs(pids[-1]) and not _frozen(pids[-1])

    def _beats(self) -> list[tuple[str, int]]:
        file = self._folder / "beats"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [(line.split()[0], int(line.split()[1])) for line in lines if line.endswith("\n")]

    def events(self, kind: type[E], since: float = 0.0) -> list[E]:
        found: list[Any] = load(self._history) if self._history.exists() else []
        return [each for each in found if isinstance(each, kind) and each.at >= since]

    def led_by(self, name: str, since: float = 0.0) -> Granted:
        def grant() -> Granted | None:
            return next((each for each in self.events(Granted, since) if each.contender == name), None)

        found = until(grant, f"{name} leads")
        assert found is not None
        until(lambda: self.runs(name), f"the command of {name} runs")
        return found

    def start(self, *standbys: str) -> Granted:
        """Let the first contender lead, and others stand by; return its grant."""
        self.contend("a")
        grant = self.led_by("a")
        self.contend(*standbys)
        return grant


def kill(contenders: Contenders, name: str) -> float:
    at = now()
    contenders.signal(name, signal.SIGKILL)
    return at
