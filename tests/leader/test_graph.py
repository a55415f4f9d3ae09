"""The job's graph: versions that only grow, of which one is replaced by one."""

import pytest

from leader.errors import Fenced
from leader.graph import Graph
from leader.names import MAX_SEQUENCE
from leader.own import ATTEMPTS, MAX_BYTES
from leader.shelf import Kept
from store.errors import Conflict, Invalid, NotWritable, StoreError, Unknown
from tests.leader.faulty import DROPPED, LATE, LOST, OK, REFUSED, Place, in_threads
from tests.leader.owned import HOME, SECOND, Owned


@pytest.fixture
def graph(hurt: Owned) -> Graph:
    return Graph(hurt.own)


# --- on each store


def test_at_first_there_is_none(owned: Owned) -> None:
    assert Graph(owned.own).load() is None
    assert "graph" not in owned.names()


def test_what_was_put_is_found_and_each_version_takes_the_place_of_the_last(owned: Owned) -> None:
    graph = Graph(owned.own)
    assert graph.put(b"one") == 1
    assert graph.load() == Kept(1, b"one")
    assert graph.put(b"two", expected=1) == 2
    assert graph.put(b"", expected=2) == 3
    assert graph.load() == Kept(3, b"")
    assert owned.names("graph") == ["graph=3"]
    assert owned.names("staged") == []


@pytest.mark.parametrize("expected", [0, 1, 3, 17])
def test_only_the_version_that_is_expected_is_replaced(owned: Owned, expected: int) -> None:
    graph = Graph(owned.own)
    graph.put(b"one")
    graph.put(b"two", 1)
    with pytest.raises(Conflict, match=f"is not version {expected}: it is version 2"):
        graph.put(b"three", expected)
    assert graph.load() == Kept(2, b"two")


def test_a_version_of_none_is_refused(owned: Owned) -> None:
    with pytest.raises(Conflict, match="is not version 4: there is none"):
        Graph(owned.own).put(b"five", expected=4)


def test_removed_put_again_and_removed_twice(owned: Owned) -> None:
    graph = Graph(owned.own)
    graph.remove()
    graph.put(b"one")
    graph.remove()
    graph.remove()
    assert graph.load() is None
    version = graph.put(b"again")
    assert version > 1, "a version is never used twice"
    assert graph.load() == Kept(version, b"again")
    assert owned.names("graph") == [f"graph={version}"]


def test_the_next_leader_finds_it_and_the_last_one_is_fenced(owned: Owned) -> None:
    old = Graph(owned.own)
    old.put(b"one")
    new = Graph(owned.claim())
    assert new.load() == Kept(1, b"one")
    for call in (old.load, old.remove, lambda: old.put(b"zombie", 1), lambda: old.put(b"zombie")):
        with pytest.raises(Fenced):
            call()
    assert new.put(b"two", 1) == 2
    assert owned.names("graph", SECOND) == ["graph=2"]


def test_one_that_is_too_long_is_refused_and_the_longest_is_not(owned: Owned) -> None:
    graph = Graph(owned.own)
    with pytest.raises(Invalid, match=r"It has 1,048,577 bytes, and 1,048,576 are allowed"):
        graph.put(b"x" * (MAX_BYTES + 1))
    assert graph.load() is None
    assert graph.put(b"x" * MAX_BYTES) == 1


# --- faults


def test_of_several_who_replace_a_version_one_does(hurt: Owned) -> None:
    Graph(hurt.own).put(b"first")
    hands = [Graph(hurt.own) for _ in range(4)]
    ended = in_threads(4, lambda number: hands[number].put(bytes([number]), 1))
    assert [each for each in ended if not isinstance(each, Conflict)] == [2]
    assert Graph(hurt.own).load() == Kept(2, bytes([ended.index(2)]))


def test_threads_of_one_hand_never_lose_an_update(graph: Graph) -> None:
    graph.put(b"0")

    def count_up(_: int) -> int:
        while True:
            found = graph.load()
            assert found is not None
            try:
                return graph.put(b"%d" % (int(found.data) + 1), found.version)
            except Conflict:
                continue

    assert sorted(in_threads(6, count_up)) == [2, 3, 4, 5, 6, 7]
    assert graph.load() == Kept(7, b"6")


@pytest.mark.parametrize("fates", [[LOST], [DROPPED], [DROPPED, LOST], [LATE]])
def test_a_put_whose_answer_was_lost_is_settled_and_not_made_twice(
    hurt: Owned, place: Place, graph: Graph, fates: list[str]
) -> None:
    graph.put(b"one")
    place.faulty.fates.extend([OK, OK, *fates])  # two folders are made before
    assert graph.put(b"two", 1) == 2
    place.faulty.catch_up()
    assert graph.load() == Kept(2, b"two")
    assert len(hurt.names("graph")) == 1


def test_after_a_put_that_stayed_unknown_the_graph_is_read_and_said_once_more(
    hurt: Owned, place: Place, graph: Graph
) -> None:
    place.faulty.fates.extend([OK, OK, *[LATE] * ATTEMPTS])
    with pytest.raises(Unknown):
        graph.put(b"one")
    place.faulty.catch_up()
    with pytest.raises(Conflict, match="it is version 1"):
        graph.put(b"one")
    assert graph.load() == Kept(1, b"one")
    assert graph.put(b"one", 1) == 2
    assert hurt.names("graph") == ["graph=2"]


def test_what_is_executed_late_never_undoes_what_came_after(place: Place, graph: Graph) -> None:
    graph.put(b"one")
    place.faulty.fates.extend([OK, OK, *[LATE] * ATTEMPTS])
    with pytest.raises(Unknown):
        graph.put(b"late", 1)
    graph.remove()
    place.faulty.catch_up()
    assert graph.load() is None, "the removal has taken the late one's name"
    version = graph.put(b"two")
    place.faulty.fates.extend([OK, OK, OK, *[LATE] * ATTEMPTS])  # and an empty directory
    with pytest.raises(Unknown):
        graph.remove()
    graph.put(b"three", version)
    place.faulty.catch_up()
    assert graph.load() == Kept(version + 1, b"three")


def test_a_refused_put_leaves_what_was_there(hurt: Owned, place: Place, graph: Graph) -> None:
    graph.put(b"one")
    place.faulty.fates.extend([OK, OK, REFUSED])
    with pytest.raises(NotWritable):
        graph.put(b"two", 1)
    assert graph.load() == Kept(1, b"one")
    assert hurt.names("staged") == [], "and nothing else"


def test_a_refused_removal_leaves_what_was_there(hurt: Owned, place: Place, graph: Graph) -> None:
    graph.put(b"one")
    place.faulty.fates.extend([OK, OK, OK, REFUSED])
    with pytest.raises(NotWritable):
        graph.remove()
    assert graph.load() == Kept(1, b"one")
    assert hurt.names("staged") == []


def test_the_new_one_counts_if_the_old_one_cannot_be_deleted(hurt: Owned, graph: Graph) -> None:
    graph.put(b"old")
    hurt.direct.rename(f"{HOME}/graph/graph=1", f"{HOME}/graph/graph=9")
    graph.put(b"ten", 9)
    hurt.direct.write(f"{HOME}/graph/graph=9", b"back again")
    assert graph.load() == Kept(10, b"ten")
    graph.put(b"eleven", 10)
    assert hurt.names("graph") == ["graph=11"]


def test_one_that_cannot_be_read_is_an_error_and_nothing_older(hurt: Owned, graph: Graph) -> None:
    hurt.direct.make_directory(f"{HOME}/graph")
    hurt.direct.write(f"{HOME}/graph/graph=1", b"old")
    hurt.direct.write(f"{HOME}/graph/graph=2", b"x" * (MAX_BYTES + 1))
    with pytest.raises(StoreError):
        graph.load()


def test_strangers_are_left_alone(hurt: Owned, graph: Graph) -> None:
    hurt.direct.make_directory(f"{HOME}/graph")
    strangers = ["graph", "graph=0", "graph=01", "graph=3~1", "graph=x", f"graph=2~{MAX_SEQUENCE}0"]
    for name in strangers:
        hurt.direct.write(f"{HOME}/graph/{name}", b"?")
    assert graph.load() is None
    graph.put(b"one")
    assert hurt.names("graph") == sorted([*strangers, "graph=1"])


def test_what_an_earlier_leader_left_half_done_is_swept(hurt: Owned, place: Place) -> None:
    place.faulty.fates.extend([OK, OK, *[DROPPED] * ATTEMPTS])
    with pytest.raises(Unknown):
        Graph(hurt.own).put(b"one")
    assert len(hurt.names("staged")) == 1
    Graph(hurt.claim()).put(b"two")
    assert hurt.names("staged", SECOND) == []
