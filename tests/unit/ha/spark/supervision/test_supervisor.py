"""The supervisor: which queries start, stop and restart, and when."""

from collections.abc import Sequence

import pytest

from ha.config.restart_strategy import FixedDelay, NoRestart
from ha.spark.queries.query_failures import Failure
from ha.spark.supervision.supervisor import Command, QueryEnd, QueryState, Start, StopQuery, Supervisor

DELAY, STOP_TIMEOUT = 4.0, 10.0


def supervisor(
    *regions: Sequence[str], attempts: int = 3, delay: float = DELAY, keep_others: bool = False, tolerated: int = 0
) -> Supervisor:
    made = Supervisor(
        regions, lambda: FixedDelay(attempts, delay), STOP_TIMEOUT, keep_others=keep_others, tolerated=tolerated
    )
    first = made.begin()
    assert first == [Start(tuple(region), 1) for region in regions]
    for region in regions:
        run(made, region)
    return made


def run(made: Supervisor, region: Sequence[str], attempt: int = 1) -> None:
    for name in region:
        assert made.started(name, attempt, f"{name}-{attempt}") == []


def failed(made: Supervisor, query: str, now: float, attempt: int = 1, remedy: str = "") -> list[Command]:
    return made.ended(query, attempt, Failure(query, "boom", remedy), now)


def stopped(made: Supervisor, query: str, now: float, attempt: int = 1) -> list[Command]:
    return made.ended(query, attempt, None, now)


def states(made: Supervisor) -> dict[str, str]:
    return {name: query.state.value for name, query in made.queries.items()}


def test_all_regions_are_started_and_run() -> None:
    made = Supervisor([("a", "b"), ("c",)], NoRestart, STOP_TIMEOUT)
    assert states(made) == dict.fromkeys("abc", "STARTING")
    assert made.begin() == [Start(("a", "b"), 1), Start(("c",), 1)]
    assert made.started("a", 1, "run-a") == []
    assert states(made) == {"a": "RUNNING", "b": "STARTING", "c": "STARTING"}
    assert made.queries["a"].run_id == "run-a"
    assert made.due() is None


def test_a_job_without_queries_has_finished() -> None:
    assert Supervisor([], NoRestart, STOP_TIMEOUT).begin() == [QueryEnd(None)]


def test_a_failure_stops_its_region_and_restarts_it_after_the_delay() -> None:
    made = supervisor(("a", "b", "c"), ("other",))
    assert failed(made, "b", 100.0) == [StopQuery("a", 1), StopQuery("c", 1)]
    assert states(made) == {"a": "RESTARTING", "b": "RESTARTING", "c": "RESTARTING", "other": "RUNNING"}
    assert made.queries["b"].error == "boom"
    assert made.due() == 100.0 + STOP_TIMEOUT
    assert stopped(made, "a", 101.0) == []
    assert stopped(made, "c", 101.0) == []
    assert made.due() == 100.0 + DELAY
    assert made.tick(100.0 + DELAY - 0.001) == []
    assert made.tick(100.0 + DELAY) == [Start(("a", "b", "c"), 2)]
    assert made.due() is None
    run(made, "abc", 2)
    assert states(made) == dict.fromkeys(("a", "b", "c", "other"), "RUNNING")
    assert [made.queries[name].restarts for name in ("a", "b", "c", "other")] == [1, 1, 1, 0]
    assert made.queries["other"].run_id == "other-1"


def test_a_region_that_stops_slowly_starts_as_soon_as_it_has_stopped() -> None:
    made = supervisor(("a", "b"))
    failed(made, "a", 100.0)
    assert stopped(made, "b", 100.0 + DELAY) == [Start(("a", "b"), 2)]


def test_nothing_starts_while_a_query_of_the_region_still_runs() -> None:
    made = supervisor(("a", "b"))
    failed(made, "a", 100.0)
    assert made.tick(100.0 + DELAY) == []
    assert made.tick(100.0 + STOP_TIMEOUT - 0.001) == []


def test_without_delay_a_region_of_one_starts_at_once() -> None:
    made = supervisor(("a",), delay=0.0)
    assert failed(made, "a", 100.0) == [Start(("a",), 2)]


def test_a_region_that_does_not_stop_in_time_is_given_up() -> None:
    made = supervisor(("a", "b", "c"))
    failed(made, "a", 100.0)
    stopped(made, "b", 101.0)
    (end,) = made.tick(100.0 + STOP_TIMEOUT)
    assert end == QueryEnd(Failure("c", "c did not stop within 10 s, after a: boom"))


def test_a_region_that_stops_too_late_goes_on_if_the_others_have() -> None:
    """Seen in a drill: a query that a loaded machine stopped some seconds too late was lost for good."""
    made = supervisor(("a", "b"), ("other",), keep_others=True)
    failed(made, "a", 100.0)
    assert made.tick(100.0 + STOP_TIMEOUT) == []
    assert states(made) == {"a": "FAILED", "b": "FAILED", "other": "RUNNING"}
    assert made.due() is None
    assert stopped(made, "b", 130.0) == [Start(("a", "b"), 2)]
    run(made, "ab", 2)
    assert states(made) == dict.fromkeys(("a", "b", "other"), "RUNNING")


def test_a_region_that_stops_too_late_waits_for_its_delay() -> None:
    made = supervisor(("a", "b"), ("other",), delay=60.0, keep_others=True)
    failed(made, "a", 100.0)
    made.tick(100.0 + STOP_TIMEOUT)
    assert stopped(made, "b", 130.0) == []
    assert states(made) == {"a": "RESTARTING", "b": "RESTARTING", "other": "RUNNING"}
    assert made.due() == 160.0
    assert made.tick(160.0) == [Start(("a", "b"), 2)]


def test_a_region_that_stops_too_late_for_a_reason_that_no_restart_mends_stays_failed() -> None:
    made = supervisor(("a", "b"), ("other",), keep_others=True)
    failed(made, "a", 100.0)
    made.tick(100.0 + STOP_TIMEOUT)
    assert failed(made, "b", 130.0, remedy="mend it") == []
    assert states(made) == {"a": "FAILED", "b": "FAILED", "other": "RUNNING"}
    assert stopped(made, "other", 140.0) == [QueryEnd(Failure("b", "boom", "mend it"))]


def test_failures_that_overlap_make_one_restart_and_do_not_postpone_it() -> None:
    made = supervisor(("a", "b"), attempts=1)
    failed(made, "a", 100.0)
    assert failed(made, "b", 103.0) == []
    assert made.due() == 100.0 + DELAY
    assert made.tick(100.0 + DELAY) == [Start(("a", "b"), 2)]


def test_each_region_has_its_own_strategy() -> None:
    made = supervisor(("a",), ("b",), attempts=1)
    failed(made, "a", 100.0)
    made.tick(104.0)
    run(made, "a", 2)
    assert failed(made, "b", 105.0) == []
    assert states(made) == {"a": "RUNNING", "b": "RESTARTING"}
    assert made.tick(109.0) == [Start(("b",), 2)]


def test_one_of_two_regions_fails_again_while_both_start() -> None:
    made = supervisor(("a",), ("b",))
    failed(made, "a", 100.0)
    failed(made, "b", 100.0)
    assert made.tick(104.0) == [Start(("a",), 2), Start(("b",), 2)]
    assert failed(made, "a", 105.0, attempt=2) == []
    assert made.due() == 109.0
    run(made, "b", 2)
    assert states(made) == {"a": "RESTARTING", "b": "RUNNING"}


@pytest.mark.parametrize("attempts", [0, 1, 3])
def test_a_strategy_that_gives_up_ends_the_program_with_the_cause(attempts: int) -> None:
    made = supervisor(("a",), ("b",), attempts=attempts)
    now = 100.0
    for attempt in range(1, attempts + 1):
        assert failed(made, "a", now, attempt) == []
        now += DELAY
        assert made.tick(now) == [Start(("a",), attempt + 1)]
        run(made, "a", attempt + 1)
    assert failed(made, "a", now, attempts + 1) == [QueryEnd(Failure("a", "boom"))]
    assert made.queries["a"].state is QueryState.FAILED


def test_after_the_end_nothing_is_commanded() -> None:
    made = supervisor(("a",), ("b",), ("c",), attempts=1)
    failed(made, "b", 100.0)
    assert failed(made, "a", 101.0, remedy="mend it") == [QueryEnd(Failure("a", "boom", "mend it"))]
    assert made.due() is None
    assert made.tick(1000.0) == []
    assert failed(made, "c", 1000.0) == []
    assert made.started("c", 1, "late") == []
    assert made.begin() == []
    assert made.queries["c"].run_id == "c-1"


def test_an_error_that_no_restart_mends_uses_no_attempt() -> None:
    made = supervisor(("a", "b"), attempts=100)
    assert failed(made, "a", 100.0, remedy="mend it") == [QueryEnd(Failure("a", "boom", "mend it"))]


def test_such_an_error_of_a_query_that_is_being_stopped_counts_too() -> None:
    made = supervisor(("a", "b"))
    failed(made, "a", 100.0)
    assert failed(made, "b", 101.0, remedy="mend it") == [QueryEnd(Failure("b", "boom", "mend it"))]


def test_a_region_that_is_given_up_may_leave_the_others_alone() -> None:
    made = supervisor(("a", "b"), ("other",), attempts=0, keep_others=True)
    assert failed(made, "a", 100.0) == [StopQuery("b", 1)]
    assert states(made) == {"a": "FAILED", "b": "FAILED", "other": "RUNNING"}
    assert made.due() is None
    assert failed(made, "b", 101.0, remedy="mend it") == []  # it has failed already
    assert made.tick(1000.0) == []
    assert stopped(made, "other", 1000.0) == [QueryEnd(Failure("a", "boom"))]


def test_the_end_waits_for_the_queries_of_a_region_that_was_given_up() -> None:
    made = supervisor(("a", "b"), attempts=0, keep_others=True)
    assert failed(made, "a", 100.0) == [StopQuery("b", 1)]
    assert stopped(made, "b", 101.0) == [QueryEnd(Failure("a", "boom"))]


def test_the_job_has_finished_when_all_its_queries_have() -> None:
    made = supervisor(("a", "b"), ("c",))
    assert stopped(made, "a", 100.0) == []
    assert stopped(made, "c", 100.0) == []
    assert states(made) == {"a": "FINISHED", "b": "RUNNING", "c": "FINISHED"}
    assert stopped(made, "b", 100.0) == [QueryEnd(None)]


def test_a_finished_query_restarts_with_its_region() -> None:
    made = supervisor(("a", "b"))
    stopped(made, "a", 100.0)
    failed(made, "b", 101.0)
    assert made.tick(105.0) == [Start(("a", "b"), 2)]


def test_a_failed_start_is_a_failure_like_any_other() -> None:
    made = Supervisor([("a", "b", "c")], lambda: FixedDelay(1, DELAY), STOP_TIMEOUT)
    made.begin()
    made.started("a", 1, "run")
    assert failed(made, "b", 100.0) == [StopQuery("a", 1)]
    assert stopped(made, "c", 100.0) == []  # it was not started any more
    assert stopped(made, "a", 101.0) == []
    assert made.tick(104.0) == [Start(("a", "b", "c"), 2)]


def test_a_query_that_starts_while_its_region_stops_is_stopped() -> None:
    made = Supervisor([("a", "b")], lambda: FixedDelay(1, DELAY), STOP_TIMEOUT)
    made.begin()
    made.started("a", 1, "run")
    assert failed(made, "a", 100.0) == []  # b has not answered yet
    assert made.tick(105.0) == []
    assert made.started("b", 1, "run") == [StopQuery("b", 1)]
    assert states(made)["b"] == "RESTARTING"
    assert stopped(made, "b", 106.0) == [Start(("a", "b"), 2)]


def test_what_is_said_of_an_earlier_attempt_or_twice_changes_nothing() -> None:
    made = supervisor(("a", "b"), delay=0.0)
    failed(made, "a", 100.0)
    assert failed(made, "a", 100.0) == []
    stopped(made, "b", 100.0)
    assert failed(made, "a", 101.0) == []
    assert made.started("a", 1, "late") == []
    assert made.started("a", 2, "now") == []
    assert made.started("a", 2, "twice") == []
    assert made.queries["a"].run_id == "now"
    assert states(made) == {"a": "RUNNING", "b": "RESTARTING"}
    assert made.queries["a"].restarts == 1


def test_what_is_said_of_a_query_after_its_end_changes_nothing() -> None:
    made = supervisor(("a", "b"))
    stopped(made, "a", 100.0)
    assert failed(made, "a", 101.0) == []
    assert made.started("a", 1, "late") == []
    assert states(made) == {"a": "FINISHED", "b": "RUNNING"}
    assert made.queries["a"].run_id == "a-1"


def test_the_next_time_is_the_earliest_of_all_regions() -> None:
    made = supervisor(("a",), ("b", "c"), ("d",))
    failed(made, "a", 102.0)
    assert made.due() == 102.0 + DELAY
    failed(made, "d", 101.0)
    assert made.due() == 101.0 + DELAY
    failed(made, "b", 90.0)
    assert made.due() == 90.0 + STOP_TIMEOUT


def overdue(made: Supervisor, query: str, now: float, attempt: int = 1, *, completed: bool = False) -> list[Command]:
    return made.overdue(query, attempt, Failure(query, "slow"), now, completed=completed)


def test_a_batch_that_takes_too_long_stops_its_query_and_is_a_failure() -> None:
    made = supervisor(("a", "b"), ("other",), attempts=1)
    assert overdue(made, "a", 100.0) == [StopQuery("a", 1), StopQuery("b", 1)]
    assert states(made) == {"a": "RESTARTING", "b": "RESTARTING", "other": "RUNNING"}
    assert made.queries["a"].error == "slow"
    stopped(made, "b", 101.0)
    assert stopped(made, "a", 101.0) == []
    assert made.tick(100.0 + DELAY) == [Start(("a", "b"), 2)]
    run(made, "ab", 2)
    assert overdue(made, "b", 200.0, 2) == [QueryEnd(Failure("b", "slow"))]


def test_tolerated_batches_use_no_attempt_and_restart_at_once() -> None:
    made = supervisor(("a",), attempts=0, tolerated=2)
    for attempt in (1, 2):
        assert overdue(made, "a", 100.0, attempt) == [StopQuery("a", attempt)]
        assert stopped(made, "a", 101.0, attempt) == [Start(("a",), attempt + 1)]
        run(made, "a", attempt + 1)
    assert overdue(made, "a", 100.0, 3) == [QueryEnd(Failure("a", "slow"))]
    assert not made.stuck


def test_a_completed_batch_ends_the_row_of_those_that_took_too_long() -> None:
    made = supervisor(("a",), attempts=0, tolerated=1)
    for attempt in (1, 2, 3):
        assert overdue(made, "a", 100.0, attempt, completed=True) == [StopQuery("a", attempt)]
        stopped(made, "a", 101.0, attempt)
        run(made, "a", attempt + 1)


def test_a_batch_that_cannot_be_interrupted_ends_the_program() -> None:
    made = supervisor(("a",), ("b",))
    overdue(made, "a", 100.0)
    assert not made.stuck
    assert made.tick(100.0 + STOP_TIMEOUT) == [QueryEnd(Failure("a", "a did not stop within 10 s, after a: slow"))]
    assert made.stuck


def test_what_is_said_of_a_batch_that_is_over_changes_nothing() -> None:
    made = supervisor(("a",), ("b",))
    overdue(made, "a", 100.0)
    assert overdue(made, "a", 101.0) == []
    assert overdue(made, "b", 101.0, attempt=2) == []
    stopped(made, "b", 101.0)
    assert overdue(made, "b", 102.0) == []
    made.tick(100.0 + STOP_TIMEOUT)
    assert overdue(made, "a", 200.0) == []


def test_an_operator_has_a_region_started_again_at_once_and_the_others_go_on() -> None:
    made = supervisor(("a", "b"), ("other",), attempts=0)
    assert made.region("b") == (("a", "b"), 1)
    assert made.restart("b", 100.0) == [StopQuery("a", 1), StopQuery("b", 1)]
    assert states(made) == {"a": "RESTARTING", "b": "RESTARTING", "other": "RUNNING"}
    assert made.restarted("b", 1) is False
    assert stopped(made, "b", 101.0) == []
    assert stopped(made, "a", 101.0) == [Start(("a", "b"), 2)]
    assert made.started("a", 2, "a-2") == []
    assert made.restarted("b", 1) is False, "its neighbour has not started yet"
    assert made.started("b", 2, "b-2") == []
    assert made.restarted("b", 1) is True
    assert [made.queries[name].restarts for name in ("a", "b", "other")] == [1, 1, 0]


def test_a_query_that_does_not_stop_for_it_is_given_up() -> None:
    made = supervisor(("a",))
    made.restart("a", 100.0)
    assert made.tick(100.0 + STOP_TIMEOUT - 0.001) == []
    (end,) = made.tick(100.0 + STOP_TIMEOUT)
    assert isinstance(end, QueryEnd)
    assert made.stuck
    assert isinstance(made.restarted("a", 1), Failure)
    assert made.restart("a", 200.0) == []


def test_one_that_waits_for_its_restart_does_not_wait_and_has_all_its_attempts_again() -> None:
    made = supervisor(("a",), attempts=1)
    failed(made, "a", 100.0)
    assert made.restart("a", 101.0) == [Start(("a",), 2)]
    run(made, "a", 2)
    assert made.restarted("a", 1) is True
    assert failed(made, "a", 102.0, 2) == []
    assert made.tick(102.0 + DELAY) == [Start(("a",), 3)]


def test_one_that_stops_for_its_restart_starts_as_soon_as_it_has_stopped() -> None:
    made = supervisor(("a", "b"))
    assert failed(made, "a", 100.0) == [StopQuery("b", 1)]
    assert made.restart("a", 101.0) == []
    assert made.due() == 100.0 + STOP_TIMEOUT
    assert stopped(made, "b", 101.5) == [Start(("a", "b"), 2)]


def test_one_that_was_given_up_starts_again() -> None:
    made = supervisor(("a", "b"), ("other",), attempts=0, keep_others=True)
    assert failed(made, "a", 100.0) == [StopQuery("b", 1)]
    assert states(made)["a"] == "FAILED"
    assert made.restart("a", 101.0) == [StopQuery("b", 1)], "it has not stopped yet"
    assert stopped(made, "b", 102.0) == [Start(("a", "b"), 2)]
    run(made, ("a", "b"), 2)
    assert made.restarted("a", 1) is True
    assert failed(made, "a", 103.0, 2) == [StopQuery("b", 2)]
    assert stopped(made, "b", 103.0, 2) == []
    assert made.restart("b", 104.0) == [Start(("a", "b"), 3)], "it has stopped"


def test_one_whose_queries_have_finished_starts_again() -> None:
    made = supervisor(("a",), ("other",))
    stopped(made, "a", 100.0)
    assert states(made)["a"] == "FINISHED"
    assert made.restart("a", 101.0) == [Start(("a",), 2)]
    assert made.restarted("a", 1) is False
    run(made, "a", 2)
    stopped(made, "a", 102.0, 2)
    assert made.restarted("a", 1) is True, "it has run, and finished"


def test_one_that_is_just_starting_is_stopped_as_soon_as_it_has_started() -> None:
    made = Supervisor([("a",)], NoRestart, STOP_TIMEOUT)
    made.begin()
    assert made.restart("a", 100.0) == []
    assert made.started("a", 1, "a-1") == [StopQuery("a", 1)]
    assert stopped(made, "a", 101.0) == [Start(("a",), 2)]


def test_a_failure_after_it_is_told() -> None:
    made = supervisor(("a",), ("other",))
    failed(made, "a", 100.0)
    made.tick(100.0 + DELAY)
    run(made, "a", 2)
    made.restart("a", 110.0)
    assert made.restarted("a", 2) is False, "the failure before does not count"
    stopped(made, "a", 111.0, 2)
    failed(made, "a", 112.0, 3)
    found = made.restarted("a", 2)
    assert isinstance(found, Failure)
    assert found.error == "boom"
