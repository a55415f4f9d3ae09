"""Cache of the user: files that are slow to get, each with its checksum, safe against damage and concurrent writers.

A checksum does not name the author. So only files of this user or root count, where no other user may write.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ha.config.snapshot_dir import OTHERS_MAY_WRITE, ROOT, trusted
from ha.hosts.host_error import HostError


def cache_directory() -> Path:
    """Return the user's cache directory for this project; it may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hybrid-ha"


def cached(path: Path, make: Callable[[Path], None]) -> Path:
    """Return a file of the cache; make it if it is missing or damaged."""
    # Two processes may do this at once: one makes it, the other waits and takes it.
    # `path`: the file in the cache. `make`: writes a file of that name into the empty folder it is given; must have a
    # time limit of its own.
    # HostError: the cache cannot be used; and whatever ``make`` raises.
    if intact(path):
        return path
    with _locked(path):
        if not intact(path):
            with _scratch(path) as folder:
                make(folder)
                made = folder / path.name
                made.with_name(f"{path.name}.sha256").write_text(f"{sha256(made)}\n", encoding="ascii")
                for each in (made, made.with_name(f"{path.name}.sha256")):
                    each.chmod(each.stat().st_mode & ~OTHERS_MAY_WRITE)
                # Between these two a crash leaves a file that does not match its checksum: it would be made again.
                made.replace(path)
                made.with_name(f"{path.name}.sha256").replace(_checksum_of(path))
    return path


def cached_folder(path: Path, digest: str, make: Callable[[Path], None]) -> list[Path]:
    """Return the files of a folder of the cache, by name; make the folder if it is missing or damaged."""
    # `path`: the folder in the cache. `digest`: what :func:`digest_of` must say of it. `make`: writes the files into
    # the empty folder it is given; must have a time limit of its own.
    # HostError: the cache cannot be used, or other files were made; and whatever ``make`` raises.
    _check(path)
    if digest_of(path) != digest:
        with _locked(path):
            if digest_of(path) != digest:
                with _scratch(path) as folder:
                    make(folder)
                    if (found := digest_of(folder)) != digest:
                        raise HostError(
                            f"What was fetched for {path.name} has the wrong SHA-256 checksum ({found}): it was "
                            "damaged on the way, or somebody changed it."
                        )
                    shutil.rmtree(path, ignore_errors=True)
                    folder.rename(path)
    return sorted(path.iterdir())


def digest_of(folder: Path) -> str:
    """Return the SHA-256 checksum of the names and the checksums of all files in a folder; empty without files."""
    try:
        lines = [f"{sha256(each)}  {each.name}\n" for each in sorted(folder.iterdir())]
    except OSError:
        return ""
    return hashlib.sha256("".join(lines).encode()).hexdigest() if lines else ""


def intact(path: Path) -> bool:
    """Return whether a file of the cache is there and as it was made, by this user or root."""
    try:
        _check(path)
        if not (trusted(path.stat()) and trusted(_checksum_of(path).stat())):
            return False
        return _checksum_of(path).read_text(encoding="ascii").strip() == sha256(path)
    except (OSError, UnicodeDecodeError, HostError):
        return False


def sha256(path: Path) -> str:
    """Return a file's SHA-256 checksum in hexadecimal digits. OSError: it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check(path: Path) -> None:
    """Refuse a cache in which others may write."""
    # HostError: they may. OSError: a directory cannot be looked at; not if there is none.
    base = cache_directory()
    for folder in (path.parent, *((base,) if base in path.parents else ())):
        with contextlib.suppress(FileNotFoundError):
            if not trusted(folder.stat()) or folder.lstat().st_uid not in (os.geteuid(), ROOT):
                raise HostError(
                    f"The cache {folder} cannot be used, because it is another user's, or others may write in it: "
                    f"chmod go-w {folder}, or set XDG_CACHE_HOME."
                )


def _checksum_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(path)
        lock = path.with_name(f"{path.name}.lock").open("w")
    except OSError as error:
        raise HostError(f"The cache {path.parent} cannot be used: {error}.") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # bounded: its holder has a time limit
        yield


@contextlib.contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """Give an empty folder beside the file, for the holder of its lock; a process that was killed may have left one."""
    folder = path.with_name(f"making-{path.name}")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise HostError(f"The cache {path.parent} cannot be used: {error}.") from error
    try:
        yield folder
    except OSError as error:
        raise HostError(f"{path} cannot be made: {error}.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- archives of classes as a JVM wants them in memory

CLASSES = "classes"  # begin of the names of archives for the sandbox's servers; other programs have other names
_KEPT_ARCHIVES = 4  # archives in the cache: other versions of Java and other installations of PySpark have their own


def archive_path(java_version: str, jars: Iterable[Path], name: str = CLASSES) -> Path:
    """Return where the archive for this Java and these jars is, or would be. OSError: a jar is gone."""
    marks = [java_version]
    for jar in jars:
        there = jar.stat()  # the JVM compares the same facts
        marks.append(f"{jar} {there.st_size} {there.st_mtime_ns}")
    return cache_directory() / f"{name}-{hashlib.sha256(chr(10).join(marks).encode()).hexdigest()[:12]}.jsa"


def forget_old(folder: Path, name: str = CLASSES) -> None:
    """Delete the oldest archives of a kind, all but a few."""
    archives = sorted(folder.glob(f"{name}-*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in archives[_KEPT_ARCHIVES:]:
        for path in (old, old.with_name(f"{old.name}.sha256"), old.with_name(f"{old.name}.lock")):
            path.unlink(missing_ok=True)
