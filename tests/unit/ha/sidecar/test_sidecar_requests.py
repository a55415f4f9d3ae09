"""Operators' requests to a sidecar, on a test clock: to stop, cancel and restart its job, and to take savepoints."""

from itertools import pairwise

import pytest

from ha.leadership import program_file
from ha.sidecar.savepoint_work import Restore
from leader.job.failed_attempts import Attempts
from leader.job.requests import State
from tests.unit.ha.sidecar.scene import FIXED, Scene, scene


def test_a_request_to_end_the_job_ends_it_once_the_command_has_ended() -> None:
    for ask, cause in ((Scene.stop, "stopped-by-operator"), (Scene.cancel, "cancelled")):
        with scene(**FIXED) as made:
            made.grant()
            ask(made)
            assert (made.leads, made.answers, made.sidecar._leadership.exit_code) == (True, [], None)
            made.fail()
            assert (made.leads, made.releases, made.sidecar._leadership.exit_code) == (False, 1, 0)
            assert [state for _, state in made.answers] == [State.DONE]
            assert made.ends == [(1, cause)]


def test_a_restart_that_was_asked_for_is_no_failure_and_comes_at_once() -> None:
    with scene(**{**FIXED, "restart_strategy_type": "none"}) as made:
        made.grant()
        made.restart()
        assert len(made.started) == 1
        made.fail()
        assert (made.leads, len(made.started), [state for _, state in made.answers]) == (True, 2, [State.DONE])
        made.fail()
        assert not made.leads


def test_a_restart_records_the_hosts_that_executors_keep_off_until_the_next_one() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.request("restart", exclude="h2, h1")
        made.fail()
        assert (made.started[-1].excluded, made.excluded) == ("h1,h2", ["h1", "h2"])
        made.fail()
        made.tick()
        made.tick()
        assert made.started[-1].excluded == "h1,h2", "a failure changes nothing of that"
        made.restart()
        made.fail()
        assert (len(made.started), made.started[-1].excluded, made.excluded) == (4, "", [])


@pytest.mark.parametrize("ask", ["restart", "restart-from"])
def test_nothing_is_restarted_if_the_hosts_are_not_recorded(ask: str) -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.forgetful = True
        made.request(ask, exclude="h1")
        assert [state for _, state in made.answers] == [State.FAILED]
        assert "which hosts are excluded: standby" in made.answered[0]
        assert not made.asked_to_end
        made.stop()
        assert made.asked_to_end, "the next request is carried out"


def test_one_request_is_carried_out_at_a_time() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.restart()
        made.stop()
        made.request("dance")
        assert [state for _, state in made.answers] == [State.REFUSED, State.REFUSED]
        made.fail()
        assert [state for _, state in made.answers] == [State.REFUSED, State.REFUSED, State.DONE]
        assert made.running


def test_a_leader_that_is_about_to_end_refuses() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.revoke()
        made.stop()
        assert [state for _, state in made.answers] == [State.REFUSED]


def test_a_request_that_came_before_the_grant_is_found_after_it() -> None:
    with scene(**FIXED) as made:
        made.restart()
        assert made.accepted == []
        made.grant()
        assert [each.verb for each in made.accepted] == ["restart"]


def test_a_look_that_fails_is_made_again_in_the_rhythm_of_renewals_at_most() -> None:
    """Its mark is gone from the lease, so nothing else tells of the request."""
    with scene(**FIXED) as made:
        timing = made.sidecar._settings.timing
        made.grant()
        assert made.looks == [made.clock]
        made.away = True
        made.restart()
        for _ in range(5):
            made.until(len(made.looks) + 1)
        pauses = [round(after - before, 3) for before, after in pairwise(made.looks[1:])]
        assert pauses == [timing.retry, 2 * timing.retry, 4 * timing.retry, timing.renewal, timing.renewal]
        assert made.accepted == []
        made.away = False
        made.until(len(made.looks) + 1)
        assert [each.verb for each in made.accepted] == ["restart"]
        looks = len(made.looks)
        made.clock += 3600.0
        made.sidecar._act(None)
        assert len(made.looks) == looks, "at rest nothing is looked for"
        made.away = True
        made.restart()
        made.until(len(made.looks) + 1)
        assert round(made.looks[-1] - made.looks[-2], 3) == timing.retry, "after a success it begins anew"


def test_a_look_that_fails_is_not_made_again_after_the_leadership() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.away = True
        made.restart()
        made.revoke()
        made.fail()
        looks = len(made.looks)
        made.clock += 60.0
        made.sidecar._act(None)
        assert len(made.looks) == looks


def test_requests_that_are_found_together_are_carried_out_one_by_one() -> None:
    with scene(**FIXED) as made:
        made.savepoint()
        made.savepoint()
        made.grant()
        assert made.work is not None
        assert made.answers == [("1-savepoint", State.REFUSED)], "there is one already"
    with scene(**FIXED) as made:
        made.stop()
        made.restart()
        made.attempts = Attempts(failures=9)
        made.grant()
        assert (made.leads, made.started, made.sidecar._leadership.exit_code) == (False, [], 0)
        assert made.answers == [("0-stop", State.DONE), ("1-restart", State.REFUSED)], "the job has ended"


def test_the_restart_of_a_query_holds_up_nothing() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.restart_query()
        assert made.answers == [("0-restart-query", State.REFUSED)], "the program does not know how"
        program_file.enable(made.sidecar._command.files.asking_for("restart-query"))
        made.restart_query()
        made.restart_query()
        assert made.answers[1:] == [("2-restart-query", State.REFUSED)], "one at a time"
        made.savepoint()
        made.restart()
        assert (made.runs, made.asked_to_end, len(made.answers)) == (True, True, 2)
        made.restart_query()
        assert made.answers[2:] == [("5-restart-query", State.REFUSED)], "the command is about to end"
        made.fail()
        assert made.answers[3:] == [("1-restart-query", State.FAILED), ("4-restart", State.DONE)]
        made.restart_query()
        made.revoke()
        made.fail()
        assert [state for name, state in made.answers[5:] if name == "6-restart-query"] == [State.REFUSED]


def test_what_the_program_says_of_a_restart_is_heard_by_the_clock() -> None:
    with scene(**FIXED) as made:
        made.grant()
        path = made.sidecar._command.files.asking_for("restart-query")
        program_file.enable(path)
        made.restart_query()
        program_file.answer(path, program_file.Answer("0-restart-query", State.DONE, "Started again: clean."))
        assert made.answers == []
        made.tick()
        assert (made.answers, made.answered) == ([("0-restart-query", State.DONE)], ["Started again: clean."])
        assert made.runs


def test_a_savepoint_holds_up_nothing() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.savepoint()
        assert (made.leads, made.answers) == (True, [])
        assert made.runs
        made.savepoint()
        assert [state for _, state in made.answers] == [State.REFUSED], "one at a time"
        made.restart()
        made.fail()
        assert made.runs, "a restart does not wait for it"
        made.end_work()
        assert [state for _, state in made.answers] == [State.REFUSED, State.DONE, State.DONE]
        made.savepoint()
        made.fail_work()
        assert made.answers[-1] == ("3-savepoint", State.FAILED)
        assert made.answered[-1] == "There is no savepoint. The disk is full. The job goes on."
        assert made.runs


def test_a_savepoint_that_is_not_complete_when_the_job_ends_has_failed() -> None:
    for end in (Scene.stop, Scene.cancel):
        with scene(**FIXED) as made:
            made.grant()
            made.savepoint()
            end(made)
            made.fail()
            assert [state for _, state in made.answers] == [State.FAILED, State.DONE]
            made.end_work()
            assert len(made.answers) == 2, "what comes later changes nothing"


def test_a_job_is_stopped_with_a_savepoint() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.stop_with_savepoint()
        assert made.runs
        assert made.asked_to_end
        assert made.work is None, "the savepoint is that of the stopped job"
        made.fail()
        assert (made.work is not None, made.leads, made.answers, made.ends) == (True, True, [], [])
        made.tick()
        made.tick()
        assert len(made.started) == 1
        made.end_work()
        assert (made.leads, made.sidecar._leadership.exit_code, made.ends) == (False, 0, [(1, "stopped-by-operator")])
        assert made.answers == [("0-stop-with-savepoint", State.DONE)]
        assert made.answered[-1].startswith("The job has ended. Savepoint 0-stop-with-savepoint: ")


def test_a_stop_whose_savepoint_fails_fails_and_the_job_goes_on() -> None:
    with scene(**{**FIXED, "restart_strategy_type": "none"}) as made:
        made.grant()
        made.stop_with_savepoint()
        made.fail()
        made.fail_work()
        made.tick()
        assert (made.leads, made.ends, made.sidecar._leadership.exit_code) == (True, [], None)
        assert made.runs
        assert made.answers == [("0-stop-with-savepoint", State.FAILED)]
        assert made.answered == ["There is no savepoint. The disk is full. The job goes on."]


def test_a_job_that_waits_for_its_restart_can_be_stopped_with_a_savepoint() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.fail()
        made.stop_with_savepoint()
        made.tick()
        made.tick()
        made.tick()
        assert len(made.started) == 1
        made.end_work()
        assert (made.leads, [state for _, state in made.answers]) == (False, [State.DONE])


def test_what_waits_for_a_savepoint_can_be_cancelled() -> None:
    for ask in (Scene.stop_with_savepoint, Scene.restart_from):
        for ended in (False, True):
            with scene(**FIXED) as made:
                made.grant()
                ask(made)
                if ended and ask is Scene.stop_with_savepoint:
                    made.fail()
                made.cancel()
                if made.runs:
                    made.fail()
                assert [state for _, state in made.answers] == [State.FAILED, State.DONE]
                assert (made.leads, made.ends) == (False, [(1, "cancelled")])
                made.end_work()
                assert (len(made.started), made.restores) == (1, [])


def test_a_job_goes_on_while_the_savepoint_is_copied_from_which_it_starts_again() -> None:
    with scene(**{**FIXED, "restart_strategy_type": "none"}) as made:
        made.grant()
        made.restart_from()
        assert made.runs
        assert not made.asked_to_end
        made.restart()
        assert made.answers.pop() == ("1-restart", State.REFUSED)
        made.end_work()
        assert (made.asked_to_end, made.restores) == (True, [])
        made.fail()
        assert (made.restores, made.leads, len(made.started)) == (["before"], True, 2)
        assert made.answers == [("0-restart-from", State.DONE)]
        made.restart_from()
        made.fail_work()
        assert made.answers[-1] == ("2-restart-from", State.FAILED)
        assert made.runs
        assert not made.asked_to_end, "a savepoint that cannot be copied stops nothing"


def test_a_command_that_ends_by_itself_meanwhile_is_started_again_as_ever() -> None:
    with scene(**FIXED, restart_strategy_fixed_delay_attempts=3) as made:
        made.grant()
        made.restart_from()
        made.fail()
        made.tick()
        made.tick()
        assert (len(made.started), made.answers, made.restores) == (2, [], [])
        made.fail()
        made.end_work()
        made.tick()
        assert (made.restores, len(made.started)) == (["before"], 3)
        assert made.answers == [("0-restart-from", State.DONE)]


def test_a_job_begins_from_its_savepoint() -> None:
    with scene(Restore("before", once=True), **FIXED) as made:
        made.grant()
        assert (made.runs, made.leads) == (False, True)
        for ask in (made.restart, made.savepoint, made.restart_from, made.stop_with_savepoint):
            ask()
            assert made.answers[-1][1] is State.REFUSED, "there is nothing yet that could be saved or started again"
        made.end_work()
        assert made.restores == ["before"]
        assert made.runs
        made.revoke()
        made.fail()
        made.grant()
        made.end_work(manifest=None)  # the job has been started from there before
        assert made.restores == ["before"]
        assert made.runs


def test_a_job_that_cannot_begin_from_its_savepoint_does_not_begin() -> None:
    with scene(Restore("before", once=True), **FIXED) as made:
        made.grant()
        made.fail_work()
        assert (made.started, made.leads, made.sidecar._leadership.exit_code) == ([], False, 1)
        assert made.ends == [(1, "not-started")]


def test_a_job_that_waits_for_its_savepoint_can_end() -> None:
    for end in (Scene.stop, Scene.cancel, Scene.revoke, Scene.signal):
        with scene(Restore("before", once=True), **FIXED) as made:
            made.grant()
            end(made)
            made.hear()
            made.end_work()
            assert (made.started, made.leads, made.restores) == ([], False, [])
