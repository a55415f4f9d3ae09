"""Names and strangers, on three drivers: which names are allowed, what is hidden, and who is denied."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from store.errors import Invalid, NotFound, PermissionDenied
from store.files import Files
from store.hdfs import HdfsFiles
from store.open import driver_of
from tests.unit.store.drivers import ON_HDFS, names, root_on, tree

CHARACTERS = [*"~=+._-@% ,;'\"!$&()[]{}*?#^|<>\\`", "\x80", "\x85", "\x92", "é", "日", "\u0301", "🚀", "%41", "+%20"]


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
    "/a", "a/", "a//b", ".", "..", "a/../b", "a/.", "a:b", "a\nb", "\x00", "a\x7f", "\ud800", ".staging-1",
]  # fmt: skip


# Without backslashes, which pytest doubles when it collects a test in a second module as well.
@pytest.mark.parametrize("path", BAD_PATHS, ids=lambda path: ascii(path).replace("\\", ""))
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
    root = root_on(kind, request)
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
def test_directories_have_the_mode_that_was_asked_for(kind: str, mode: int, request: pytest.FixtureRequest) -> None:
    root = root_on(kind, request)
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
