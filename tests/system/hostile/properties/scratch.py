"""A scratch directory for properties that read files: one for each process, and removed with it."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def scratch() -> Path:
    """Return the directory."""
    made = Path(tempfile.mkdtemp(prefix="hostile-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@cache
def empty() -> Path:
    """Return an empty file."""
    return file_of("empty", b"")


def file_of(name: str, data: bytes) -> Path:
    """Return a file with this content."""
    path = scratch() / name
    path.unlink(missing_ok=True)  # ext4 writes through a file that is truncated and closed: 4 ms
    path.write_bytes(data)
    return path
