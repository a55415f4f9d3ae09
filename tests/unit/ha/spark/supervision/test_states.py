"""The states of supervised queries, as they are written and told to the metrics."""

from functools import partial
from pathlib import Path

import pytest

from ha.spark.queries.query_reports import QueryReports
from ha.spark.supervision.states import Graph, StatesWriter, read
from ha.spark.supervision.supervisor import Query, QueryState
from leader.errors import Unreadable
from leader.job.status import JobStatus, Status
from leader.job.versioned_files import graph_of
from tests.system.spark.helpers import leading
from tests.unit.ha.waiting import wait_until


def test_states_that_are_shown_are_written_and_reported(tmp_path: Path) -> None:
    reports = QueryReports()
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        writer = StatesWriter(leadership, Graph([]), reports)
        writer.start()
        for state in (QueryState.RUNNING, QueryState.RESTARTING):
            writer.show([Query("clean", state)])
            (clean,) = reports.all()
            assert clean.state == state.value
        writer.close()
        _, states = read(leadership.own)
        assert states is not None
        assert [(each.name, each.state) for each in states.queries] == [("clean", QueryState.RESTARTING)]


@pytest.mark.parametrize("data", [b"{", b'{"queries":[{"name":"\xff"}]}', b'{"x":' + b"[" * 100_000])
def test_a_graph_that_is_damaged_is_named(tmp_path: Path, data: bytes) -> None:
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        graph_of(leadership.own).put(data)
        with pytest.raises(Unreadable, match="Version 1 of the job's graph cannot be read"):
            read(leadership.own)


RUNNING, RESTARTING, FAILED = QueryState.RUNNING, QueryState.RESTARTING, QueryState.FAILED


@pytest.mark.parametrize(
    ("stored", "shown", "failing", "after"),
    [
        (Status.RUNNING, (RUNNING, RUNNING), False, Status.RUNNING),
        (Status.RUNNING, (RUNNING, RESTARTING), False, Status.RESTARTING),
        (Status.RUNNING, (RUNNING, FAILED), False, Status.RUNNING),
        (Status.RUNNING, (RUNNING, FAILED), True, Status.FAILING),
        (Status.RUNNING, (RESTARTING, FAILED), True, Status.FAILING),
        (Status.CANCELLING, (RUNNING, RESTARTING), False, Status.CANCELLING),
        (Status.CANCELLING, (RUNNING, FAILED), True, Status.CANCELLING),
        (Status.CREATED, (RUNNING, RESTARTING), False, Status.CREATED),
        (Status.RECONCILING, (RUNNING, RESTARTING), False, Status.RESTARTING),
    ],
)
def test_the_state_of_the_job_follows_from_those_of_its_queries(
    tmp_path: Path, stored: Status, shown: tuple[QueryState, ...], failing: bool, after: Status
) -> None:
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        status = leadership.status
        if stored is not Status.CREATED:
            status.change(status.read(), Status.RUNNING)
            status.change(Status.RUNNING, stored)
        writer = StatesWriter(leadership, Graph([]))
        writer.start()
        writer.show([Query(f"q{number}", state) for number, state in enumerate(shown)], failing=failing)
        writer.close()
        assert status.read() is after


def test_the_job_runs_again_when_no_query_waits_any_more(tmp_path: Path) -> None:
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        status = leadership.status
        status.change(status.read(), Status.RUNNING)
        writer = StatesWriter(leadership, Graph([]))
        writer.start()
        for state, wanted in ((RESTARTING, Status.RESTARTING), (RUNNING, Status.RUNNING)):
            before = status.entry().sequence
            writer.show([Query("clean", state)])
            wait_until(partial(_is, status, wanted), what=f"it is {wanted}")
            assert status.entry().sequence == before + 1
        writer.close()


def _is(status: JobStatus, wanted: Status) -> bool:
    return status.read() is wanted


def test_a_job_is_reconciling_until_each_query_is_adopted_or_started(tmp_path: Path) -> None:
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        status = leadership.status
        status.change(status.read(), Status.RUNNING)
        status.change(Status.RUNNING, Status.RECONCILING)
        writer = StatesWriter(leadership, Graph([]), reconciling=True)
        writer.start()
        shown = [(RUNNING, QueryState.STARTING), (RUNNING, FAILED), (RUNNING, QueryState.STARTING)]
        for states, after in zip(shown, (Status.RECONCILING, Status.RUNNING, Status.RUNNING), strict=True):
            writer.show([Query(f"q{number}", state) for number, state in enumerate(states)])
            wait_until(lambda: writer._wanted is None)
            assert status.read() is after, states
        writer.close()
