"""The pauses before a sidecar starts the command of a job that keeps failing, on a test clock."""

from ha.sidecar.sidecar import LONGEST_PAUSE_S as LONGEST_LOOK_S
from ha.sidecar.sidecar import RESTING_PAUSE_S
from leader.job.failed_attempts import LONGEST_PAUSE_S, Attempts
from tests.unit.ha.sidecar.scene import ENDS, FIXED, Scene, scene


def until_started(made: Scene) -> float:
    """Let the time pass until the command runs; returns how long that took."""
    begun, starts = made.clock, len(made.started)
    made.grant()
    while len(made.started) == starts:
        assert made.leads
        made.clock = made.sidecar._work.due
        made.sidecar._act(None)
    return made.clock - begun


def test_a_job_that_fails_at_its_start_is_tried_less_and_less_often() -> None:
    with scene() as made:
        pauses = []
        for _ in range(13):
            pauses.append(until_started(made))
            made.fail()
            assert not made.leads
        assert pauses == [0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
        assert made.attempts.cause == "exit-3"


def test_the_command_does_not_start_before_the_pause_is_over() -> None:
    with scene() as made:
        made.attempts = Attempts(failures=4, cause="exit-3", host="another")
        made.grant()
        made.clock += 3.999
        made.sidecar._act(None)
        assert (made.leads, made.started) == (True, [])
        assert made.sidecar._command.status()["state"] == "restarting"
        assert made.sidecar._command.status()["next_start_seconds"] == 0.0
        assert made.waits == [4.0], "everybody is told"
        made.clock += 0.001
        made.sidecar._act(None)
        assert made.running
        assert made.waits == [4.0, 0.0]
        made.restart()
        made.sidecar._act(None)
        assert made.waits == [4.0, 0.0], "only a wait ends"


def test_a_warm_command_waits_too() -> None:
    with scene(standby="warm") as made:
        made.attempts = Attempts(failures=3, cause="exit-3", host="another")
        assert made.running
        made.grant()
        assert made.running.epoch == 0, "it is not told"
        made.clock += 2.0
        made.sidecar._act(None)
        assert made.running.epoch == 1


def test_the_last_attempt_ends_the_job_with_its_cause() -> None:
    with scene(failover_max_attempts=3) as made:
        for number in (1, 2, 3):
            until_started(made)
            assert not made.given_up
            made.fail()
            assert (made.sidecar._leadership.exit_code is not None) == (number == 3)
        assert made.given_up == "The command has failed 3 times in a row without a completed batch; at last: exit-3."
        assert made.sidecar._leadership.exit_code == 1


def test_a_leader_that_died_before_it_gave_the_job_up_is_followed_by_no_other_try() -> None:
    """It had counted the last attempt."""
    with scene(failover_max_attempts=3) as made:
        made.attempts = Attempts(failures=4, cause="exit-3", host="another", hopeless=1)
        made.grant()
        assert made.given_up == "The command has failed 4 times in a row without a completed batch; at last: exit-3."
        assert (made.started, made.leads, made.sidecar._leadership.exit_code) == ([], False, 1)
    with scene(failover_max_attempts=4) as made:
        made.attempts = Attempts(failures=4, cause="exit-3", host="another", hopeless=1)
        assert until_started(made) == 4.0


def test_a_command_that_ran_for_long_begins_anew() -> None:
    with scene() as made:
        made.attempts = Attempts(failures=9)
        until_started(made)
        made.clock += LONGEST_PAUSE_S
        made.fail()
        assert made.attempts == Attempts()
        assert until_started(made) == 0.0


def test_a_command_that_runs_for_long_makes_failures_before_it_matter_no_more() -> None:
    """Its leader may die with its host, and then nobody counts. Many programs complete no batches."""
    with scene() as made:
        made.attempts = Attempts(failures=9)
        until_started(made)
        made.clock += LONGEST_PAUSE_S - 0.001
        made.sidecar._act(None)
        assert made.attempts == Attempts(failures=9)
        made.clock += 0.001
        made.forgets = 1
        made.sidecar._act(None)
        assert made.attempts == Attempts(failures=9), "the store did not answer"
        made.clock += LONGEST_PAUSE_S
        made.sidecar._act(None)
        assert made.attempts == Attempts()
        made.attempts = Attempts(failures=9)
        made.clock += 9 * LONGEST_PAUSE_S
        made.sidecar._act(None)
        assert made.attempts == Attempts(failures=9), "once is enough"


def test_a_command_that_waits_for_its_start_does_not_run() -> None:
    with scene(**FIXED) as made:
        made.attempts = Attempts(failures=11)
        made.grant()
        made.clock += LONGEST_PAUSE_S - 0.001
        made.sidecar._act(None)
        assert made.attempts == Attempts(failures=11)


def test_an_operator_who_asks_for_a_restart_ends_the_pause_and_the_count() -> None:
    with scene() as made:
        made.attempts = Attempts(failures=9)
        made.grant()
        assert not made.running
        made.restart()
        made.sidecar._act(None)
        assert made.running
        assert made.attempts == Attempts()


def test_a_leadership_that_ends_otherwise_is_no_failure() -> None:
    for end in ENDS:
        with scene() as made:
            made.grant()
            end(made)
            made.fail()
            assert made.attempts == Attempts(), end


def test_a_standby_at_rest_wakes_seldom_and_for_what_is_due() -> None:
    """With a command, or a leadership, there is more that the clock brings."""
    with scene() as made:
        assert made.sidecar._pause == RESTING_PAUSE_S
    with scene(standby="warm") as made:
        assert made.running, "of a standby"
        assert made.sidecar._pause == LONGEST_LOOK_S
    with scene(**FIXED, restart_strategy_fixed_delay_attempts=1) as made:
        made.grant()
        assert made.sidecar._pause == LONGEST_LOOK_S
        made.fail()
        assert not made.running
        assert made.sidecar._pause == LONGEST_LOOK_S, "it leads"
        made.clock = made.sidecar._work.due - 0.125
        assert made.sidecar._pause == 0.125
        made.clock += 1
        assert made.sidecar._pause == 0.0
