"""The job's graph: a versioned file whose versions only grow."""

from collections.abc import Callable

import pytest

from leader.errors import Fenced
from leader.job.fenced_directory import ATTEMPTS, MAX_BYTES
from leader.job.versioned_files import VersionedBlob, VersionedFile, graph_of
from leader.layout.names import MAX_SEQUENCE
from store.errors import Conflict, Invalid, NotWritable, StoreError, Unknown
from tests.unit.leader.faulty import DROPPED, LATE, LOST, OK, REFUSED, Place, in_threads
from tests.unit.leader.owned import HOME, SECOND, Owned


@pytest.fixture
def graph(hurt: Owned) -> VersionedFile:
    return graph_of(hurt.own)


def test_a_new_job_has_no_graph(owned: Owned) -> None:
    assert graph_of(owned.own).load() is None
    assert "graph" not in owned.names()


def test_a_graph_is_found_and_each_version_replaces_the_last(owned: Owned) -> None:
    graph = graph_of(owned.own)
    assert graph.put(b"one") == 1
    assert graph.load() == VersionedBlob(1, b"one")
    assert graph.put(b"two", expected=1) == 2
    assert graph.put(b"", expected=2) == 3
    assert graph.load() == VersionedBlob(3, b"")
    assert owned.names("graph") == ["graph=3"]
    assert owned.staged() == []


@pytest.mark.parametrize("expected", [0, 1, 3, 17])
def test_only_the_expected_version_is_replaced(owned: Owned, expected: int) -> None:
    graph = graph_of(owned.own)
    graph.put(b"one")
    graph.put(b"two", 1)
    with pytest.raises(Conflict, match=f"is not version {expected}: it is version 2"):
        graph.put(b"three", expected)
    assert graph.load() == VersionedBlob(2, b"two")


def test_replacing_a_missing_graph_is_refused(owned: Owned) -> None:
    with pytest.raises(Conflict, match="is not version 4: there is none"):
        graph_of(owned.own).put(b"five", expected=4)


def test_removed_put_again_and_removed_twice(owned: Owned) -> None:
    graph = graph_of(owned.own)
    graph.remove()
    graph.put(b"one")
    graph.remove()
    graph.remove()
    assert graph.load() is None
    version = graph.put(b"again")
    assert version > 1, "a version is never used twice"
    assert graph.load() == VersionedBlob(version, b"again")
    assert owned.names("graph") == [f"graph={version}"]


def test_the_next_leader_finds_it_and_the_last_one_is_fenced(owned: Owned) -> None:
    old = graph_of(owned.own)
    old.put(b"one")
    new = graph_of(owned.claim())
    assert new.load() == VersionedBlob(1, b"one")
    for call in (old.load, old.remove, lambda: old.put(b"zombie", 1), lambda: old.put(b"zombie")):
        with pytest.raises(Fenced):
            call()
    assert new.put(b"two", 1) == 2
    assert owned.names("graph", SECOND) == ["graph=2"]


def test_a_graph_may_have_the_maximum_length_and_not_more(owned: Owned) -> None:
    graph = graph_of(owned.own)
    with pytest.raises(Invalid, match=r"The content has 1,048,577 bytes, and 1,048,576 are allowed"):
        graph.put(b"x" * (MAX_BYTES + 1))
    assert graph.load() is None
    assert graph.put(b"x" * MAX_BYTES) == 1


def test_of_concurrent_replacements_one_succeeds(hurt: Owned) -> None:
    graph_of(hurt.own).put(b"first")
    hands = [graph_of(hurt.own) for _ in range(4)]
    ended = in_threads(4, lambda number: hands[number].put(bytes([number]), 1))
    assert [each for each in ended if not isinstance(each, Conflict)] == [2]
    assert graph_of(hurt.own).load() == VersionedBlob(2, bytes([ended.index(2)]))


def test_threads_of_one_process_never_lose_an_update(graph: VersionedFile) -> None:
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
    assert graph.load() == VersionedBlob(7, b"6")


@pytest.mark.parametrize("fates", [[LOST], [DROPPED], [DROPPED, LOST], [LATE]])
def test_a_put_whose_answer_is_lost(hurt: Owned, place: Place, graph: VersionedFile, fates: list[str]) -> None:
    graph.put(b"one")
    place.faulty.fates.extend([OK, OK, *fates])  # two folders are made before
    assert graph.put(b"two", 1) == 2
    place.faulty.catch_up()
    assert graph.load() == VersionedBlob(2, b"two")
    assert len(hurt.names("graph")) == 1


def test_after_an_unknown_put_the_graph_can_be_put_again(hurt: Owned, place: Place, graph: VersionedFile) -> None:
    place.faulty.fates.extend([OK, OK, *[LATE] * ATTEMPTS])
    with pytest.raises(Unknown):
        graph.put(b"one")
    place.faulty.catch_up()
    with pytest.raises(Conflict, match="it is version 1"):
        graph.put(b"one")
    assert graph.load() == VersionedBlob(1, b"one")
    assert graph.put(b"one", 1) == 2
    assert hurt.names("graph") == ["graph=2"]


def test_a_late_execution_never_undoes_a_later_change(place: Place, graph: VersionedFile) -> None:
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
    assert graph.load() == VersionedBlob(version + 1, b"three")


@pytest.mark.parametrize(
    ("before", "change"),
    [(2, lambda graph: graph.put(b"two", 1)), (3, lambda graph: graph.remove())],
    ids=["put", "remove"],
)
def test_a_refused_change_leaves_the_graph_unchanged(
    hurt: Owned, place: Place, graph: VersionedFile, before: int, change: Callable[[VersionedFile], object]
) -> None:
    graph.put(b"one")
    place.faulty.fates.extend([*[OK] * before, REFUSED])
    with pytest.raises(NotWritable):
        change(graph)
    assert graph.load() == VersionedBlob(1, b"one")
    assert hurt.staged() == [], "and nothing else"


def test_the_new_version_counts_if_the_old_one_cannot_be_deleted(hurt: Owned, graph: VersionedFile) -> None:
    graph.put(b"old")
    hurt.direct.rename(f"{HOME}/graph/graph=1", f"{HOME}/graph/graph=9")
    graph.put(b"ten", 9)
    hurt.direct.write(f"{HOME}/graph/graph=9", b"back again")
    assert graph.load() == VersionedBlob(10, b"ten")
    graph.put(b"eleven", 10)
    assert hurt.names("graph") == ["graph=11"]


def test_an_unreadable_graph_is_an_error_and_no_older_one_is_returned(hurt: Owned, graph: VersionedFile) -> None:
    hurt.direct.make_directory(f"{HOME}/graph")
    hurt.direct.write(f"{HOME}/graph/graph=1", b"old")
    hurt.direct.write(f"{HOME}/graph/graph=2", b"x" * (MAX_BYTES + 1))
    with pytest.raises(StoreError):
        graph.load()


def test_foreign_files_are_left_alone(hurt: Owned, graph: VersionedFile) -> None:
    hurt.direct.make_directory(f"{HOME}/graph")
    strangers = ["graph", "graph=0", "graph=01", "graph=3~1", "graph=x", f"graph=2~{MAX_SEQUENCE}0"]
    for name in strangers:
        hurt.direct.write(f"{HOME}/graph/{name}", b"?")
    assert graph.load() is None
    graph.put(b"one")
    assert hurt.names("graph") == sorted([*strangers, "graph=1"])


def test_incomplete_files_of_an_earlier_leader_are_swept_away(hurt: Owned, place: Place) -> None:
    place.faulty.fates.extend([OK, OK, *[DROPPED] * ATTEMPTS])
    with pytest.raises(Unknown):
        graph_of(hurt.own).put(b"one")
    assert len(hurt.staged()) == 1
    graph_of(hurt.claim()).put(b"two")
    assert hurt.staged(SECOND) == []
