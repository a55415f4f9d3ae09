"""Observers: a contender tells them every step; a failing one harms neither the others nor the protocol."""

import pytest

from leader.contender.participant import Belief
from leader.election.events import FilesCommand, FilesDone, Grant, Publish, Revoke
from leader.observer import fan_out
from tests.system.simulation.process import Process
from tests.unit.leader.arena import TIMING, Arena


def test_without_observers_there_is_nothing_to_call() -> None:
    assert fan_out() is None
    assert fan_out(None, None) is None


def test_every_observer_hears_of_everything_though_one_fails(caplog: pytest.LogCaptureFixture) -> None:
    first: list[tuple[str, object]] = []
    last: list[tuple[str, object]] = []

    def fail(job: str, happened: object) -> None:
        raise RuntimeError(f"{job}: {happened}")

    observe = fan_out(lambda *told: first.append(told), fail, None, lambda *told: last.append(told))
    assert observe is not None
    observe("orders", "something")
    observe("payments", "something else")
    assert first == last == [("orders", "something"), ("payments", "something else")]
    assert "An observer of job payments failed." in caplog.text


def test_a_contender_tells_its_observer_every_step_before_it_is_acted_on() -> None:
    arena, told = Arena(), list[tuple[str, object]]()
    process = Process(arena.world, "a", arena.files, arena.ensemble, TIMING, arena.wires)
    listened: list[int] = []

    def observe(job: str, happened: object) -> None:
        told.append((job, happened))
        listened.append(len([each for each in process.history if each[1] in {"granted", "revoked"}]))

    process.contender._observer = observe
    arena.processes.append(process.start())
    arena.until_leader(5)
    arena.run(1)
    process.run(lambda: process.contender.step_down("orders", "It was asked to."))
    arena.run(1)
    assert {job for job, _ in told} == {"orders"}
    happened = [each for _, each in told]
    kinds = [type(each) for each in happened]
    assert kinds.count(Grant) == 1
    assert kinds.index(Belief) < kinds.index(Grant) < kinds.index(Publish) < kinds.index(Revoke)
    assert listened[kinds.index(Grant)] == 0, "the listener has not heard of the grant yet"
    assert listened[kinds.index(Revoke)] == 1
    sent = [each for each in happened if isinstance(each, FilesCommand)]
    ended = [each.command for each in happened if isinstance(each, FilesDone)]
    assert sent == ended, "each command, and then how it ended"
    assert len(sent) >= 3
