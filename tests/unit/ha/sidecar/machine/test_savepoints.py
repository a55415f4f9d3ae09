"""What a machine does with savepoints: beside a job that runs, at its end, and before its start."""

from collections.abc import Callable

import pytest

from ha.config.restart_strategy import FixedDelay
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.sidecar_state import Ending
from ha.verbs.places import TIMEOUT_S
from tests.unit.ha.sidecar.machine.driven import Driven, driven

FULL = "The disk is full."
BUSY = ("refused", "It is busy with a savepoint: ask again after that.")
FROM = {"from": "before"}


def saved(made: Driven, error: str = "", **more: bool) -> list[do.SidecarCommand]:
    return made.take(events.SavepointEnded(made.state.works, "Savepoint 7: 1 query.", {}, error, **more))


def test_a_savepoint_holds_up_nothing() -> None:
    made = driven()
    leader = made.run()
    first = made.ask("savepoint")
    assert made.all(do.TakeSavepoint) == [do.TakeSavepoint(1, leader, first)]
    made.ask("savepoint")
    assert made.answers() == [BUSY]
    made.restart()
    made.settle()
    made.take(events.Started(2))
    saved(made)
    assert [state for state, _ in made.answers()[1:]] == ["done", "done"], "a restart does not wait for it"
    made.ask("savepoint")
    saved(made, FULL)
    assert made.answers()[-1] == ("failed", f"There is no savepoint. {FULL} The job goes on.")
    assert made.state.runs_granted


@pytest.mark.parametrize("verb", ["stop", "cancel"])
def test_a_savepoint_that_is_not_complete_when_the_job_ends_has_failed(verb: str) -> None:
    made = driven()
    leader = made.run()
    made.ask("savepoint")
    made.ask(verb)
    made.settle()
    made.take(events.Finished(leader, recorded=True))
    assert [state for state, _ in made.answers()] == ["failed", "done"]
    saved(made)
    assert len(made.answers()) == 2, "what comes later changes nothing"


def test_a_job_is_stopped_with_a_savepoint() -> None:
    made = driven()
    leader = made.run()
    request = made.ask("stop-with-savepoint")
    assert made.all(do.SettleQueries) == [do.SettleQueries(1, TIMEOUT_S)]
    assert made.all(do.TakeSavepoint) == [], "the savepoint is that of the stopped job"
    assert made.end()[-1] == do.TakeSavepoint(1, leader, request, stopped=True)
    assert (made.look(999.0), made.answers(), made.all(do.RecordEnd)) == ([], [], [])
    saved(made)
    assert made.all(do.RecordEnd) == [do.RecordEnd(leader, "stopped-by-operator")]
    made.take(events.Finished(leader, recorded=True))
    made.take(events.Released())
    assert made.answers() == [("done", "The job has ended. Savepoint 7: 1 query.")]
    assert (made.state.over, made.state.exit_code) == (True, 0)


def test_a_job_is_stopped_with_a_savepoint_while_its_warm_command_is_replaced() -> None:
    made = driven(warm=True)
    made.take(events.Started(1))
    leader = made.grant()
    made.take(events.Begun(leader))
    made.take(events.RequestsFound(leader))
    made.take(events.Outdated(1))
    request = made.ask("stop-with-savepoint")
    assert made.end()[-1] == do.TakeSavepoint(1, leader, request, stopped=True)
    assert len(made.all(do.StartCommand)) == 1, "the newer program is not started"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({}, FULL), ({"drain": "yes"}, "the queries had not processed all that there was, in the time that they have.")],
)
def test_a_stop_whose_savepoint_fails_fails_and_the_job_goes_on(arguments: dict[str, str], said: str) -> None:
    made = driven()
    leader = made.run()
    made.ask("stop-with-savepoint", **arguments)
    made.end(drained=False)
    saved(made, FULL)
    ((state, answer),) = made.answers()
    assert (state, answer.startswith("There is no savepoint"), f"{said} The job goes on." in answer) == (
        "failed", True, True,
    )  # fmt: skip
    assert made.all(do.StartCommand)[1:] == [do.StartCommand(2, leader, again=True)]
    assert made.all(do.RecordEnd) == []


def test_a_job_that_waits_for_its_restart_can_be_stopped_with_a_savepoint() -> None:
    made = driven(lambda: FixedDelay(9, 60.0))
    leader = made.run()
    made.end(3)
    made.take(events.RestartingNoted(leader))
    request = made.ask("stop-with-savepoint")
    assert made.all(do.TakeSavepoint) == [do.TakeSavepoint(1, leader, request, stopped=True)]
    made.look(999.0)
    assert len(made.all(do.StartCommand)) == 1
    saved(made)
    assert made.all(do.Finish) == [do.Finish(leader)]


@pytest.mark.parametrize(
    ("verb", "ended"), [("stop-with-savepoint", False), ("stop-with-savepoint", True), ("restart-from", False)]
)
def test_what_waits_for_a_savepoint_can_be_cancelled(verb: str, *, ended: bool) -> None:
    made = driven()
    leader = made.run()
    if verb == "restart-from":
        made.restart(verb, **FROM)
    else:
        made.ask(verb)
    if ended:
        made.end()
    made.ask("cancel")
    if not ended:
        made.end()
    made.take(events.Finished(leader, recorded=True))
    assert [state for state, _ in made.answers()] == ["failed", "done"]
    assert made.all(do.RecordEnd) == [do.RecordEnd(leader, "cancelled")]
    saved(made)
    assert (len(made.all(do.StartCommand)), made.all(do.PutBack)) == (1, [])


def test_a_job_goes_on_while_the_savepoint_is_copied_from_which_it_starts_again() -> None:
    made = driven()
    leader = made.run()
    request = made.restart("restart-from", **FROM)
    assert made.all(do.StageSavepoint) == [do.StageSavepoint(1, leader, request)]
    assert (made.all(do.SettleQueries), made.all(do.Terminate)) == ([], [])
    made.ask("restart")
    assert made.answers() == [("refused", "It is carrying out another one: restart-from.")]
    saved(made)
    assert made.all(do.PutBack) == []
    *_, back, _, start = made.settle()
    assert (back, start) == (do.PutBack(leader, "before"), do.StartCommand(2, leader, again=True))
    made.take(events.Started(2))
    assert made.answers()[1:] == [("done", "The command has been started again. Savepoint 7: 1 query.")]
    made.restart("restart-from", **FROM)
    saved(made, FULL)
    assert made.answers()[-1] == ("failed", FULL)
    assert (len(made.all(do.SettleQueries)), made.state.runs_granted) == (1, True), "and it stops nothing"


def test_a_command_that_ends_by_itself_meanwhile_is_started_again_as_ever() -> None:
    made = driven(lambda: FixedDelay(9, 4.0))
    leader = made.run()
    made.restart("restart-from", **FROM)
    made.end(3)
    made.take(events.RestartingNoted(leader))
    made.look(104.0)
    made.take(events.Started(2))
    assert (made.answers(), made.all(do.PutBack)) == ([], [])
    made.end(3)
    made.take(events.RestartingNoted(leader))
    saved(made)
    made.take(events.Started(3))
    assert (made.all(do.PutBack), len(made.all(do.StartCommand))) == ([do.PutBack(leader, "before")], 3)
    assert [state for state, _ in made.answers()] == ["done"]


def beginning() -> Driven:
    """Return a machine whose job is about to begin from a savepoint, which is being copied."""
    made = driven(restores=True)
    leader = made.grant()
    made.take(events.Begun(leader))
    made.take(events.RequestsFound(leader))
    assert made.all(do.StageSavepoint) == [do.StageSavepoint(1, leader)]
    return made


def test_a_job_begins_from_its_savepoint() -> None:
    made = beginning()
    for verb in ("restart", "savepoint", "restart-from", "stop-with-savepoint"):
        made.ask(verb)
    assert made.answers() == [BUSY] * 4, "there is nothing yet that could be saved or started again"
    (back, start) = saved(made)
    assert isinstance(back, do.PutBack)
    assert start == do.StartCommand(1, back.leader)
    made.take(events.Started(1))
    made.take(events.LeadershipRevoked(back.leader.session_id))
    made.end()
    made.take(events.Released())
    leader = made.grant(2)
    made.take(events.Begun(leader))
    assert saved(made, known=True) == [do.StartCommand(2, leader)], "it was started from there before"


def test_a_job_that_cannot_begin_from_its_savepoint_does_not_begin() -> None:
    made = beginning()
    saved(made, FULL)
    made.take(events.Released())
    assert (made.state.exit_code, made.state.over, made.all(do.StartCommand)) == (1, True, [])
    assert [each.cause for each in made.all(do.RecordEnd)] == ["not-started"]


@pytest.mark.parametrize(
    "end",
    [
        lambda made: made.ask("stop"),
        lambda made: made.ask("cancel"),
        lambda made: made.take(events.LeadershipRevoked(made.state.phase.leader.session_id)),
        lambda made: made.take(events.Signalled(15, "SIGTERM")),
    ],
    ids=["stop", "cancel", "revoked", "signal"],
)
def test_a_job_that_waits_for_its_savepoint_can_end(end: Callable[[Driven], object]) -> None:
    made = beginning()
    end(made)
    saved(made)
    assert (made.all(do.StartCommand), made.all(do.PutBack)) == ([], [])
    assert isinstance(made.state.phase, Ending)
