"""Programs: versions that never change, and files that are what they were."""

import pytest
from msgspec import structs

from leader.errors import Fenced, Unreadable
from leader.job import programs as module
from leader.job.programs import KEPT, Program, ProgramFile, Programs, digest
from store.errors import Conflict, Invalid, StoreError
from tests.unit.leader.faulty import LOST, Place
from tests.unit.leader.owned import FIRST, Owned


def file(name: str, text: str, *, executable: bool = False) -> tuple[ProgramFile, dict[str, bytes]]:
    data = text.encode()
    return ProgramFile(name, digest(data), len(data), executable), {digest(data): data}


ONE, ONES = file("one.py", "1")
TWO, TWOS = file("two.sh", "2", executable=True)
RUNS = Program(["python", "one.py"], {"A": "b"}, [ONE], by="ada", at=7)


def test_versions_are_numbered_and_read_back(owned: Owned) -> None:
    programs = Programs(owned.own)
    assert (programs.newest(), programs.numbers(), programs.load(1)) == (None, [], None)
    first = programs.add(RUNS, ONES)
    assert first == structs.replace(RUNS, version=1)
    second = programs.add(structs.replace(RUNS, files=[ONE, TWO]), ONES | TWOS)
    assert (programs.newest(), programs.numbers(), programs.load(1)) == (second, [1, 2], first)
    assert [programs.read(second, each) for each in second.files] == [b"1", b"2"]


def test_the_next_leader_finds_them_and_the_fenced_directory_takes_no_more(owned: Owned) -> None:
    before = Programs(owned.own)
    stored = before.add(RUNS, ONES)
    after = Programs(owned.claim())
    assert after.newest() == stored
    assert after.read(stored, ONE) == b"1"
    with pytest.raises(Fenced):
        before.add(structs.replace(RUNS, command=["x"]), {})


def test_the_same_program_is_no_new_version_whoever_stores_it(hurt: Owned) -> None:
    programs = Programs(hurt.own)
    first = programs.add(RUNS, ONES)
    assert programs.add(structs.replace(RUNS, by="zoe", at=8, same_as=1), ONES) == first
    assert programs.newest(first) is first
    other = programs.add(structs.replace(RUNS, environment={}), {})
    assert other.version == 2
    assert programs.newest(first) == other
    assert programs.add(RUNS, {}).version == 3, "it is the same as the one before the newest"


@pytest.mark.parametrize("damage", [b"3", b""])
def test_a_damaged_file_is_not_read_and_storing_it_again_mends_it(hurt: Owned, damage: bytes) -> None:
    programs = Programs(hurt.own)
    stored = programs.add(RUNS, ONES)
    (name,) = hurt.names("files")
    hurt.direct.write(f"orders/{FIRST.name}/files/{name}", damage)
    with pytest.raises(Unreadable, match=r"File one.py of version 1 of the program of job 'orders' is damaged"):
        programs.read(stored, ONE)
    assert programs.add(RUNS, ONES) == stored
    assert programs.read(stored, ONE) == b"1"


def test_a_missing_file_is_not_read(hurt: Owned) -> None:
    programs = Programs(hurt.own)
    stored = programs.add(RUNS, {})
    with pytest.raises(Unreadable, match="is missing"):
        programs.read(stored, ONE)


@pytest.mark.parametrize("damage", [b"{}", b'{"command":["\xff"]}', b'{"x":' + b"[" * 100_000])
def test_a_version_that_cannot_be_read_is_an_error(hurt: Owned, damage: bytes) -> None:
    programs = Programs(hurt.own)
    programs.add(RUNS, ONES)
    (name,) = hurt.names("programs")
    hurt.direct.write(f"orders/{FIRST.name}/programs/{name}", damage)
    with pytest.raises(Unreadable, match="Version 1 of the program of job 'orders' cannot be read"):
        programs.newest()


def test_two_operators_take_two_numbers(hurt: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, theirs = Programs(hurt.own), Programs(hurt.own)
    monkeypatch.setattr(mine, "numbers", list)
    theirs.add(RUNS, ONES)
    assert mine.add(structs.replace(RUNS, command=["x"]), {}).version == 2
    assert theirs.numbers() == [1, 2]


def test_it_gives_up_after_some_numbers(hurt: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(hurt.own)
    for number in range(module.ATTEMPTS):
        programs.add(structs.replace(RUNS, command=[f"{number}"]), {})
    monkeypatch.setattr(programs, "numbers", list)
    with pytest.raises(Conflict, match="submit it again"):
        programs.add(RUNS, ONES)


def test_old_versions_go_and_so_do_the_files_that_only_they_name(hurt: Owned) -> None:
    programs = Programs(hurt.own)
    programs.add(structs.replace(RUNS, files=[ONE, TWO]), ONES | TWOS)
    for number in range(KEPT):
        assert {each.partition("=")[0] for each in hurt.names("files")} == {ONE.sha256, TWO.sha256}
        programs.add(structs.replace(RUNS, command=[f"{number}"]), {})
    assert programs.numbers() == list(range(2, KEPT + 2))
    assert [each.partition("=")[0] for each in hurt.names("files")] == [ONE.sha256]
    assert programs.add(RUNS, {}).version == KEPT + 2, "no number comes twice"


def test_limits(hurt: Owned, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(hurt.own)
    with pytest.raises(Invalid, match="101 files, and 100 are allowed"):
        programs.add(structs.replace(RUNS, files=[ONE] * 101), ONES)
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    assert programs.add(structs.replace(RUNS, files=[ONE] * 100), ONES).version == 1
    with pytest.raises(Invalid, match="A file has"):
        programs.add(RUNS, {digest(b"12"): b"12"})
    assert programs.numbers() == [1]


def test_a_file_may_be_longer_than_other_small_files(hurt: Owned) -> None:
    data = b"x" * (3 << 20)
    long = ProgramFile("wheel", digest(data), len(data))
    programs = Programs(hurt.own)
    assert programs.read(programs.add(structs.replace(RUNS, files=[long]), {long.sha256: data}), long) == data


def test_what_is_unknown_is_not_there_twice(place: Place) -> None:
    owned = Owned(place.direct, place.files)
    place.faulty.fates.extend(["ok", "ok", LOST, "ok"])
    programs = Programs(owned.own)
    try:
        programs.add(RUNS, ONES)
    except StoreError:
        programs.add(RUNS, ONES)
    assert programs.numbers() == [1]
