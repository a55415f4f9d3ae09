"""The cut under drawn interleavings: no reader is saved with more than its writers are saved with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.spark.savepoints.batch_choice import Cutting, Look, cut, settled
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
    def look(self) -> Look:
        return Look(self.committed, self.begun)


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


def taken(cutting: Cutting, queries: dict[str, Query], steps: list[str]) -> dict[str, int] | None:
    """Run a cut between the steps of the queries; None if they make no step any more while it waits."""
    query = next(cutting)
    try:
        for step in [*steps, None]:
            if step is None:
                before = queries[query].look
                while True:
                    query = cutting.send(queries[query].look)
                    if queries[query].look == before and not before.complete:
                        return None
                    before = queries[query].look
            if step == "look":
                query = cutting.send(queries[query].look)
            else:
                queries[step].step(queries)
    except StopIteration as end:
        found: dict[str, int] = end.value
        return found
    raise AssertionError("it goes on until it ends")


@given(st.data())
def test_no_reader_is_saved_with_more_than_its_writers(data: st.DataObject) -> None:
    queries = data.draw(jobs())
    moves = st.sampled_from([*queries, "look", "look"])
    for step in data.draw(st.lists(st.sampled_from(sorted(queries)), max_size=30)):
        queries[step].step(queries)
    batches = taken(cut(queries, graph(queries)), queries, data.draw(st.lists(moves, max_size=60)))
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
    batches = taken(cut(queries, graph(queries)), queries, [])
    assert batches == {name: each.committed for name, each in queries.items() if each.committed is not None}


def run(cutting: Cutting, *looks: tuple[str, Look]) -> dict[str, int]:
    query = next(cutting)
    for name, look in looks:
        assert query == name
        try:
            query = cutting.send(look)
        except StopIteration as end:
            found: dict[str, int] = end.value
            return found
    raise AssertionError(f"it wants to look at {query}")


CHAIN = [GraphQuery("first", [], ["a"], 0), GraphQuery("then", ["a"], ["b"], 0), GraphQuery("last", ["b"], [], 0)]


def test_readers_come_first_and_writers_are_waited_for() -> None:
    batches = run(
        cut(["first", "last", "then"], CHAIN),
        ("last", Look(3, 4)),  # nobody reads what it writes, so nothing is waited for
        ("then", Look(6, 7)),
        ("then", Look(6, 7)),
        ("then", Look(7, 8)),  # what it has begun since does not count
        ("first", Look(9, 9)),
    )
    assert batches == {"last": 3, "then": 7, "first": 9}


@pytest.mark.parametrize(
    ("cutting", "looks", "batches"),
    [
        pytest.param(
            cut(["first", "then", "last"], CHAIN),
            [("last", Look()), ("then", Look(None, 0)), ("then", Look(0, 0)), ("first", Look())],
            {"then": 0},
            id="a first batch that has begun is waited for",
        ),
        pytest.param(cut(["b", "a"]), [("a", Look(1, 2)), ("b", Look(None, 0))], {"a": 1}, id="none is declared"),
        pytest.param(
            cut(["a"], [GraphQuery("a", ["x"], ["x"], 0)]), [("a", Look(1, 2))], {"a": 1}, id="it reads what it writes"
        ),
        pytest.param(
            settled(["b", "a", "c"]),
            [("a", Look(1, 2)), ("b", Look(4, 4)), ("c", Look(None, 0))],
            {"a": 1, "b": 4},
            id="those that have ended are taken as they are",
        ),
    ],
)
def test_a_cut_has_these_batches(cutting: Cutting, looks: list[tuple[str, Look]], batches: dict[str, int]) -> None:
    assert run(cutting, *looks) == batches


def test_queries_that_read_each_others_output_have_no_cut_while_they_run() -> None:
    circle = [GraphQuery("a", ["x"], ["y"], 0), GraphQuery("b", ["y"], ["x"], 0)]
    with pytest.raises(Invalid, match=r"a -> b.*stop the job with a savepoint"):
        next(cut(["a", "b"], circle))


@pytest.mark.parametrize(
    ("look", "complete"),
    [
        (Look(), True), (Look(0), True), (Look(None, 0), False), (Look(0, 0), True), (Look(0, 1), False),
        (Look(2, 1), True),
    ],
)  # fmt: skip
def test_complete_is_what_has_committed_all_that_it_has_begun(look: Look, *, complete: bool) -> None:
    assert look.complete is complete
