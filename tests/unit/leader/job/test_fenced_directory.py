"""FencedDirectory: an acknowledged entry is there, once, and stays, whichever answers are lost."""

import random
from pathlib import Path

import pytest

from leader.errors import Fenced
from leader.job.fenced_directory import MAX_BYTES
from leader.layout.lease import Lease, Mode
from store.errors import AlreadyExists, Invalid, NotFound, StoreError
from tests.unit.leader.faulty import DROPPED, LATE, LOST, OK, REFUSED, Place
from tests.unit.leader.owned import HOME, SECOND, Owned


def test_an_entry_is_renamed_to_a_name_that_was_never_there(hurt: Owned) -> None:
    hurt.direct.make_directory(f"{HOME}/a")
    assert hurt.own.commit("a", "b") == "b"
    assert hurt.own.commit("b", "c", 7) == "c~7"
    assert "c~7" in hurt.names()


def test_a_rename_that_a_namenode_forgets_is_repeated(hurt: Owned, place: Place) -> None:
    hurt.direct.make_directory(f"{HOME}/a")
    place.faulty.fates.append(LOST)

    def second() -> None:
        place.faulty.before_change = third

    def third() -> None:
        place.direct.rename(f"{HOME}/b", f"{HOME}/a")

    place.faulty.before_change = lambda: setattr(place.faulty, "before_change", second)
    assert hurt.own.commit("a", "b") == "b"
    assert {"a", "b", "b~2"} & set(hurt.names()) == {"b"}


def test_an_unacknowledged_rename_does_not_count(hurt: Owned, place: Place) -> None:
    hurt.direct.make_directory(f"{HOME}/a")
    place.faulty.fates.append(LOST)
    assert hurt.own.commit("a", "b") == "b~2", "the rename of b was acknowledged, that of a never"


def test_a_taken_name_and_a_missing_entry_raise(hurt: Owned) -> None:
    for name in ("a", "b"):
        hurt.direct.make_directory(f"{HOME}/{name}")
    with pytest.raises(AlreadyExists):
        hurt.own.commit("a", "b")
    with pytest.raises(NotFound):
        hurt.own.commit("x", "y")


def test_the_error_names_the_leader_that_fenced_it(owned: Owned) -> None:
    assert owned.own.fenced_by() is None
    later = owned.claim()
    lease = Lease(2, Mode.HDFS, 6000, SECOND.session_id, "", "second")
    owned.direct.make_directory(f"orders/{SECOND.name}/record/{lease.name}")
    assert later.fenced_by() is None
    says = f"was fenced: second has taken over, and the job is at epoch 2, session {SECOND.session_id}, now."
    assert says in str(owned.own.fenced_by())


def test_a_directory_that_spark_has_revived_is_fenced(owned: Owned) -> None:
    owned.claim()
    for path in (HOME, f"{HOME}/spark"):
        owned.direct.make_directory(path)
    with pytest.raises(Fenced):
        owned.own.check()
    with pytest.raises(Fenced):
        owned.own.rename("status=CREATED", "status=RUNNING~2")


@pytest.mark.parametrize("seed", range(300))
def test_there_is_one_entry_and_acknowledged_ones_stay_under_any_faults(hurt: Owned, place: Place, seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311
    hurt.direct.make_directory(f"{HOME}/a")
    place.faulty.fates.extend(choose.choices([OK, LOST, LATE, DROPPED, REFUSED], [3, 4, 3, 2, 1], k=12))

    def sometimes() -> None:
        if choose.random() < 0.5:
            place.faulty.catch_up()
        place.faulty.before_change = sometimes

    place.faulty.before_change = sometimes
    try:
        settled = hurt.own.commit("a", "b")
    except StoreError:
        settled = ""
    place.faulty.catch_up()
    found = [name for name in hurt.names() if name == "a" or name.startswith("b")]
    assert len(found) == 1
    assert not settled or found == [settled]


def test_a_missing_folder_is_empty_and_a_missing_directory_is_fenced(owned: Owned) -> None:
    assert owned.own.list("no-such") == []
    owned.own.delete("no-such")
    with pytest.raises(NotFound):
        owned.own.read("no-such")
    owned.claim()
    for call in (
        lambda: owned.own.list("no-such"),
        lambda: owned.own.delete("no-such"),
        lambda: owned.own.read("no-such"),
        lambda: owned.own.make_folder("no-such"),
        lambda: owned.own.rename("checkpoints", "x"),
        lambda: owned.own.commit("checkpoints", "x"),
        lambda: owned.own.put(b"x", "blobs/x=1"),
        owned.own.check,
    ):
        with pytest.raises(Fenced):
            call()
    assert "staged" not in owned.names(directory=SECOND)


def test_what_a_dead_leader_was_writing_goes_with_its_folder(hurt: Owned, tmp_path: Path) -> None:
    """A store writes beside the file, under a name that it shows nobody."""
    hurt.own.put(b"1", "blobs/x=1")
    hurt.direct.write(f"{HOME}/{hurt.own.staging()}", b"half")
    (file,) = tmp_path.rglob("staged/1/*")
    file.rename(file.with_name(".staging-" + file.name))
    assert hurt.staged() == [], "it is in no list"
    hurt.claim().put(b"2", "blobs/x=2")
    assert not [*tmp_path.rglob(".staging-*")]


def test_a_file_is_placed_whole_or_not_at_all(owned: Owned) -> None:
    owned.own.put(b"1", "blobs/x=1")
    with pytest.raises(AlreadyExists):
        owned.own.put(b"2", "blobs/x=1")
    with pytest.raises(Invalid):
        owned.own.put(b"x" * (MAX_BYTES + 1), "blobs/x=2")
    assert (owned.names("blobs"), owned.own.read("blobs/x=1"), owned.staged()) == (["x=1"], b"1", [])
