"""A sidecar whose command fails at random moments, by a clock of the test: it runs in a leadership or not at all."""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from ha.command import NEVER
from ha.inbox import AskedTo, Granted, Revoked, Wake
from ha.lifecycle import Lifecycle
from ha.settings import load
from ha.sidecar import CHILD_ENDED, Sidecar
from leader.events import Grant, Revoke
from leader.names import LeaderDirectory
from tests.ha.led import session

DELAY = 4.0
"""Seconds before each restart."""


class Command:
    """Takes the place of a supervised command; ends when the test wants it to."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.epoch = int(environment["HA_EPOCH"] or 0)
        self.grant = environment["HA_GRANT"]
        self.pid = 1
        self.code: int | None = None
        self.asked = False
        self._ended = threading.Event()

    def wait(self) -> int:
        self._ended.wait()
        assert self.code is not None
        return self.code

    def end(self, code: int) -> None:
        self.code = code
        self._ended.set()

    def terminate(self) -> None:
        self.asked = True

    def kill(self) -> None:
        self.end(137)


@dataclass
class Scene:
    """What stands around the sidecar."""

    sidecar: Any = None
    clock: float = 100.0
    started: list[Command] = field(default_factory=list)
    epoch: int = 0
    leads: bool = False
    """Until the belief ends, a revocation is told, or the sidecar itself steps down."""
    releases: int = 0

    def now(self) -> float:
        return self.clock

    def start(self, command: object, environment: Mapping[str, str], *others: object) -> Command:
        del command, others
        assert not self.running, "one at a time"
        if environment["HA_GRANT"]:
            assert not environment["HA_EPOCH"]
        else:
            assert self.leads, "nothing is started once the leadership has ended"
            assert int(environment["HA_EPOCH"]) == self.epoch
        self.started.append(Command(environment))
        return self.started[-1]

    def hand_over(self, path: Path, directory: LeaderDirectory) -> None:
        assert self.leads, "nothing is granted once the leadership has ended"
        assert self.running
        assert (self.running.grant, self.running.epoch) == (str(path), 0), "nothing was granted to it before"
        self.running.epoch = directory.epoch

    def said(self, leader: LeaderDirectory) -> bool:
        """The job's state was changed, and did not speak against it."""
        assert leader.epoch == self.epoch
        return True

    @property
    def running(self) -> Command | None:
        last = self.started[-1] if self.started else None
        return last if last is not None and last.code is None else None

    def step_down(self, job: str, reason: str) -> None:
        del job, reason
        self.leads = False

    def release(self, job: str, successor: str = "") -> None:
        del job, successor
        self.leads = False
        self.releases += 1

    # --- what may happen

    def grant(self) -> None:
        if self.sidecar._leader is None and self.sidecar._exit_code is None:
            self.epoch += 1
            self.leads = True
            self.sidecar._believed("orders", float("inf"), float("inf"))
            self.sidecar._act(Granted("orders", Grant(self.epoch, session(self.epoch), "released")))

    def fail(self) -> None:
        if (command := self.running) is not None:
            command.end(3)
            heard = self.sidecar._inbox.get(10)
            while heard != Wake(CHILD_ENDED):
                self.sidecar._act(heard)
                heard = self.sidecar._inbox.get(10)
            self.sidecar._act(heard)

    def revoke(self) -> None:
        self.leads = False
        self.sidecar._act(Revoked("orders", Revoke(session(self.epoch), "test", None)))

    def believe_no_more(self) -> None:
        """The sidecar is paused for longer than its lease, and has not heard of it yet."""
        self.leads = False
        self.sidecar._believed("orders", self.clock, self.clock)

    def ask(self) -> None:
        self.sidecar._act(AskedTo("orders", "_any"))

    def signal(self) -> None:
        self.leads = False
        self.sidecar._signalled(15, None)

    def hear(self) -> None:
        """The sidecar hears of signals, and that its command has ended."""
        while (notice := self.sidecar._inbox.get(0)) is not None:
            self.sidecar._act(notice)

    def tick(self) -> None:
        self.clock += DELAY / 2
        self.sidecar._act(None)


@contextmanager
def scene(**settings: Any) -> Iterator[Scene]:
    made = Scene()
    contender = SimpleNamespace(
        step_down=made.step_down, release=made.release, contend=lambda *_: None, confirm=lambda *_: None
    )
    node: Any = SimpleNamespace(
        settings=load({"files": "file:///nowhere", **settings}, {}),
        metrics=SimpleNamespace(registry=CollectorRegistry()),
        runtime=SimpleNamespace(post=lambda call: call()),
        contender=contender,
        listener=None,
        commands={},
        stores=SimpleNamespace(history=SimpleNamespace(ran=lambda *_, **__: None)),
    )
    with (
        mock.patch("ha.sidecar.now", made.now),
        mock.patch("ha.command.now", made.now),
        mock.patch("ha.command.Supervised", made.start),
        mock.patch("ha.grant.grant", made.hand_over),
        mock.patch.multiple(Lifecycle, begin=made.said, fail=made.said, restart=made.said),
    ):
        made.sidecar = Sidecar(node, "orders", ["true"], {})
        made.sidecar._warm_up()
        try:
            yield made
        finally:
            if made.running:
                made.running.kill()
            made.sidecar._command.close()


FIXED = {"restart_strategy_type": "fixed-delay", "restart_strategy_fixed_delay_delay": DELAY}
ENDS: list[Callable[[Scene], None]] = [Scene.revoke, Scene.believe_no_more, Scene.ask, Scene.signal]
EVENTS: list[Callable[[Scene], None]] = [Scene.grant, Scene.fail, Scene.fail, Scene.tick, Scene.tick, Scene.hear, *ENDS]


@given(st.lists(st.sampled_from(EVENTS), max_size=40), st.sampled_from(["cold", "warm"]))
def test_whatever_happens_the_command_is_granted_only_a_leadership_that_lasts(
    events: list[Callable[[Scene], None]], standby: str
) -> None:
    with scene(**FIXED, restart_strategy_fixed_delay_attempts=3, standby=standby) as made:
        for event in events:
            event(made)
            waits = made.sidecar._restart_at < NEVER
            assert not (waits and made.running)
            assert not made.leads or waits or made.running, "no leader is idle"
            if standby == "warm" and made.sidecar._leader is None and made.sidecar._exit_code is None:
                assert waits or made.running, "no standby is idle either"
        epochs = [command.epoch for command in made.started if command.epoch]
        assert all(len(list(group)) <= 4 for _, group in itertools.groupby(epochs)), "three restarts a leadership"


@given(st.integers(0, 5), st.sampled_from(["none", "fixed-delay"]))
def test_the_lease_is_given_back_after_the_last_attempt_and_not_before(attempts: int, kind: str) -> None:
    expected = attempts if kind != "none" else 0
    with scene(**{**FIXED, "restart_strategy_type": kind}, restart_strategy_fixed_delay_attempts=attempts) as made:
        made.grant()
        for number in range(expected):
            made.fail()
            assert (made.leads, made.running, made.releases) == (True, None, 0)
            made.tick()
            assert len(made.started) == number + 1, "the delay is not over"
            made.tick()
            assert len(made.started) == number + 2
        made.fail()
        made.tick()
        made.tick()
        assert (made.leads, len(made.started), made.releases) == (False, expected + 1, 1)
        assert made.sidecar._restarts._restarts._value.get() == expected


def test_every_end_of_a_leadership_ends_the_wait_and_gives_the_lease_back() -> None:
    for end in ENDS:
        with scene(**FIXED) as made:
            made.grant()
            made.fail()
            end(made)
            made.tick()
            made.tick()
            made.hear()
            if end is Scene.ask:  # this has asked the contender, which revokes
                assert made.releases == 0
                made.revoke()
            assert (len(made.started), made.releases) == (1, 1), end
