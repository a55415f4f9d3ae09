"""Files in a directory of this host (``file://``): the embedded default, for contenders that share one machine."""

# Names are bytes here, whatever the locale, and pathlib takes only text.
# ruff: noqa: PTH101, PTH120, PTH102, PTH103, PTH105, PTH106, PTH108, PTH117, PTH118

import ctypes
import errno
import os
import shutil
import stat
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO

from store import paths
from store.errors import (
    AlreadyExists,
    Invalid,
    NoSpace,
    NotEmpty,
    NotFound,
    NotSent,
    NotWritable,
    PermissionDenied,
    Refused,
    StoreError,
    Unknown,
)
from store.files import DIRECTORY_MODE, Entry
from store.spare import SPARE

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1

_REFUSALS: dict[int, type[Refused]] = {
    errno.ENOENT: NotFound,
    errno.EEXIST: AlreadyExists,
    errno.ENOTEMPTY: NotEmpty,
    errno.EACCES: PermissionDenied,
    errno.EPERM: PermissionDenied,
    errno.ENOSPC: NoSpace,
    errno.EDQUOT: NoSpace,
    errno.EROFS: NotWritable,
    errno.ENAMETOOLONG: Invalid,
    errno.ENOTDIR: Invalid,
    errno.EISDIR: Invalid,
    errno.EINVAL: Invalid,
    errno.ELOOP: Invalid,
    errno.EXDEV: Invalid,
    errno.EMFILE: NotSent,
    errno.ENFILE: NotSent,
    errno.ENOMEM: NotSent,
}


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "renameat2"):
        raise Invalid(f"The C library on {sys.platform} has no renameat2 (Linux, glibc 2.28); use hdfs:// here.")
    library.renameat2.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return library


def _rename_exclusively(source: bytes, destination: bytes) -> None:
    """Rename, but never over an existing entry: plain ``rename`` replaces files and empty directories silently."""
    if _libc().renameat2(_AT_FDCWD, source, _AT_FDCWD, destination, _RENAME_NOREPLACE) == 0:
        return
    code = ctypes.get_errno()
    if code == errno.ENOSYS or (code == errno.EINVAL and not destination.startswith(source + b"/")):
        raise Invalid(
            "This kernel or file system cannot rename without replacing (renameat2, RENAME_NOREPLACE); "
            "use a directory on a local ext4, xfs, btrfs or tmpfs."
        )
    raise OSError(code, os.strerror(code))


@contextmanager
def _classified(path: str) -> Iterator[None]:
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        kind = _REFUSALS.get(error.errno or 0, Unknown)
        raise kind(f"{error.strerror}: {path!r}") from error
    except Exception as error:
        raise Unknown(f"{error!r}: {path!r}") from error


class LocalFiles:
    """A :class:`store.files.Files` over a POSIX directory.

    Every operation goes by path, never by an open directory: a path below a directory that was renamed away is gone,
    and that is the fence. Each change is on disk before it is reported, so that a crash of the host keeps their order;
    without ``durable`` it may undo reported changes. Directories get their mode whatever the umask.
    """

    def __init__(self, root: str | Path, *, durable: bool = True, directory_mode: int = DIRECTORY_MODE) -> None:
        text = os.fspath(root)
        if not os.path.isabs(text) or "\0" in text:
            raise Invalid(f"The root {text!r} is not an absolute path; write file:///path/to/a/directory.")
        self._root = os.fsencode(os.path.normpath(text))
        self._durable = durable
        self._mode = directory_mode
        SPARE.keep()
        self.uri = "file://" + os.fsdecode(self._root)

    def list(self, path: str) -> list[Entry]:
        """Return the entries of a directory; see :meth:`store.files.Files.list`."""
        with _classified(path), os.scandir(self._at(path, root=True)) as entries:
            return [entry for each in entries if (entry := _entry(each)) is not None]

    def make_directory(self, path: str) -> None:
        """Create one directory; see :meth:`store.files.Files.make_directory`."""
        with _classified(path):
            target = self._at(path)
            try:
                self._make(target)
            except FileExistsError:
                if not stat.S_ISDIR(os.lstat(target).st_mode):
                    raise
                return
            self._flush_directories(path)

    def make_root(self) -> None:
        """Create the root and its parents; no error if it exists."""
        with _classified(""):
            os.makedirs(os.path.dirname(self._root), exist_ok=True)
            with suppress(FileExistsError):
                self._make(self._root)
            if not os.path.isdir(self._root):  # noqa: PTH112  # names are bytes
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    def rename(self, source: str, destination: str) -> None:
        """Rename atomically, never over an existing entry; see :meth:`store.files.Files.rename`."""
        with _classified(f"{source} -> {destination}"):
            try:
                _rename_exclusively(self._at(source), self._at(destination))
            except FileNotFoundError:
                self._check_writable(source, destination)
                raise
            self._flush_directories(source, destination)

    def read(self, path: str, limit: int) -> bytes:
        """Return a small file's content; see :meth:`store.files.Files.read`."""
        with _classified(path):
            # Without O_NONBLOCK a stray named pipe would block for ever.
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW
            with os.fdopen(os.open(self._at(path), flags), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise Invalid(f"Not a regular file: {path!r}")
                data = file.read(limit + 1)
            if len(data) > limit:
                raise Invalid(f"Longer than {limit} bytes: {path!r}")
            return data

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file atomically; see :meth:`store.files.Files.write`."""
        with _classified(path):
            target = self._at(path)
            staged = self._own(paths.sibling(path, f"{paths.STAGING}-{uuid.uuid4().hex}"))
            try:
                self._stage(staged, data)
                os.replace(staged, target)
            except BaseException:
                _unlink_quietly(staged)
                raise
            self._flush_directories(path)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete an entry; see :meth:`store.files.Files.delete`."""
        with _classified(path):
            target = self._at(path)
            if not stat.S_ISDIR(os.lstat(target).st_mode):
                os.unlink(target)
            elif not recursive:
                os.rmdir(target)
            else:
                # Out of sight first: a half-deleted tree must be neither seen nor written into.
                doomed = self._own(paths.sibling(path, f"{paths.STAGING}-{uuid.uuid4().hex}"))
                _rename_exclusively(target, doomed)
                shutil.rmtree(doomed, ignore_errors=True)
            self._flush_directories(path)

    def close(self) -> None:
        """Release nothing: no descriptor of a directory stays open between calls."""

    def _at(self, path: str, *, root: bool = False) -> bytes:
        return self._own(paths.check(path, root=root))

    def _own(self, path: str) -> bytes:
        return os.path.join(self._root, path.encode()) if path else self._root

    def _make(self, target: bytes) -> None:
        os.mkdir(target, self._mode)
        if os.lstat(target).st_mode & 0o7777 != self._mode:  # the umask has taken something away
            os.chmod(target, self._mode)

    def _check_writable(self, *changed: str) -> None:
        """Report a missing permission before a missing entry, as HDFS does."""
        for folder in {self._own(paths.parent(each)) for each in changed}:
            if os.path.isdir(folder) and not os.access(folder, os.W_OK | os.X_OK):  # noqa: PTH112  # names are bytes
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    def _stage(self, staged: bytes, data: bytes) -> None:
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            if self._durable:
                os.fsync(file.fileno())

    def _flush_directories(self, *changed: str) -> None:
        if not self._durable:
            return
        for folder in {paths.parent(each) for each in changed}:
            try:
                _flush(self._own(folder))
            except FileNotFoundError:
                continue  # renamed away since; that rename flushed the directory above, and with it this change
            except OSError as error:
                # It has happened already, so no errno of this call may be taken for a refusal.
                raise Unknown(f"Done, but perhaps not on disk ({error.strerror}): {folder!r}") from error


def open_below(root: bytes, path: str) -> BinaryIO:
    """Open a file for reading: only a regular one (else Invalid), and no link leads to it below the root."""
    # Another user may put links, pipes and devices there at any time. So each directory is opened in the one before.
    *folders, name = path.encode().split(b"/")
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    below = os.open(root, flags | os.O_DIRECTORY)
    try:
        for folder in folders:
            above, below = below, os.open(folder, flags | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=below)
            os.close(above)
        file = os.open(name, flags | os.O_NOFOLLOW, dir_fd=below)
        if stat.S_ISREG(os.fstat(file).st_mode):
            return os.fdopen(file, "rb")
        os.close(file)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise
    finally:
        os.close(below)
    raise Invalid(f"Not a regular file: {path!r}")


def _flush(folder: bytes) -> None:
    """Flush a directory, also when the process has no descriptor left: a lease that is renewed must be kept."""
    try:
        _open_and_flush(folder)
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        with SPARE.borrowed():
            _open_and_flush(folder)


def _open_and_flush(folder: bytes) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _entry(found: os.DirEntry[bytes]) -> Entry | None:
    name = found.name.decode(errors="backslashreplace")
    if paths.hidden(name):
        return None
    try:
        facts = found.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # deleted or renamed while we were listing
    folder = stat.S_ISDIR(facts.st_mode)
    return Entry(name, folder, 0 if folder else facts.st_size, facts.st_mtime_ns // 1_000_000)


def _unlink_quietly(file: bytes) -> None:
    try:
        os.unlink(file)
    except OSError:
        return  # a leftover is hidden and harmless; the first error is the one to report
