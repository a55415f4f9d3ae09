"""One contract, three drivers: what holds on one file system holds on all."""

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from store.errors import AlreadyExists, Invalid, NotEmpty, NotFound, PermissionDenied, Refused, StoreError, Unknown
from store.files import Files
from store.hdfs import HdfsFiles
from store.open import driver_of

ON_HDFS = [pytest.param("hdfs", marks=pytest.mark.hdfs), pytest.param("webhdfs", marks=pytest.mark.hdfs)]


def _root(kind: str, request: pytest.FixtureRequest) -> str:
    if kind == "local":
        folder: Path = request.getfixturevalue("tmp_path")
        return (folder / "root").as_uri()
    return f"{request.getfixturevalue(f'{kind}_uri')}/{uuid.uuid4().hex}"


@pytest.fixture(params=["local", *ON_HDFS])
def files(request: pytest.FixtureRequest) -> Iterator[Files]:
    driver = driver_of(_root(request.param, request))()
    driver.make_root()
    yield driver
    for entry in driver.list(""):
        driver.delete(entry.name, recursive=True)
    driver.close()


def names(files: Files, path: str) -> set[str]:
    return {entry.name for entry in files.list(path)}


def tree(files: Files, path: str = "") -> set[str]:
    found = set()
    for entry in files.list(path):
        below = f"{path}/{entry.name}" if path else entry.name
        found |= {below} | (tree(files, below) if entry.is_directory else set())
    return found


# Directories


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
    root = _root(kind, request)
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


# Rename


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


def _race(count: int, contest: Callable[[int], None]) -> list[StoreError | None]:
    """Run the contest on several threads at once; return how each ended."""
    results: list[StoreError | None] = [Unknown("did not end")] * count
    start = threading.Barrier(count)

    def run(index: int) -> None:
        start.wait(30)
        try:
            contest(index)
            results[index] = None
        except StoreError as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_exactly_one_wins_a_source(files: Files) -> None:
    for turn in range(10):
        files.make_directory(f"lease-{turn}")
        results = _race(8, lambda index, turn=turn: files.rename(f"lease-{turn}", f"lease-{turn}-{index}"))  # type: ignore[misc]
        winners = [index for index, error in enumerate(results) if error is None]
        assert len(winners) == 1
        assert {type(error) for error in results} == {type(None), NotFound}
        assert {name for name in names(files, "") if name.startswith(f"lease-{turn}")} == {f"lease-{turn}-{winners[0]}"}


def test_exactly_one_wins_a_destination(files: Files) -> None:
    for turn in range(10):
        for index in range(8):
            files.make_directory(f"stage-{turn}-{index}")
        results = _race(8, lambda index, turn=turn: files.rename(f"stage-{turn}-{index}", f"job-{turn}"))  # type: ignore[misc]
        assert sum(error is None for error in results) == 1
        assert {type(error) for error in results} == {type(None), AlreadyExists}
        assert len([name for name in names(files, "") if name.startswith(f"stage-{turn}-")]) == 7


# The fence


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


# Content


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
        reader.join(60)
    assert not [error for error in failures if isinstance(error, Refused)]
    assert seen
    assert all(len(content) == size and len(set(content)) == 1 for content in seen)
    assert names(files, "") == {"f"}


# Delete


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


# Names


CHARACTERS = [*"~=+._-@% ,;'\"!$&()[]{}*?#^|<>\\`", "é", "日", "\u0301", "🚀", "%41", "+%20"]


@pytest.mark.parametrize("character", CHARACTERS)
def test_characters_that_names_may_have(files: Files, character: str) -> None:
    name = f"a{character}b"
    files.make_directory("d")
    files.make_directory(f"d/{name}")
    files.rename(f"d/{name}", f"{name}{name}")
    assert tree(files) == {"d", f"{name}{name}"}
    assert files.list(f"{name}{name}") == []
    files.delete(f"{name}{name}")


@pytest.mark.parametrize("name", ["n" * 255, "日" * 85], ids=["ascii", "three-bytes"])
def test_names_of_255_bytes(files: Files, name: str) -> None:
    files.make_directory(name)
    files.rename(name, f"x{name[1:]}")
    files.rename(f"x{name[1:]}", name)
    assert names(files, "") == {name}
    longer = f"{name}n"
    operations: list[Callable[[], object]] = [
        lambda: files.make_directory(longer),
        lambda: files.rename(name, longer),
        lambda: files.write(longer, b""),
    ]
    for operation in operations:
        with pytest.raises(Invalid):
            operation()
    assert names(files, "") == {name}


BAD_PATHS = [
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "a/../b",
    "a/.",
    "a:b",
    "a\nb",
    "\x00",
    "a\x7f",
    "a\x85",
    "\ud800",
    ".staging-1",
]


@pytest.mark.parametrize("path", BAD_PATHS, ids=ascii)
def test_impossible_paths_are_refused(files: Files, path: str) -> None:
    files.make_directory("a")
    operations: list[Callable[[], object]] = [
        lambda: files.list(path),
        lambda: files.make_directory(path),
        lambda: files.rename("a", path),
        lambda: files.rename(path, "b"),
        lambda: files.read(path, 1),
        lambda: files.write(path, b""),
        lambda: files.delete(path, recursive=True),
    ]
    for operation in operations:
        with pytest.raises(Invalid):
            operation()
    assert names(files, "") == {"a"}


def test_the_root_can_only_be_listed(files: Files) -> None:
    for operation in (
        lambda: files.make_directory(""),
        lambda: files.rename("", "b"),
        lambda: files.rename("b", ""),
        lambda: files.read("", 1),
        lambda: files.write("", b""),
        lambda: files.delete("", recursive=True),
    ):
        with pytest.raises(Invalid):
            operation()
    assert files.list("") == []


# Stray things and strangers


@pytest.mark.hdfs
def test_leftovers_of_a_driver_are_hidden_from_all(hdfs_uri: str, webhdfs_uri: str) -> None:
    folder = uuid.uuid4().hex
    rpc, http = (
        HdfsFiles(urlsplit(hdfs_uri).netloc, f"{urlsplit(hdfs_uri).path}/{folder}"),
        driver_of(f"{webhdfs_uri}/{folder}")(),
    )
    http.make_root()
    http.make_directory("a")
    with pytest.raises(NotFound):
        http.make_directory("gone/a")
    assert names(http, "") == names(rpc, "") == {"a"}
    # The stage is there, and empty: what could not be put into place was removed.
    above = driver_of(hdfs_uri)()
    assert above.list(f"{folder}/a") == []
    assert list(rpc._client.list_status(f"{rpc._root}/.staging")) == []


@pytest.mark.parametrize("kind", ON_HDFS)
def test_a_stranger_is_denied(kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    root = _root(kind, request)
    owner = driver_of(root)()
    owner.make_root()
    owner.make_directory("a")
    monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
    stranger = driver_of(root)()
    operations: list[Callable[[], object]] = [
        lambda: stranger.make_directory("b"),
        lambda: stranger.rename("a", "b"),
        lambda: stranger.write("f", b""),
        lambda: stranger.delete("a"),
    ]
    for operation in operations:
        with pytest.raises(PermissionDenied):
            operation()
    assert names(stranger, "") == {"a"}
    owner.close()
    stranger.close()


@pytest.mark.parametrize("mode", [0o700, 0o775])
@pytest.mark.parametrize("kind", ["local", *ON_HDFS])
def test_directories_that_are_made_have_the_mode_that_was_asked_for(
    kind: str, mode: int, request: pytest.FixtureRequest
) -> None:
    root = _root(kind, request)
    with _umask(0o022):
        driver = driver_of(root, directory_mode=mode)()
        driver.make_root()
        driver.make_directory("a")
    if kind == "local":
        folder = Path(root.removeprefix("file://"))
        found = [each.stat().st_mode & 0o7777 for each in (folder, folder / "a")]
    else:
        parts = urlsplit(root)
        client = driver_of(f"{request.getfixturevalue('hdfs_uri')}{parts.path[parts.path.rindex('/') :]}")()._client  # type: ignore[attr-defined]
        found = [client.get_file_info(path).permission & 0o7777 for path in (parts.path, f"{parts.path}/a")]
    assert found == [mode, mode]
    driver.close()


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_uri_is_the_roots(files: Files, tmp_path: Path) -> None:
    assert files.uri.partition("://")[0] in {"file", "hdfs", "webhdfs"}
    if files.uri.startswith("file:"):
        assert files.uri == f"file://{tmp_path}/root"
