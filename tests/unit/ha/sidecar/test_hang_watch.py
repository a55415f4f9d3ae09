"""The watch over a command: its settings, and when a command is watched."""

import math
from collections.abc import Callable, Mapping
from typing import cast

import pytest

from ha.config.sources import load
from ha.sidecar import hangs
from ha.sidecar.command import Command
from ha.sidecar.hangs import HangWatch
from ha.sidecar.heartbeat import Beat
from ha.sidecar.liveness import Liveness, Schedule
from ha.sidecar.probes import Probe
from leader.errors import InvalidSettings
from leader.job.fenced_directory import FencedDirectory
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER
from tests.unit.ha.led import session


class FakeCommand:
    """A command as far as the watch asks for it."""

    def __init__(self) -> None:
        self.runs = True
        self.kill_at = NEVER
        self.beat: Beat | None = None

    def variables(self, leader: LeaderDirectory) -> dict[str, str]:
        return {"HA_EPOCH": str(leader.epoch)}


class Watched:
    """A watch with a test's own time, whose probe fails at once."""

    def __init__(self, patch: pytest.MonkeyPatch, **settings: object) -> None:
        self.at = 100.0
        self.command = FakeCommand()
        self.given: list[tuple[str, float]] = []
        patch.setattr(hangs, "now", lambda: self.at)
        patch.setattr(hangs, "Liveness", self.liveness)
        self.settings = load({"liveness_probe": "tcp:localhost:1", **settings})
        self.watch = HangWatch(self.settings, cast("Command", self.command), self.probe)

    def probe(self, _: FencedDirectory, variables: Mapping[str, str]) -> Probe:
        def ask(timeout: float) -> str:
            self.given.append((variables["HA_EPOCH"], timeout))
            return "it answered 500"

        return ask

    def liveness(self, job: str, probe: Probe, schedule: Schedule) -> Liveness:
        def at_once(work: Callable[[], None]) -> None:
            work()

        return Liveness(job, probe, schedule, lambda: self.at, at_once)

    def begin(self, epoch: int = 1) -> None:
        leader = LeaderDirectory(epoch, session(epoch))
        self.watch.begin(cast("FencedDirectory", Directory(leader)))

    def looks(self, *times: float) -> list[str]:
        """Look at these times, twice each: a try begins, and has come back; returns the causes of hangs."""
        found = []
        for self.at in times:
            for _ in range(2):
                hang = self.watch.look()
            found.append(hang.cause if hang is not None else "")
        return found


class Directory:
    """Of a job."""

    job = "orders"

    def __init__(self, leader: LeaderDirectory) -> None:
        self.leader = leader


def test_kubernetes_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    watched.begin()
    assert watched.looks(100.0, 109.9, 110.0, 119.9, 120.0) == ["", "", "", "", "probe-failed"]
    assert watched.given == [("1", 1.0)] * 3


def test_each_setting_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(
        monkeypatch,
        liveness_initial_delay=30,
        liveness_period=2,
        liveness_timeout=0.5,
        liveness_failure_threshold=2,
    )
    watched.begin()
    assert watched.looks(129.9, 130.0, 131.9, 132.0) == ["", "", "", "probe-failed"]
    assert watched.given == [("1", 0.5)] * 2


def test_progress_has_the_time_outs_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, liveness_probe="progress:clean")
    watched.begin()
    watched.looks(100.0)
    assert watched.given == [("1", math.inf)]


def test_a_run_that_was_asked_to_end_or_has_ended_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    for change in ({"kill_at": 500.0}, {"runs": False}):
        watched = Watched(monkeypatch, liveness_failure_threshold=1)
        watched.begin()
        for name, value in change.items():
            setattr(watched.command, name, value)
        assert watched.looks(100.0, 110.0) == ["", ""]
        watched.command.kill_at, watched.command.runs = NEVER, True
        assert watched.looks(120.0) == [""], "nor after that"
        watched.begin(2)
        assert watched.looks(120.0) == ["probe-failed"], "but the next run is"
        assert watched.given == [("2", 1.0)]


def test_the_heartbeat_is_watched_beside_the_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, heartbeat_timeout=2, liveness_initial_delay=1000)
    watched.begin()
    watched.command.beat = Beat(1)
    assert watched.looks(100.0, 101.0, 101.9, 102.0) == ["", "", "", "hang"]


@pytest.mark.parametrize("name", ["liveness_period", "liveness_timeout", "liveness_failure_threshold"])
def test_a_number_that_makes_no_sense_is_refused(name: str) -> None:
    with pytest.raises(InvalidSettings, match=f"{name} is 0"):
        load({name: 0})
