"""One contract, three drivers: what holds on one file system holds on all."""

import threading
import time
from collections.abc import Callable

import pytest

from store.errors import AlreadyExists, Invalid, NotEmpty, NotFound, Refused, StoreError, Unknown
from store.files import Files
from store.open import driver_of
from tests.patience import PATIENCE_S
from tests.unit.leader.faulty import in_threads
from tests.unit.store.drivers import ON_HDFS, names, root_on, tree


def test_make_root_is_repeatable(files: Files) -> None:
    files.make_root()
    assert files.list("") == []


def test_make_directory_is_repeatable(files: Files) -> None:
    files.make_directory("a")
    files.make_directory("a/b")
    files.make_directory("a")
    assert tree(files) == {"a", "a/b"}


def test_make_directory_never_makes_parents(files: Files) -> None:
    with pytest.raises(NotFound):
        files.make_directory("gone/a")
    assert tree(files) == set()


def test_make_directory_where_a_file_is(files: Files) -> None:
    files.write("f", b"")
    with pytest.raises(AlreadyExists):
        files.make_directory("f")
    with pytest.raises(Invalid):
        files.make_directory("f/a")


def test_list_refuses_anything_but_a_directory(files: Files) -> None:
    with pytest.raises(NotFound):
        files.list("gone")
    files.write("f", b"1")
    with pytest.raises(Invalid):
        files.list("f")
    with pytest.raises(Invalid):
        files.list("f/x")


def test_entries_tell_type_size_and_time(files: Files) -> None:
    before_ms = time.time() * 1000
    files.make_directory("d")
    files.write("f", b"12345")
    entries = {entry.name: entry for entry in files.list("")}
    assert (entries["d"].is_directory, entries["d"].size) == (True, 0)
    assert (entries["f"].is_directory, entries["f"].size) == (False, 5)
    assert all(before_ms - 2000 <= entry.modified_ms <= time.time() * 1000 + 2000 for entry in entries.values())


@pytest.mark.parametrize("kind", ["local", *ON_HDFS])
def test_a_long_listing_is_complete(kind: str, request: pytest.FixtureRequest) -> None:
    """HDFS answers with at most 1,000 entries at a time."""
    root = root_on(kind, request)
    files = driver_of(root)()
    files.make_root()
    # Over HTTP this would take half a minute.
    folder = root.rpartition("/")[2]
    maker = files if kind == "local" else driver_of(f"{request.getfixturevalue('hdfs_uri')}/{folder}")()
    expected = {f"entry-{number:05}" for number in range(3000)}
    for name in expected:
        maker.make_directory(name)
    listed = files.list("")
    assert len(listed) == len(expected)
    assert {entry.name for entry in listed} == expected
    files.close()


def test_rename_takes_the_tree_along(files: Files) -> None:
    files.make_directory("a")
    files.make_directory("a/b")
    files.make_directory("a/b/c")
    files.make_directory("x")
    files.rename("a", "x/z")
    assert tree(files) == {"x", "x/z", "x/z/b", "x/z/b/c"}


def test_rename_moves_a_file(files: Files) -> None:
    files.write("f", b"content")
    files.rename("f", "g")
    assert names(files, "") == {"g"}
    assert files.read("g", 100) == b"content"


def test_rename_of_a_missing_entry(files: Files) -> None:
    files.make_directory("a")
    with pytest.raises(NotFound):
        files.rename("gone", "b")
    with pytest.raises(NotFound):
        files.rename("gone", "a")
    with pytest.raises(NotFound):
        files.rename("a", "gone/b")
    assert tree(files) == {"a"}


def test_rename_never_replaces(files: Files) -> None:
    files.make_directory("empty")
    files.make_directory("full")
    files.make_directory("full/x")
    files.make_directory("directory")
    files.write("file", b"1")
    files.write("other", b"2")
    before = tree(files)
    for source in ("directory", "file"):
        for destination in ("empty", "full", "other", source):
            with pytest.raises(AlreadyExists):
                files.rename(source, destination)
    assert tree(files) == before
    assert files.read("other", 10) == b"2"


def test_rename_to_an_impossible_place(files: Files) -> None:
    files.make_directory("a")
    files.write("f", b"")
    with pytest.raises(Invalid):
        files.rename("a", "a/b")
    with pytest.raises(Invalid):
        files.rename("a", "f/b")
    with pytest.raises(Invalid):
        files.rename("f/b", "c")
    assert tree(files) == {"a", "f"}


def test_exactly_one_wins_a_source(files: Files) -> None:
    for turn in range(10):
        files.make_directory(f"lease-{turn}")
        results = in_threads(8, lambda index, turn=turn: files.rename(f"lease-{turn}", f"lease-{turn}-{index}"))  # type: ignore[misc]
        winners = [index for index, error in enumerate(results) if error is None]
        assert len(winners) == 1
        assert {type(error) for error in results} == {type(None), NotFound}
        assert {name for name in names(files, "") if name.startswith(f"lease-{turn}")} == {f"lease-{turn}-{winners[0]}"}


def test_exactly_one_wins_a_destination(files: Files) -> None:
    for turn in range(10):
        for index in range(8):
            files.make_directory(f"stage-{turn}-{index}")
        results = in_threads(8, lambda index, turn=turn: files.rename(f"stage-{turn}-{index}", f"job-{turn}"))  # type: ignore[misc]
        assert sum(error is None for error in results) == 1
        assert {type(error) for error in results} == {type(None), AlreadyExists}
        assert len([name for name in names(files, "") if name.startswith(f"stage-{turn}-")]) == 7


def test_below_a_renamed_directory_every_old_path_is_refused(files: Files) -> None:
    files.make_directory("old")
    files.make_directory("old/lease")
    files.make_directory("old/lease/1")
    files.write("old/offset", b"7")
    files.rename("old", "new")
    before = tree(files)
    refused: list[Callable[[], object]] = [
        lambda: files.make_directory("old/lease/2"),
        lambda: files.make_directory("old/more"),
        lambda: files.rename("old/lease/1", "old/lease/2"),
        lambda: files.rename("new/lease/1", "old/lease/2"),
        lambda: files.write("old/offset", b"8"),
        lambda: files.write("old/lease/file", b"8"),
        lambda: files.delete("old/lease", recursive=True),
        lambda: files.read("old/offset", 10),
        lambda: files.list("old"),
    ]
    for operation in refused:
        with pytest.raises(NotFound):
            operation()
    assert tree(files) == before
    assert files.read("new/offset", 10) == b"7"


def test_read_gives_back_what_was_written(files: Files) -> None:
    content = bytes(range(256)) * 3
    files.write("f", content)
    assert files.read("f", len(content)) == content
    files.write("f", b"")
    assert files.read("f", 0) == b""


def test_read_refuses_missing_and_long_files_and_directories(files: Files) -> None:
    files.make_directory("d")
    files.write("f", b"12345")
    with pytest.raises(Invalid):
        files.read("f", 4)
    with pytest.raises(Invalid):
        files.read("d", 10)
    with pytest.raises(NotFound):
        files.read("gone", 10)
    with pytest.raises((Invalid, NotFound)):  # WebHDFS does not say why it is not there
        files.read("f/x", 10)


def test_write_refuses_missing_parents_and_directories(files: Files) -> None:
    files.make_directory("d")
    files.make_directory("full")
    files.make_directory("full/x")
    files.write("f", b"1")
    before = tree(files)
    for directory in ("d", "full"):
        with pytest.raises(Invalid):
            files.write(directory, b"2")
    with pytest.raises(NotFound):
        files.write("gone/f", b"2")
    with pytest.raises(Invalid):
        files.write("f/g", b"2")
    assert tree(files) == before


def test_a_reader_never_sees_half_a_file(files: Files) -> None:
    size = 20_000
    files.write("f", b"0" * size)
    finished = threading.Event()
    seen: list[bytes] = []
    failures: list[StoreError] = []

    def read() -> None:
        while not finished.is_set():
            try:
                seen.append(files.read("f", 2 * size))
            except Unknown as error:  # on HDFS the block may be deleted between being found and being read
                failures.append(error)
            except Refused as error:
                failures.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for letter in b"12345":
            files.write("f", bytes([letter]) * size)
    finally:
        finished.set()
        reader.join(PATIENCE_S)
    assert not [error for error in failures if isinstance(error, Refused)]
    assert seen
    assert all(len(content) == size and len(set(content)) == 1 for content in seen)
    assert names(files, "") == {"f"}


def test_delete(files: Files) -> None:
    files.make_directory("d")
    files.make_directory("d/e")
    files.write("d/f", b"1")
    with pytest.raises(NotEmpty):
        files.delete("d")
    files.delete("d/e")
    files.delete("d/f")
    files.delete("d")
    with pytest.raises(NotFound):
        files.delete("d")
    with pytest.raises(NotFound):
        files.delete("d/e")
    assert tree(files) == set()


def test_delete_of_a_tree(files: Files) -> None:
    files.make_directory("d")
    files.make_directory("d/e")
    files.write("d/e/f", b"1")
    files.delete("d", recursive=True)
    assert tree(files) == set()
    with pytest.raises(NotFound):
        files.delete("d", recursive=True)
