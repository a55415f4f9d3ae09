"""Results: stored once, as dirty, and marked clean after the cleanup."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leader.errors import Fenced, InvalidName
from leader.job.fenced_directory import ATTEMPTS, MAX_BYTES
from leader.job.results import Result, Results, decode, encode
from leader.job.status import Status
from store.errors import AlreadyExists, Invalid, NotFound, StoreError, Unknown
from tests.unit.leader.faulty import DROPPED, LATE, LOST, OK, Place, in_threads
from tests.unit.leader.owned import HOME, SECOND, Owned

ENDS = [Status.FINISHED, Status.CANCELED, Status.FAILED]


@pytest.fixture
def results(hurt: Owned) -> Results:
    return Results(hurt.own)


def test_a_new_job_has_no_results(owned: Owned) -> None:
    results = Results(owned.own)
    assert (results.dirty(), results.load("run-1")) == ([], None)


def test_a_result_is_stored_dirty_and_marked_clean(owned: Owned) -> None:
    results = Results(owned.own)
    results.put("run-1", Status.FINISHED, b"17 batches")
    assert results.dirty() == ["run-1"]
    assert results.load("run-1") == Result(Status.FINISHED, b"17 batches", dirty=True)
    assert owned.names("results") == ["run-1=dirty"]
    results.clean("run-1")
    assert results.dirty() == []
    assert results.load("run-1") == Result(Status.FINISHED, b"17 batches", dirty=False)
    assert owned.names("results") == ["run-1=clean"]


def test_only_dirty_results_are_listed(owned: Owned) -> None:
    results = Results(owned.own)
    for name in ("c", "b", "a"):
        results.put(name, Status.FAILED)
    results.clean("b")
    assert results.dirty() == ["a", "c"]


def test_a_name_has_one_result_dirty_or_clean(owned: Owned) -> None:
    results = Results(owned.own)
    results.put("run-1", Status.FINISHED)
    for _ in range(2):
        with pytest.raises(AlreadyExists, match="Job 'orders' has a result of 'run-1' already"):
            results.put("run-1", Status.FAILED)
        results.clean("run-1")
    assert results.load("run-1") == Result(Status.FINISHED, dirty=False)


def test_marking_is_idempotent_and_a_missing_result_cannot_be_marked(owned: Owned) -> None:
    results = Results(owned.own)
    with pytest.raises(NotFound, match="has no result of 'run-1'"):
        results.clean("run-1")
    results.put("run-1", Status.CANCELED)
    for _ in range(3):
        results.clean("run-1")
    assert results.dirty() == []
    assert len(owned.names("results")) == 1


def test_the_next_leader_finds_dirty_results_and_the_last_one_is_fenced(owned: Owned) -> None:
    old = Results(owned.own)
    old.put("run-1", Status.FINISHED)
    new = Results(owned.claim())
    assert new.dirty() == ["run-1"]
    for call in (old.dirty, lambda: old.clean("run-1"), lambda: old.load("run-1"), lambda: old.put("x", Status.FAILED)):
        with pytest.raises(Fenced):
            call()
    new.clean("run-1")
    assert owned.names("results", SECOND) == ["run-1=clean"]


@pytest.mark.parametrize("status", [each for each in Status if each not in ENDS])
def test_only_a_state_that_ends_a_job_for_good_is_a_result(results: Results, status: Status) -> None:
    with pytest.raises(Invalid, match="is not a result"):
        results.put("run-1", status)
    assert results.load("run-1") is None


@pytest.mark.parametrize("name", ["", ".", "a/b", "a=b", "a~b", ".staging", "x" * 65, "ä"])
def test_an_invalid_name_is_refused(results: Results, name: str) -> None:
    with pytest.raises(InvalidName):
        results.put(name, Status.FINISHED)
    with pytest.raises(InvalidName):
        results.load(name)
    with pytest.raises(InvalidName):
        results.clean(name)


def test_a_result_that_is_too_long_is_refused(results: Results) -> None:
    with pytest.raises(Invalid, match="are allowed"):
        results.put("run-1", Status.FINISHED, b"x" * MAX_BYTES)
    assert results.dirty() == []


@given(st.sampled_from(ENDS), st.binary(max_size=200), st.booleans())
def test_a_result_is_read_back(status: Status, data: bytes, dirty: bool) -> None:
    result = Result(status, data, dirty)
    assert decode(encode(result), dirty=dirty) == result


def test_the_formats_version_is_written_and_read() -> None:
    wire = json.loads(encode(Result(Status.FINISHED)))
    assert wire["format"] == 1
    for change in ({"format": 2}, {"status": "DANCING"}, {"status": "RUNNING"}, {"data": "not base64!"}):
        with pytest.raises(Invalid, match="The result cannot be read"):
            decode(json.dumps({**wire, **change}).encode(), dirty=True)


@given(st.binary(max_size=300))
def test_hostile_bytes_are_a_result_or_an_error_of_ours(data: bytes) -> None:
    with suppress(Invalid):
        assert decode(data, dirty=True).status.globally_terminal


def test_foreign_files_are_no_results_and_clean_counts_before_dirty(hurt: Owned, results: Results) -> None:
    hurt.direct.make_directory(f"{HOME}/results")
    for name in ("run-1", "run-1=", "run-1=tidy", "run-2=dirty~1", ".x=dirty", "run-3=dirty", "run-3=clean"):
        hurt.direct.write(f"{HOME}/results/{name}", encode(Result(Status.FINISHED)))
    assert results.dirty() == []
    assert results.load("run-3") == Result(Status.FINISHED, dirty=False)


def test_an_unreadable_result_is_an_error_and_still_dirty(hurt: Owned, results: Results) -> None:
    results.put("run-1", Status.FINISHED)
    hurt.direct.write(f"{HOME}/results/run-1=dirty", b'{"format":1,"sta')
    with pytest.raises(Invalid, match="The result cannot be read"):
        results.load("run-1")
    assert results.dirty() == ["run-1"]


def test_of_concurrent_puts_of_one_result_one_succeeds(hurt: Owned) -> None:
    hands = [Results(hurt.own) for _ in range(4)]
    ended = in_threads(4, lambda number: hands[number].put("run-1", Status.FINISHED, bytes([number])))
    assert sorted(type(each).__name__ for each in ended) == ["AlreadyExists"] * 3 + ["NoneType"]
    found = Results(hurt.own).load("run-1")
    assert found == Result(Status.FINISHED, bytes([ended.index(None)]))


@pytest.mark.parametrize("fates", [[LOST], [DROPPED], [DROPPED, LOST], [LATE]])
def test_lost_answers_are_resolved(hurt: Owned, place: Place, results: Results, fates: list[str]) -> None:
    place.faulty.fates.extend([OK, OK, *fates])
    results.put("run-1", Status.FINISHED, b"x")
    place.faulty.catch_up()
    assert results.dirty() == ["run-1"]
    place.faulty.fates.extend(fates)
    results.clean("run-1")
    place.faulty.catch_up()
    assert results.load("run-1") == Result(Status.FINISHED, b"x", dirty=False)
    assert len(hurt.names("results")) == 1


def test_a_result_that_cannot_be_stored_or_marked_is_an_error(place: Place, results: Results) -> None:
    place.faulty.fates.extend([OK, OK, *[DROPPED] * ATTEMPTS])
    with pytest.raises(Unknown):
        results.put("run-1", Status.FINISHED)
    results.put("run-1", Status.FINISHED)
    place.faulty.fates.extend([DROPPED] * ATTEMPTS)
    with pytest.raises(Unknown):
        results.clean("run-1")
    assert results.dirty() == ["run-1"], "it stays dirty, and the next try marks it"
    place.faulty.unreachable = True
    with pytest.raises(StoreError):
        results.dirty()


def test_a_late_execution_makes_no_second_result(place: Place, results: Results) -> None:
    place.faulty.fates.extend([OK, OK, *[LATE] * ATTEMPTS])
    with pytest.raises(Unknown):
        results.put("run-1", Status.FAILED)
    results.put("run-1", Status.FINISHED)
    results.clean("run-1")
    place.faulty.catch_up()
    assert results.dirty() == []
    assert results.load("run-1") == Result(Status.FINISHED, dirty=False)
