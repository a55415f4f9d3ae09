"""Whether a program may end, as far as its queries go."""

import threading

from ha.spark.queries.query_failures import QueryEnds

TRACE = "org.apache.spark.SparkException: Job aborted\nCaused by: java.io.IOException: no room"


def made(*runs: str) -> QueryEnds:
    ends = QueryEnds()
    for run in runs:
        ends.started(run, run.partition("-")[0])
    return ends


def test_queries_that_have_ended_are_an_end() -> None:
    ends = made("a-1", "b-1")
    assert ends.unfinished({"a-1", "b-1"}) == "query a was still active"
    ends.ended("a-1", None)
    ends.ended("b-1", None)
    assert ends.unfinished(set()) == ""
    assert ends.failed is None


def test_none_was_started() -> None:
    assert made().unfinished(set()) == "no query was started"


def test_a_failure_stays_until_the_query_is_started_again() -> None:
    ends = made("a-1", "b-1")
    ends.ended("a-1", TRACE)
    ends.ended("b-1", None)
    assert f"{ends.failed}" == "a: java.io.IOException: no room"
    ends.started("b-2", "b")
    assert f"{ends.failed}".startswith("a: ")
    ends.started("a-2", "a")
    ends.ended("a-1", TRACE)
    assert ends.failed is None, "it was the run before"


def test_an_end_that_nobody_has_told_is_not_known() -> None:
    ends = made("a-1")
    ends.settle(set(), 0.01)
    assert ends.unfinished(set()) == "it is not known how query a has ended"


def test_it_waits_for_ends_that_are_on_their_way() -> None:
    ends = made("a-1", "b-1")
    threading.Timer(0.05, ends.ended, ("a-1", TRACE)).start()
    ends.settle({"b-1"}, 10.0)
    assert ends.failed is not None
