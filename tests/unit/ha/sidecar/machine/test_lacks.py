"""What a host lacks for a while ends no leadership, is no failure of the job, and is said once."""

import pytest

from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.starts import LACK_PAUSE_S, NOT_STARTED
from tests.unit.ha.sidecar.machine.driven import Driven, driven

LONG_TTL = 30.0


@pytest.fixture
def lacking() -> Driven:
    """A leader whose first start has failed, because there were no more processes."""
    made = driven()
    leader = made.grant()
    made.take(events.Begun(leader))
    made.take(events.NotStarted(1, "Resource temporarily unavailable.", lack=True))
    return made


def test_it_is_tried_again_in_the_same_leadership_and_said_once(lacking: Driven) -> None:
    for number in range(2, 6):
        lacking.look(lacking.at + LACK_PAUSE_S)
        assert lacking.all(do.StartCommand)[-1].run == number
        lacking.take(events.NotStarted(number, "Resource temporarily unavailable.", lack=True))
    (kept,) = lacking.all(do.KeepException)
    assert (kept.kind, "lacks something, so it is tried again" in kept.said) == (NOT_STARTED, True)
    lacking.look(lacking.at + LACK_PAUSE_S)
    lacking.take(events.Started(6))
    assert (lacking.all(do.CountFailure), lacking.all(do.StepDown), lacking.all(do.CountRestart)) == ([], [], [])
    assert "has again what the command needs" in lacking.all(do.Say)[-1].said


def test_others_may_lead_if_it_lasts(lacking: Driven) -> None:
    lacking.look(lacking.at + LONG_TTL)
    lacking.take(events.NotStarted(2, "No space left on device.", lack=True))
    assert [each.cause for each in lacking.all(do.CountFailure)] == [NOT_STARTED]
    assert len(lacking.all(do.Release)) == 1


def test_the_next_lack_has_its_own_time(lacking: Driven) -> None:
    lacking.look(lacking.at + LACK_PAUSE_S)
    lacking.take(events.Started(2))
    lacking.take(events.RequestsFound(lacking.state.phase.leader))  # type: ignore[union-attr]
    lacking.at += 10 * LONG_TTL
    lacking.restart()
    lacking.settle()
    lacking.take(events.NotStarted(3, "No space left on device.", lack=True))
    assert (lacking.all(do.CountFailure), lacking.answers()) == ([], []), "whoever asked waits for the start"
    lacking.look(lacking.at + LACK_PAUSE_S)
    lacking.take(events.Started(4))
    assert lacking.answers() == [("done", "The command has been started again.")]


def test_a_job_can_be_stopped_meanwhile(lacking: Driven) -> None:
    lacking.take(events.RequestsFound(lacking.state.phase.leader))  # type: ignore[union-attr]
    lacking.ask("stop")
    assert len(lacking.all(do.Finish)) == 1


def test_a_warm_standby_tries_later_as_ever() -> None:
    made = driven(warm=True)
    made.take(events.NotStarted(1, "Too many open files.", granted=False, lack=True))
    assert made.all(do.KeepException) == []
    made.look(made.at + LONG_TTL)
    assert [each.run for each in made.all(do.StartCommand)] == [1, 2]
