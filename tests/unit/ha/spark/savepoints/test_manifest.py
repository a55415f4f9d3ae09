"""Manifests, and names of places: what was written is read, and what is another's is not taken for one's own."""

import re

import msgspec
import pytest

from ha.spark.savepoints.places import Manifest, SavedQuery, decoded, encoded
from ha.spark.savepoints.restoring import place_of, restored, stage
from store.errors import Invalid
from tests.unit.ha.spark.savepoints.test_taking import Job, quick

__all__ = ["quick"]

QUERIES = [
    SavedQuery("clean", "a1", 3, True, 9, 1000, "RocksDB, format 2", {0: "dedupe"}, ["hdfs://ns/in"]),
    SavedQuery("cleaner", "", 0, False, 1, 234),
]
MANIFEST = Manifest("orders", 7, "r1", "2026-11-27T09:00:00.000+00:00", "me", False, "4.1", QUERIES, ["sums"])


def test_what_was_written_is_read_and_said() -> None:
    assert decoded(encoded(MANIFEST), "it") == MANIFEST
    assert (MANIFEST.files, MANIFEST.bytes) == (10, 1234)
    assert MANIFEST.said == (
        "clean after batch 3, cleaner after batch 0: 10 files, 1,234 bytes; without sums: no batch was complete, or no "
        "tool knows the name"
    )
    assert msgspec.structs.replace(MANIFEST, left_out=[]).said.endswith("10 files, 1,234 bytes")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (encoded(msgspec.structs.replace(MANIFEST, format=2)), "it has format 2: this version of the package reads "),
        (encoded(MANIFEST)[:-9], "it is no savepoint: its savepoint.json says something else"),
        (b"\xff", "it is no savepoint"),
        (b"{}", "it is no savepoint"),
    ],
)
def test_anything_else_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(Invalid, match=re.escape(why)):
        decoded(data, "it")


def test_places_are_told_apart_by_all_of_their_names() -> None:
    names = ["hdfs://ns/a", "hdfs://ns/a/b", "hdfs://ns/ab", "hdfs://nt/a", "a", "ab"]
    assert len({place_of(each) for each in names}) == len(names)
    assert all(place_of(f"{each}/") == place_of(each) for each in names)
    assert all(re.fullmatch("[0-9a-f]{16}", place_of(each)) for each in names)


def test_a_copy_of_another_savepoint_that_was_given_up_goes(quick: Job) -> None:
    said: list[str] = []
    for name in ("a", "ab"):
        quick.take(quick.outside(name))
        stage(quick.stores, quick.leadership.own, quick.outside(name), bool, said.append)
        assert quick.names("restoring") == {place_of(quick.outside(name))}
    assert re.fullmatch(r"It has copied (\d+) of \1 files of the savepoint\.", said[-1])
    assert quick.put_back(quick.outside("ab")) is not None
    assert quick.complete() is None
    assert [restored(quick.leadership.own, quick.outside(each)) for each in ("a", "ab", "ab/")] == [False, True, True]
    quick.stage(quick.outside("a"))
    assert restored(quick.leadership.own, quick.outside("ab")), "what it was started from is remembered"
