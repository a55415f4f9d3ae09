"""What is written of the states of supervised queries, and told to the metrics."""

from pathlib import Path

from ha.spark.query_reports import QueryReports
from ha.spark.supervision.states import Graph, StatesWriter, read
from ha.spark.supervision.supervisor import Query, QueryState
from tests.system.spark.helpers import leading


def test_states_that_are_shown_are_written_and_reported(tmp_path: Path) -> None:
    reports = QueryReports()
    with leading("orders", (tmp_path / "jobs").as_uri()) as leadership:
        writer = StatesWriter(leadership, Graph("region", []), reports)
        writer.start()
        for state in (QueryState.RUNNING, QueryState.RESTARTING):
            writer.show([Query("clean", state)])
            (clean,) = reports.all()
            assert clean.state == state.value
        writer.close()
        _, states = read(leadership.own)
        assert states is not None
        assert [(each.name, each.state) for each in states.queries] == [("clean", QueryState.RESTARTING)]
