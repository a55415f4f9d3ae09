"""Verdicts: what is said of a query, given its checkpoint and what its dry run has told."""

import msgspec
import pytest

from ha.checkpoints.contents import Offsets
from ha.checkpoints.layouts import Layout
from ha.preflight.scratch import Copy
from ha.preflight.verdict import DryRunEnd, PreflightVerdict, Told, judge, told
from ha.spark.queries.query_failures import Failure
from tests.unit.ha.checkpoints.test_changes import layout

OVER = DryRunEnd("300 s are over.")


def copy(
    layouts: dict[int, Layout] | None = None, *, replayed: bool = True, read: dict[str, list[str]] | None = None
) -> Copy:
    settings = {"spark.sql.shuffle.partitions": "2"}
    return Copy(
        "orders", "daily", 7, replayed, layout() if layouts is None else layouts, Offsets(settings, 0, {}), read or {}
    )


def test_what_is_done_and_has_the_same_state_fits() -> None:
    found = judge(copy(), Told(begun=True, done=True), layout(), OVER)
    assert (found.fits, found.batch, found.problems, found.notes) == (True, 7, [], [])
    assert found.before == found.after == list(layout().values())


def test_a_setting_that_the_checkpoint_overrules_is_a_note() -> None:
    said = Told(begun=True, done=True, settings={"spark.sql.shuffle.partitions": "3"})
    assert judge(copy(), said, layout(), OVER).notes == [
        "The checkpoint's setting stays: spark.sql.shuffle.partitions=2 (3 in the session)."
    ]


SOURCES = {"orders": {"logOffset": 3}, "users": {"logOffset": 2}, "never-read": None}


def named(*names: str, read: dict[str, list[str]] | None = None) -> PreflightVerdict:
    """Judge a query whose checkpoint has names of sources, given those that the program has."""
    known = msgspec.structs.replace(copy(read=read), offsets=Offsets({}, 0, SOURCES))
    places = [f"FileStreamSource[file:/in/{each}]" for each in names]
    return judge(known, Told(begun=True, done=True, sources=places, names=list(names)), layout(), OVER)


def test_sources_with_names_may_change_places_be_added_and_be_removed() -> None:
    assert named("users", "orders").notes == []
    assert named("users", "orders", "never-read", "visits").notes == [
        "Source never-read is new: it is read from its beginning.",
        "Source visits is new: it is read from its beginning.",
    ]
    assert named("orders").notes == ["Source users is gone; what was read of it stays noted."]
    assert named("users", "orders").fits
    assert named("orders").fits
    assert named().notes == [], "this Spark did not tell"


def test_a_source_with_another_name_would_be_read_a_second_time() -> None:
    found = named("clients", "orders")
    (problem,) = found.problems
    assert (found.fits, problem.kind, problem.silent, found.notes) == (False, "sources", True, [])
    assert problem.text == (
        "The program has a source clients, which the checkpoint has not, and no source users, which the checkpoint has."
    )


def test_files_are_compared_by_the_name_of_their_source() -> None:
    read = {"orders": ["file:///in/orders/1"], "users": ["file:///in/users/1"]}
    assert named("users", "orders", read=read).fits
    (problem,) = named("users", "orders", read={**read, "users": ["file:///in/others/1"]}).problems
    assert problem.text == "Source users reads file:/in/users, and its checkpoint has read file:///in/others/1."


def test_new_input_is_told_where_the_newest_batch_could_not_be_done_again() -> None:
    found = judge(copy(replayed=False), Told(begun=True, done=True), layout(), OVER)
    assert found.fits
    assert found.notes == ["The batch before was not there any more, so the batch was done with new input."]


def test_a_state_that_is_gone_is_seen_although_the_batch_is_done() -> None:
    found = judge(copy(), Told(begun=True, done=True), {}, OVER)
    assert [each.kind for each in found.problems] == ["state: operator removed"]


def test_an_error_is_explained_by_a_change_of_the_state_if_there_is_one() -> None:
    said = Told(begun=True, error="[STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE] It failed.")
    found = judge(copy(), said, layout(1), OVER)
    assert [each.kind for each in found.problems] == ["state: operator removed", "state: operator added"]
    assert (found.fits, found.batch) == (False, None)


def test_an_error_before_the_plan_says_nothing_of_the_state() -> None:
    text = "There are [1] sources in the checkpoint offsets and now there are [2] sources.\n=== Streaming Query ===\nX"
    (problem,) = judge(copy(), Told(begun=True, error=text), {}, OVER).problems
    assert problem.kind == "error"
    assert problem.text == "There are [1] sources in the checkpoint offsets and now there are [2] sources."
    assert problem.remedy.startswith("its checkpoint knows another number of sources")
    (problem,) = judge(copy(), Told(begun=True, error="It is broken."), {}, OVER).problems
    assert problem.remedy == "correct the program, and check it again"


@pytest.mark.parametrize(
    ("said", "end", "kind", "text"),
    [
        (Told(), OVER, "missing", "The program has not started it: 300 s are over."),
        (Told(begun=True), OVER, "time", "Batch 7 did not get complete: 300 s are over."),
        (Told(unseen="hdfs://h/x"), OVER, "location", "The program keeps its checkpoint at hdfs://h/x"),
        (
            Told(),
            DryRunEnd("it has ended with code 1.", Failure("", "NameError: x")),
            "ended",
            "The program has not started it: it has ended with code 1. NameError: x",
        ),
    ],
)
def test_what_was_not_seen_does_not_fit(said: Told, end: DryRunEnd, kind: str, text: str) -> None:
    found = judge(copy(), said, {}, end)
    (problem,) = found.problems
    assert not found.fits
    assert problem.kind == kind
    assert problem.text.startswith(text)
    assert problem.remedy
    assert found.after == []


@pytest.mark.parametrize(
    ("place", "file", "fits"),
    [
        ("file:/in/a", "file:///in/a/1.json", True),
        ("hdfs://h:8020/in/a", "hdfs://h:8020/in/a/day=1/1.json", True),
        ("file:/in/*/x", "file:///in/a/x/1.json", True),
        ("file:/in/a/*.json", "file:///in/a/1.json", True),
        ("file:/in/a", "file:///in/b/1.json", False),
        ("file:/in/a", "file:///in/ab/1.json", False),
    ],
)
def test_sources_that_have_changed_their_places_are_seen(place: str, file: str, *, fits: bool) -> None:
    said = Told(begun=True, done=True, sources=["KafkaV2[Subscribe[x]]", f"FileStreamSource[{place}]"])
    found = judge(copy(read={"0": ["file:///elsewhere/1"], "1": [file]}), said, layout(), OVER)
    assert found.fits is fits
    assert [(each.kind, each.silent) for each in found.problems] == [] if fits else [("sources", True)]


def test_lines_of_a_report_are_put_together_by_query() -> None:
    lines = [
        b'{"query": "a", "begun": true, "settings": {"x": "1"}}',
        b'{"query": "b", "unseen": ""}',
        b'{"query": "", "waiting": true}',
        b'{"query": "a", "done": true, "sources": ["s"]}',
    ]
    found = told(lines)
    assert found["a"] == Told(begun=True, done=True, settings={"x": "1"}, sources=["s"])
    assert {name: each.over for name, each in found.items()} == {"a": True, "b": True, "": True}
    assert not Told(begun=True).over
    assert not Told().over
    assert Told(begun=True, error="").over
