"""Failures: one line of an error, those that no restart mends, and whether a program may end, by its queries."""

import threading

import pytest

from ha.hook.query_watch import LONGEST_LINE
from ha.spark.queries.query_failures import Failure, QueryEnds, failure

TRACE = """org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.Some.method(Some.scala:1)
Caused by: java.io.IOException: disk   full
\tat org.apache.spark.Other.method(Other.scala:1)
Caused by: java.lang.IllegalStateException: the root of it
\t... 3 more
"""


def test_an_error_of_python_is_found_in_that_of_the_jvm() -> None:
    text = """org.apache.spark.SparkException: An error occurred
Caused by: py4j.Py4JException: It said: Traceback (most recent call last):
  File "a.py", line 1, in call
    raise KeyError("a") from error
KeyError: 'a'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 1, in batch
    raise ArithmeticError("poison")
ArithmeticError: poison
and its second line

\tat py4j.Protocol.getReturnValue(Protocol.java:476)
\t... 34 more
"""
    assert failure("q", text) == Failure("q", "ArithmeticError: poison")


NO_GATEWAY = "pyspark.errors.PySparkRuntimeError: [JAVA_GATEWAY_EXITED] Java gateway process exited"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"ha: it has no hook: set it.\nTraceback (most recent call last):\n{NO_GATEWAY}", "it has no hook: set it."),
        (f"Traceback (most recent call last):\n{NO_GATEWAY}", NO_GATEWAY),
        (TRACE, "java.lang.IllegalStateException: the root of it"),
        ("boom", "boom"),
        ("\n  two   words \nand more", "two words"),
        ("", "it ended with an error that has no text"),
        ("x" * LONGEST_LINE, "x" * LONGEST_LINE),
        ("x" * (LONGEST_LINE + 1), "x" * LONGEST_LINE + "..."),
    ],
)
def test_one_line(text: str, line: str) -> None:
    assert failure("q", text) == Failure("q", line)


@pytest.mark.parametrize(
    "said",
    [
        "assertion failed: There are [1] sources in the checkpoint offsets and now there are [2] sources requested by",
        "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match",
        "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided",
        "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming",
        "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] Cannot restart",
        "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint",
        "java.lang.ClassNotFoundException: com.example.Udf",
        "java.lang.NoClassDefFoundError: com/example/Udf",
        "ModuleNotFoundError: No module named 'x'",
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka",
    ],
)
def test_what_no_restart_mends_says_what_to_do_also_as_a_cause(said: str) -> None:
    direct, nested = failure("q", said), failure("q", f"{TRACE}Caused by: {said}\n\tat x")
    outer = failure("q", f"org.apache.spark.SparkException: {said}\nCaused by: java.io.IOException: another")
    assert direct.remedy
    assert direct.remedy == nested.remedy == outer.remedy
    assert "no restart mends this: " in str(direct)


@pytest.mark.parametrize(
    "said", [TRACE, "[PATH_NOT_FOUND] x", "[CONCURRENT_STREAM_LOG_UPDATE]", "[FAILED_READ_FILE] x", "KeyError: 'a'"]
)
def test_everything_else_may_be_mended_by_a_restart(said: str) -> None:
    assert failure("q", said).remedy == ""


def test_a_remedy_that_is_known_already() -> None:
    assert failure("q", "fenced", "nothing").remedy == "nothing"


ABORTED = "org.apache.spark.SparkException: Job aborted\nCaused by: java.io.IOException: no room"


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
    ends.ended("a-1", ABORTED)
    ends.ended("b-1", None)
    assert f"{ends.failed}" == "a: java.io.IOException: no room"
    ends.started("b-2", "b")
    assert f"{ends.failed}".startswith("a: ")
    ends.started("a-2", "a")
    ends.ended("a-1", ABORTED)
    assert ends.failed is None, "it was the run before"


def test_an_end_that_nobody_has_told_is_not_known() -> None:
    ends = made("a-1")
    ends.settle(set(), 0.01)
    assert ends.unfinished(set()) == "it is not known how query a has ended"


def test_it_waits_for_ends_that_are_on_their_way() -> None:
    ends = made("a-1", "b-1")
    threading.Timer(0.05, ends.ended, ("a-1", ABORTED)).start()
    ends.settle({"b-1"}, 10.0)
    assert ends.failed is not None
