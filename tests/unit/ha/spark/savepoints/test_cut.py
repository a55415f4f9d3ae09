"""The cut under drawn interleavings: no reader is saved with more than its writers are saved with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.spark.savepoints.taking import cut
from ha.spark.stored.commit_log import Logs
from ha.spark.supervision.states import GraphQuery
from store.errors import Invalid


@dataclass
class Query:
    """One query of a simulated job: each batch begins, publishes its rows, and is committed."""

    name: str
    reads: list[str]
    begun: int | None = None
    published: int = -1
    committed: int | None = None
    read: list[dict[str, int]] = field(default_factory=list)
    """For each batch, the newest batch of each writer of which it has read."""

    def step(self, others: Mapping[str, "Query"]) -> None:
        if self.begun == self.committed:
            self.begun = 0 if self.begun is None else self.begun + 1
            self.read.append({each: others[each].published for each in self.reads})
        elif self.published != self.begun:
            assert self.begun is not None
            self.published = self.begun
        else:
            self.committed = self.begun

    @property
    def look(self) -> Logs:
        return Logs(self.committed, self.begun)


def graph(queries: Mapping[str, Query]) -> list[GraphQuery]:
    return [GraphQuery(each.name, each.reads, [each.name], 0) for each in queries.values()]


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Query]:
    """Up to five queries; each may read what the ones before it write. Their names sort in another order."""
    names = draw(st.permutations("abcde"))[: draw(st.integers(1, 5))]
    found: dict[str, Query] = {}
    for name in names:
        found[name] = Query(name, draw(st.lists(st.sampled_from(sorted(found)), unique=True)) if found else [])
    return found


class Stuck(Exception):
    """The cut waits for a query that makes no step any more."""


def taken(queries: dict[str, Query], steps: list[str]) -> dict[str, int] | None:
    """Cut between the steps of the queries; None if they make no step any more while it waits."""
    left, before = iter(steps), dict[str, Logs]()

    def look(name: str) -> Logs:
        for step in left:
            if step == "look":
                break
            queries[step].step(queries)
        else:
            if before.get(name) == queries[name].look and not queries[name].look.complete:
                raise Stuck
        before[name] = queries[name].look
        return before[name]

    try:
        return cut(queries, graph(queries), look)
    except Stuck:
        return None


@given(st.data())
def test_no_reader_is_saved_with_more_than_its_writers(data: st.DataObject) -> None:
    queries = data.draw(jobs())
    moves = st.sampled_from([*queries, "look", "look"])
    for step in data.draw(st.lists(st.sampled_from(sorted(queries)), max_size=30)):
        queries[step].step(queries)
    batches = taken(queries, data.draw(st.lists(moves, max_size=60)))
    if batches is None:
        return
    for name, batch in batches.items():
        assert queries[name].committed is not None
        for before in queries[name].read[: batch + 1]:
            for writer, newest in before.items():
                assert newest <= batches.get(writer, -1), f"{name} has read batch {newest} of {writer}"


@given(st.data())
def test_a_cut_ends_once_every_query_has_completed_what_it_has_begun(data: st.DataObject) -> None:
    queries = data.draw(jobs())
    for step in data.draw(st.lists(st.sampled_from(sorted(queries)), max_size=30)):
        queries[step].step(queries)
    for query in queries.values():
        while query.begun != query.committed:
            query.step(queries)
    batches = taken(queries, [])
    assert batches == {name: each.committed for name, each in queries.items() if each.committed is not None}


def run(queries: list[str], declared: list[GraphQuery], *looks: tuple[str, Logs]) -> dict[str, int]:
    left = list(looks)

    def look(name: str) -> Logs:
        expected, found = left.pop(0)
        assert name == expected
        return found

    batches = cut(queries, declared, look)
    assert not left
    return batches


CHAIN = [GraphQuery("first", [], ["a"], 0), GraphQuery("then", ["a"], ["b"], 0), GraphQuery("last", ["b"], [], 0)]


def test_readers_come_first_and_writers_are_waited_for() -> None:
    batches = run(
        ["first", "last", "then"],
        CHAIN,
        ("last", Logs(3, 4)),  # nobody reads what it writes, so nothing is waited for
        ("then", Logs(6, 7)),
        ("then", Logs(6, 7)),
        ("then", Logs(7, 8)),  # what it has begun since does not count
        ("first", Logs(9, 9)),
    )
    assert batches == {"last": 3, "then": 7, "first": 9}


@pytest.mark.parametrize(
    ("declared", "looks", "batches"),
    [
        pytest.param(
            CHAIN,
            [("last", Logs()), ("then", Logs(None, 0)), ("then", Logs(0, 0)), ("first", Logs())],
            {"then": 0},
            id="a first batch that has begun is waited for",
        ),
        pytest.param(
            [],
            [("first", Logs(1, 2)), ("last", Logs(4, 4)), ("then", Logs(None, 0))],
            {"first": 1, "last": 4},
            id="none is declared, or all have ended",
        ),
        pytest.param(
            [GraphQuery("first", ["x"], ["x"], 0)],
            [("first", Logs(1, 2)), ("last", Logs()), ("then", Logs())],
            {"first": 1},
            id="it reads what it writes",
        ),
    ],
)
def test_a_cut_has_these_batches(
    declared: list[GraphQuery], looks: list[tuple[str, Logs]], batches: dict[str, int]
) -> None:
    assert run(["first", "then", "last"], declared, *looks) == batches


def test_queries_that_read_each_others_output_have_no_cut_while_they_run() -> None:
    circle = [GraphQuery("a", ["x"], ["y"], 0), GraphQuery("b", ["y"], ["x"], 0)]
    with pytest.raises(Invalid, match=r"a -> b.*stop the job with a savepoint"):
        run(["a", "b"], circle)


@pytest.mark.parametrize(
    ("look", "complete"),
    [
        (Logs(), True), (Logs(0), True), (Logs(None, 0), False), (Logs(0, 0), True), (Logs(0, 1), False),
        (Logs(2, 1), True),
    ],
)  # fmt: skip
def test_complete_is_what_has_committed_all_that_it_has_begun(look: Logs, *, complete: bool) -> None:
    assert look.complete is complete
