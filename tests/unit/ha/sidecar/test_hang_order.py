"""The order when a command hangs: its stacks, its death, what is written of it, and then the next leader."""

import threading
from pathlib import Path
from unittest import mock

import pytest

from ha.sidecar import thread_dumps
from ha.sidecar.command import Command
from ha.sidecar.hangs import Hang, HangWatch
from ha.sidecar.heartbeat import Beat
from ha.sidecar.job_status import NOTE_S
from leader.layout.names import LeaderDirectory
from tests.unit.ha.sidecar.scene import Scene, scene


class Keeping:
    """Keeps a failure as slowly as a store in trouble."""

    def __init__(self, made: Scene) -> None:
        self.made = made
        self.steps: list[str] = []
        self.dumps: list[str] = []

    def _note(self, step: str) -> None:
        state = "runs" if self.made.running else "is dead"
        self.steps.append(f"{step}: it {state}, {self.made.releases} given back")

    def dump(self, beat: Beat | None) -> str:
        del beat
        self._note("stacks")
        return "the stacks"

    def add_exception(self, leader: LeaderDirectory, kind: str, said: str, dump: str = "") -> "Keeping":
        assert (leader.epoch, kind, said) == (1, "hang", "It hangs.")
        self.dumps.append(dump)
        self._note("begins")
        return self

    def join(self, longest: float) -> None:
        assert longest == NOTE_S
        self._note("kept")


def test_a_command_that_hangs_is_dead_before_anything_is_written_and_the_lease_stays_until_it_is() -> None:
    with scene() as made:
        keeping = Keeping(made)
        made.grant()
        with (
            mock.patch.object(HangWatch, "look", side_effect=[Hang("hang", "It hangs.", None), None, None, None]),
            mock.patch.object(made.sidecar._status, "add_exception", keeping.add_exception),
            mock.patch.object(Command, "thread_dumps", side_effect=keeping.dump),
        ):
            made.sidecar._act(None)
            assert made.attempts.failures == 1, "the next leader waits, because this counts"
            assert made.releases == 0
            made.sidecar._act(made.sidecar._notices.get(10))
        assert keeping.steps == [
            "stacks: it runs, 0 given back",
            "begins: it is dead, 0 given back",
            "kept: it is dead, 0 given back",
        ]
        assert keeping.dumps == ["the stacks"]
        assert (made.releases, made.ends) == (1, [(1, "hang")])


def test_both_stacks_are_asked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=10)

    def waits(*_: object) -> str:
        both.wait()
        return "main"

    monkeypatch.setattr(thread_dumps, "_state", lambda _: "S")
    monkeypatch.setattr(thread_dumps, "_of_python", waits)
    monkeypatch.setattr(thread_dumps, "_of_jvm", waits)
    found = thread_dumps.thread_dumps(1, 2, Path("nowhere"))
    assert found == "Python, process 1:\nmain\n\nJVM, process 2:\nmain"
