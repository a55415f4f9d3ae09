"""What a machine does with the requests of operators, step by step."""

from collections.abc import Callable

import pytest

from ha.config.restart_strategy import FixedDelay, NoRestart
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.operators import PROGRAM_WITHIN_S
from leader.job.request_folder import Request, State
from leader.job.status import Status
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER
from tests.unit.ha.sidecar.machine.driven import GRACE, Driven, driven


def test_a_restart_is_prepared_settled_and_answered_once_the_next_run_is_there() -> None:
    made = driven()
    leader = made.run()
    request = made.ask("restart")
    assert made.all(do.PrepareRestart) == [do.PrepareRestart(leader, request)]
    assert made.take(events.RestartPrepared(request.id)) == [
        do.ForgetFailures(leader, restarting=True),
        do.SettleQueries(1, GRACE),
    ]
    made.take(events.Settling(1, GRACE, able=True))
    assert made.all(do.Terminate) == [], "its queries end in order"
    found = made.take(events.CommandEnded(1, 0))
    assert found[-1] == do.StartCommand(2, leader, again=True)
    assert made.answers() == []
    made.take(events.Started(2))
    assert made.answers() == [("done", "The command has been started again.")]
    assert made.all(do.CountFailure) == []


def test_queries_that_do_not_end_in_order_are_ended_by_a_signal_and_then_killed() -> None:
    made = driven()
    made.run()
    made.restart()
    made.take(events.Settling(1, GRACE, able=True))
    made.look(100.0 + GRACE - 0.1)
    assert made.all(do.Terminate) == []
    made.look(100.0 + GRACE)
    assert made.all(do.Terminate) == [do.Terminate()]
    made.look(100.0 + 2 * GRACE)
    assert made.all(do.Kill) == [do.Kill()]


def test_a_restart_that_cannot_be_prepared_changes_nothing() -> None:
    made = driven()
    made.run()
    made.take(events.RestartPrepared(made.ask("restart").id, "the disk is full."))
    assert made.answers() == [("failed", "Nothing was restarted: the disk is full.")]
    assert (made.all(do.SettleQueries), made.all(do.Terminate)) == ([], [])


def test_a_restart_whose_run_cannot_be_started_is_not_told_as_done() -> None:
    made = driven()
    made.run()
    made.restart()
    made.settle()
    made.take(events.NotStarted(2, "No such file."))
    assert made.answers() == [("failed", "The command could not be started again: No such file.")]
    assert [each.cause for each in made.all(do.CountFailure)] == ["not-started"]


@pytest.mark.parametrize("again", ["stop", "restart", "savepoint", "restart-query", "dance"])
def test_one_request_is_carried_out_at_a_time(again: str) -> None:
    made = driven()
    made.run()
    made.ask("restart")
    made.ask(again)
    unknown = "This version knows no request 'dance'."
    assert made.answers() == [("refused", unknown if again == "dance" else "It is carrying out another one: restart.")]


@pytest.mark.parametrize(("verb", "cause"), [("stop", "stopped-by-operator"), ("cancel", "cancelled")])
def test_a_request_to_end_the_job_ends_it_once_the_command_has_ended(verb: str, cause: str) -> None:
    made = driven()
    leader = made.run()
    made.ask(verb)
    assert made.all(do.RecordEnd) == [do.RecordEnd(leader, cause)]
    assert made.all(do.RecordCancelling) == [do.RecordCancelling(leader)] * (verb == "cancel")
    assert made.all(do.Terminate) == [], "if it ended before that is written down, a next leader would start it again"
    if verb == "cancel":
        made.take(events.CancellingNoted(leader))
    assert (len(made.all(do.SettleQueries)), len(made.all(do.Terminate))) == ((1, 0) if verb == "stop" else (0, 1))
    assert made.settle()[-1] == do.Finish(leader)
    assert made.answers() == []
    made.take(events.Finished(leader, recorded=True))
    assert made.answers() == [("done", "The job has ended.")]
    assert made.all(do.RefuseRest) == [do.RefuseRest(leader, "The job has ended.")]
    made.take(events.Released())
    assert made.state.over


@pytest.mark.parametrize("verb", ["stop", "cancel"])
def test_a_job_that_waits_for_its_restart_can_end(verb: str) -> None:
    made = driven(lambda: FixedDelay(9, 600.0))
    leader = made.run()
    made.end(3)
    made.take(events.RestartingNoted(leader))
    made.ask(verb)
    assert made.all(do.Finish) == [do.Finish(leader)]
    made.take(events.Finished(leader, recorded=True))
    made.take(events.Released())
    assert (made.answers(), made.state.exit_code) == ([("done", "The job has ended.")], 0)


def test_a_request_that_is_found_when_the_leadership_ends_is_refused() -> None:
    made = driven()
    leader = made.run()
    made.take(events.Marked())
    made.take(events.LeadershipRevoked(leader.session_id))
    request = Request("9", "restart", 1)
    made.take(events.RequestsFound(leader, (request,)))
    assert made.answers() == [("refused", "This leadership is about to end: ask again.")]


def test_a_leader_that_is_about_to_end_leaves_it_to_the_next_one() -> None:
    made = driven()
    leader = made.run()
    made.take(events.Marked())
    made.take(events.RequestsFound(leader, unknown=True))
    made.take(events.LeadershipRevoked(leader.session_id))
    looks = made.all(do.LookForRequests)
    made.take(events.Marked())
    made.look(999.0)
    assert made.all(do.LookForRequests) == looks


def test_a_restart_that_was_kept_is_done_by_the_start_of_the_next_leader() -> None:
    made = driven()
    leader = made.grant()
    assert made.take(events.Begun(leader))[-1] == do.LookForRequests(leader)
    made.take(events.Started(1))
    made.take(events.RequestsFound(leader, (Request("1", "restart", 1),)))
    assert made.answers() == [("done", "The command has been started by the leader that came next.")]
    assert made.all(do.PrepareRestart) == []


def test_a_look_that_fails_is_made_again_in_the_rhythm_of_renewals_at_most() -> None:
    """Its mark is gone from the lease, so nothing else tells of the request."""
    made = driven()
    leader = made.run()
    pauses = []
    made.take(events.Marked())
    for _ in range(5):
        made.take(events.RequestsFound(leader, unknown=True))
        pauses.append(made.state.due - made.at)
        assert not made.look(made.state.due - 0.001)
        assert made.look(made.state.due) == [do.LookForRequests(leader)]
    assert pauses == [0.25, 0.5, 1.0, 2.0, 2.0]
    made.take(events.RequestsFound(leader))
    assert made.state.due == NEVER, "at rest nothing is looked for"
    made.take(events.Marked())
    made.take(events.RequestsFound(leader, unknown=True))
    assert made.state.due == made.at + 0.25, "after a success it begins again"


@pytest.mark.parametrize("verbs", [("savepoint", "savepoint"), ("stop", "restart")])
def test_requests_that_are_found_together_are_carried_out_one_by_one(verbs: tuple[str, str]) -> None:
    made = driven()
    leader = made.grant()
    made.take(events.Begun(leader, pause=60.0))
    made.take(events.RequestsFound(leader, tuple(Request(f"{each}", verb, 1) for each, verb in enumerate(verbs))))
    made.take(events.SavepointEnded(1, "Savepoint 7: 1 query."))
    made.take(events.Finished(leader, recorded=True))
    answered = [(each.request.id, each.state) for each in made.all(do.AnswerRequest)]
    assert answered == [("1", State.REFUSED), ("0", State.DONE)]
    assert (made.all(do.StartCommand), made.all(do.Finish)) == ([], [do.Finish(leader)] * (verbs[0] == "stop"))


def test_a_mark_that_comes_while_requests_are_looked_for_is_not_lost() -> None:
    made = driven()
    leader = made.run()
    made.take(events.Marked())
    made.take(events.Marked())
    looks = len(made.all(do.LookForRequests))
    assert made.take(events.RequestsFound(leader)) == [do.LookForRequests(leader)]
    assert made.take(events.RequestsFound(leader)) == []
    assert len(made.all(do.LookForRequests)) == looks + 1


def asked(made: Driven) -> Request:
    return made.ask("restart-query", query="clean")


def test_what_the_program_says_is_passed_on_once() -> None:
    made = driven()
    made.run()
    request = asked(made)
    assert made.all(do.AskProgram) == [do.AskProgram(request)]
    for state, said in ((State.ACCEPTED, "Stopped: clean."), (State.DONE, "Started again: clean.")) * 2:
        made.take(events.ProgramAnswered(request.id, state, said))
    assert made.answers() == [("accepted", "Stopped: clean."), ("done", "Started again: clean.")]


def test_the_answer_to_another_request_is_not_taken_for_that_to_this_one() -> None:
    made = driven()
    made.run()
    asked(made)
    made.take(events.ProgramAnswered("before", State.DONE, "Started again: sums."))
    assert made.answers() == []


def test_a_program_that_never_answers_is_not_waited_for_for_ever() -> None:
    made = driven()
    made.run()
    asked(made)
    made.look(100.0 + PROGRAM_WITHIN_S - 0.001)
    assert made.answers() == []
    made.look(100.0 + PROGRAM_WITHIN_S)
    assert [state for state, _ in made.answers()] == ["unknown"]
    assert made.state.due == NEVER


def test_a_command_that_ends_or_does_not_run_is_not_asked() -> None:
    made = driven()
    leader = made.run()
    asked(made)
    made.take(events.CommandEnded(1, 3))
    assert made.answers()[0][0] == "failed"
    assert made.answers()[0][1].startswith("The command has ended meanwhile: all of its queries start when")
    made = driven()
    leader = made.grant()
    made.take(events.Begun(leader, pause=60.0))
    made.take(events.RequestsFound(leader))
    asked(made)
    assert made.answers()[0][0] == "refused"
    assert made.answers()[0][1].startswith("Its command does not run now: all of its queries start when")


def test_the_program_is_asked_for_one_thing_at_a_time_beside_a_savepoint() -> None:
    made = driven()
    made.run()
    made.ask("savepoint")
    asked(made)
    asked(made)
    assert made.answers() == [("refused", "Its program is busy with restart-query clean: ask again after that.")]
    made.take(events.SavepointEnded(1, "Savepoint 7: 1 query.", {"savepoint": "7"}))
    assert made.answers()[1:] == [("done", "Savepoint 7: 1 query.")]
    made.ask("restart")
    assert len(made.all(do.PrepareRestart)) == 1, "the restart of a query holds up nothing"


def test_a_start_that_was_under_way_is_not_the_restart_that_was_asked_for() -> None:
    made = driven()
    leader = made.grant()
    made.take(events.Begun(leader))
    made.take(events.RequestsFound(leader))
    request = made.ask("restart")
    made.take(events.Started(1))
    assert made.answers() == [], "it may run an older program"
    made.take(events.RestartPrepared(request.id))
    made.settle()
    made.take(events.Started(2))
    assert made.answers() == [("done", "The command has been started again.")]


def test_a_restart_while_the_last_failure_is_counted_does_not_outlive_the_job() -> None:
    made = driven()
    leader = made.run()
    request = made.ask("restart")
    made.take(events.CommandEnded(1, 3))
    made.take(events.RestartPrepared(request.id))
    assert made.state.run is not None
    made.take(events.FailureCounted(leader, gave_up=True))
    made.take(events.Started(2))
    assert made.all(do.Release) == [], "a run is there"
    made.take(events.CommandEnded(2, 143))
    made.take(events.Released())
    assert (made.state.over, made.state.exit_code) == (True, 1)


ENDS: dict[str, Callable[[LeaderDirectory], events.SidecarEvent]] = {
    "the last failure": lambda leader: events.FailureCounted(leader, gave_up=True),
    "its program": lambda leader: events.RestartingNoted(leader, ended=True),
}


@pytest.mark.parametrize("end", ENDS)
def test_whoever_asks_a_job_that_ends_by_itself_is_told_so(end: str) -> None:
    """What the present leader has not accepted would be carried out by a run that somebody starts with --again."""
    made = driven(lambda: FixedDelay(9, 600.0) if end == "its program" else NoRestart())
    leader = made.run()
    made.ask("savepoint")
    made.ask("restart")
    made.end(3)
    found = made.take(ENDS[end](leader))
    assert [told for told, _ in made.answers()] == ["failed", "failed"]
    (refuse,) = made.all(do.RefuseRest)
    assert found.index(refuse) < found.index(do.Release(leader)), "while it may write"
    assert refuse.said in made.answers()[1][1]


@pytest.mark.parametrize(("ended", "gave_up"), [(Status.FAILED, False), (None, True)])
def test_whoever_asks_a_job_that_has_ended_is_told_so_by_the_next_leader(
    ended: Status | None, *, gave_up: bool
) -> None:
    made = driven()
    leader = made.grant()
    found = made.take(events.Begun(leader, ended, gave_up=gave_up))
    (refuse,) = made.all(do.RefuseRest)
    assert "FAILED" in refuse.said
    assert found.index(refuse) < found.index(do.Release(leader))
    assert made.all(do.LookForRequests) == [], "it accepts none"


def test_a_restart_that_is_prepared_when_the_leadership_ends_is_told_not_to_be_done() -> None:
    """The next leader could only say that it does not know."""
    made = driven()
    leader = made.run()
    made.take(events.Marked())
    made.end(3)
    request = Request("1", "restart", 1)
    made.take(events.RequestsFound(leader, (request,)))
    assert made.all(do.PrepareRestart) == [do.PrepareRestart(leader, request)]
    found = made.take(events.FailureCounted(leader))
    assert made.answers() == [("failed", "This leadership has ended before the command was started again: ask again.")]
    assert isinstance(found[-1], do.Release), "while it may write"
