"""Cache of the user: files that are slow to get, each with its checksum, safe against damage and concurrent writers."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ha.sandbox.polling import SandboxError


def cache_directory() -> Path:
    """Return the user's cache directory for this project; it may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hybrid-ha"


def cached(path: Path, make: Callable[[Path], None]) -> Path:
    """Return a file of the cache; make it if it is missing or damaged.

    Two processes may do this at once: one makes it, the other waits and takes it.

    Args:
        path: the file in the cache.
        make: writes a file of that name into the empty folder it is given; must have a time limit of its own.

    Raises:
        SandboxError: the cache cannot be used; and whatever ``make`` raises.
    """
    if intact(path):
        return path
    with _locked(path):
        if not intact(path):
            with _scratch(path) as folder:
                make(folder)
                made = folder / path.name
                made.with_name(f"{path.name}.sha256").write_text(f"{sha256(made)}\n", encoding="ascii")
                # Between these two a crash leaves a file that does not match its checksum: it would be made again.
                made.replace(path)
                made.with_name(f"{path.name}.sha256").replace(_checksum_of(path))
    return path


def cached_folder(path: Path, digest: str, make: Callable[[Path], None]) -> list[Path]:
    """Return the files of a folder of the cache, by name; make the folder if it is missing or damaged.

    Args:
        path: the folder in the cache.
        digest: what :func:`digest_of` must say of it.
        make: writes the files into the empty folder it is given; must have a time limit of its own.

    Raises:
        SandboxError: the cache cannot be used, or other files were made; and whatever ``make`` raises.
    """
    if digest_of(path) != digest:
        with _locked(path):
            if digest_of(path) != digest:
                with _scratch(path) as folder:
                    make(folder)
                    if (found := digest_of(folder)) != digest:
                        raise SandboxError(
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
    """Return whether a file of the cache is there and as it was made."""
    try:
        return _checksum_of(path).read_text(encoding="ascii").strip() == sha256(path)
    except (OSError, UnicodeDecodeError):
        return False


def sha256(path: Path) -> str:
    """Return a file's SHA-256 checksum in hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(f"{path.name}.lock").open("w")
    except OSError as error:
        raise SandboxError(f"The cache {path.parent} cannot be used: {error}.") from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # bounded: its holder has a time limit
        yield


@contextlib.contextmanager
def _scratch(path: Path) -> Iterator[Path]:
    """Give a folder beside the file, so that the file can be renamed into place; always clean up."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="making-", dir=path.parent))
    except OSError as error:
        raise SandboxError(f"The cache {path.parent} cannot be used: {error}.") from error
    try:
        yield folder
    except OSError as error:
        raise SandboxError(f"{path} cannot be made: {error}.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
