"""Local directories alone have errno, stray things of the system, and tools that look at them from outside."""

import ctypes
import errno
import os
from pathlib import Path
from typing import Any

import pytest

import store.local
from store.errors import (
    AlreadyExists,
    Invalid,
    NoSpace,
    NotFound,
    NotSent,
    NotWritable,
    PermissionDenied,
    StoreError,
    Unknown,
)
from store.local import LocalFiles


@pytest.fixture
def files(tmp_path: Path) -> LocalFiles:
    made = LocalFiles(tmp_path / "root")
    made.make_root()
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.mark.parametrize("path", ["relative", "", "a\0b"])
def test_the_root_must_be_absolute(path: str) -> None:
    with pytest.raises(Invalid, match="not an absolute path"):
        LocalFiles(path)


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path / "gone")
    with pytest.raises(NotFound):
        files.list("")
    with pytest.raises(NotFound):
        files.make_directory("a")
    with pytest.raises(NotFound):
        files.write("a", b"")


CODES = [
    (errno.ENOSPC, NoSpace), (errno.EDQUOT, NoSpace), (errno.EACCES, PermissionDenied),
    (errno.EPERM, PermissionDenied), (errno.EROFS, NotWritable), (errno.ENAMETOOLONG, Invalid),
    (errno.ENOTDIR, Invalid), (errno.EXDEV, Invalid), (errno.EMFILE, NotSent), (errno.EIO, Unknown),
    (errno.ESTALE, Unknown), (errno.EINTR, Unknown),
]  # fmt: skip


@pytest.mark.parametrize(("code", "kind"), CODES, ids=[errno.errorcode[code] for code, _ in CODES])
def test_errno_classes(files: LocalFiles, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[StoreError]) -> None:
    files.make_directory("a")

    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    class Library:
        @staticmethod
        def renameat2(*_: object) -> int:
            ctypes.set_errno(code)
            return -1

    for name in ("mkdir", "scandir", "open", "rmdir"):
        monkeypatch.setattr(os, name, fail)
    monkeypatch.setattr(store.local, "_libc", Library)
    for operation in (
        lambda: files.make_directory("b"),
        lambda: files.list(""),
        lambda: files.write("f", b"1"),
        lambda: files.read("f", 1),
        lambda: files.delete("a"),
        lambda: files.rename("a", "b"),
        lambda: files.delete("a", recursive=True),
    ):
        with pytest.raises(kind) as caught:
            operation()
        assert type(caught.value) is kind


def test_no_other_exception_escapes(files: LocalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(os, "mkdir", fail)
    with pytest.raises(Unknown, match="MemoryError"):
        files.make_directory("a")


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EINVAL])
def test_missing_exclusive_rename_is_said(files: LocalFiles, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    class Library:
        @staticmethod
        def renameat2(*_: object) -> int:
            ctypes.set_errno(code)
            return -1

    monkeypatch.setattr(store.local, "_libc", Library)
    files.make_directory("a")
    with pytest.raises(Invalid, match="cannot rename without replacing"):
        files.rename("a", "b")


def test_a_disk_that_fails_after_the_rename_is_no_refusal(files: LocalFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    files.make_directory("a")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unknown, match="Done, but perhaps not on disk"):
        files.rename("a", "b")
    with pytest.raises(Unknown, match="Done, but perhaps not on disk"):
        files.make_directory("c")
    assert {entry.name for entry in files.list("")} == {"b", "c"}


def test_a_failed_write_leaves_nothing(files: LocalFiles, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.write("f", b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(NoSpace):
        files.write("f", b"new")
    assert files.read("f", 10) == b"old"
    assert os.listdir(root) == ["f"]  # noqa: PTH208 - names are the point


def test_each_change_is_flushed_before_it_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink().name.partition("-")[0])
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    files = LocalFiles(tmp_path)
    files.make_directory("a")
    files.make_directory("b")
    flushed.clear()
    files.write("a/f", b"1")
    assert flushed == [".staging", "a"]
    flushed.clear()
    files.rename("a/f", "b/f")
    assert sorted(flushed) == ["a", "b"]
    flushed.clear()
    LocalFiles(tmp_path, durable=False).write("a/f", b"1")
    assert flushed == []


def test_stray_things(files: LocalFiles, root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "link").symlink_to("/nowhere")
    (root / ".staging-left").write_bytes(b"half")
    (Path(os.fsdecode(os.fsencode(root) + b"/\xff"))).touch()
    listed = {entry.name: entry for entry in files.list("")}
    assert set(listed) == {"pipe", "link", "\\xff"}
    assert not any(entry.is_directory for entry in listed.values())
    with pytest.raises(Invalid):  # and does not wait for a writer
        files.read("pipe", 10)
    with pytest.raises(Invalid):  # wherever it leads to
        files.read("link", 10)
    with pytest.raises(AlreadyExists):
        files.make_directory("link")
    files.make_directory("a")
    with pytest.raises(AlreadyExists):
        files.rename("a", "link")
    files.delete("link")
    files.delete("pipe")


def test_a_tree_with_a_link_in_it_is_deleted_without_following(files: LocalFiles, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    files.make_directory("a")
    (root / "a" / "link").symlink_to(outside)
    files.delete("a", recursive=True)
    assert (outside / "precious").exists()
    assert list(root.iterdir()) == []


def test_an_entry_that_vanishes_is_left_out(files: LocalFiles, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files.make_directory("a")
    files.make_directory("b")
    real = store.local._entry

    def entry(found: Any) -> Any:
        if found.name == b"a":
            (root / "a").rmdir()
        return real(found)

    monkeypatch.setattr(store.local, "_entry", entry)
    assert {each.name for each in files.list("")} == {"b"}
