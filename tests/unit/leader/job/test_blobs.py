"""Blobs: small files by name, for every later leader of the job."""

import pytest

from leader.errors import Fenced, InvalidName
from leader.job.fenced_directory import MAX_BYTES
from leader.job.versioned_files import MAX_VERSION, VersionedBlob, VersionedFiles
from leader.layout.names import BLOBS
from store.errors import Conflict, Invalid
from tests.unit.leader.owned import HOME, SECOND, Owned


def shelf(owned: Owned) -> VersionedFiles:
    return VersionedFiles(owned.own, BLOBS, "a blob")


def test_a_blob_is_found_under_its_own_name_only(owned: Owned) -> None:
    blobs = shelf(owned)
    assert blobs.versions() == {}
    blobs.put("model.pkl", b"\x00\xff")
    blobs.put("schema", b"")
    assert blobs.load("model.pkl") == VersionedBlob(1, b"\x00\xff")
    assert blobs.load("schema") == VersionedBlob(1, b"")
    assert blobs.load("model") is None
    assert blobs.versions() == {"model.pkl": 1, "schema": 1}
    assert owned.names("blobs") == ["model.pkl=1", "schema=1"]


def test_a_blob_is_replaced_whatever_is_there_unless_a_version_is_expected(owned: Owned) -> None:
    blobs = shelf(owned)
    assert [blobs.put("model", data) for data in (b"1", b"2", b"3")] == [1, 2, 3]
    with pytest.raises(Conflict):
        blobs.put("model", b"x", expected=2)
    assert blobs.put("model", b"4", expected=3) == 4
    assert blobs.load("model") == VersionedBlob(4, b"4")


def test_removing_one_blob_leaves_the_others(owned: Owned) -> None:
    blobs = shelf(owned)
    blobs.remove("model")
    blobs.put("model", b"1")
    blobs.put("schema", b"2")
    for name in ("model", "model", "no-such"):
        blobs.remove(name)
    assert (blobs.load("model"), blobs.versions()) == (None, {"schema": 1})
    blobs.remove("schema")
    assert blobs.versions() == {}


def test_the_next_leader_finds_them_from_any_host_and_the_last_one_is_fenced(owned: Owned) -> None:
    old = shelf(owned)
    old.put("model", b"1")
    new = VersionedFiles(owned.claim(), BLOBS, "a blob")
    assert new.load("model") == VersionedBlob(1, b"1")
    for call in (lambda: old.put("model", b"zombie"), lambda: old.load("model"), lambda: old.remove("model")):
        with pytest.raises(Fenced):
            call()
    assert owned.names("blobs", SECOND) == ["model=1"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a=b", "a~2", ".staging", "x" * 65, "ä", "-x"])
def test_an_invalid_name_is_refused(hurt: Owned, name: str) -> None:
    blobs = shelf(hurt)
    for call in (lambda: blobs.put(name, b"1"), lambda: blobs.load(name), lambda: blobs.remove(name)):
        with pytest.raises(InvalidName, match="is not a name of a blob"):
            call()
    assert "blobs" not in hurt.names()


def test_one_that_is_too_long_is_refused(hurt: Owned) -> None:
    with pytest.raises(Invalid, match="write it below leadership"):
        shelf(hurt).put("model", b"x" * (MAX_BYTES + 1))
    assert shelf(hurt).versions() == {}


def test_the_greatest_version_cannot_be_replaced(hurt: Owned) -> None:
    hurt.direct.make_directory(f"{HOME}/blobs")
    hurt.direct.write(f"{HOME}/blobs/model={MAX_VERSION}", b"1")
    with pytest.raises(InvalidName, match="rename it by hand"):
        shelf(hurt).put("model", b"2")
