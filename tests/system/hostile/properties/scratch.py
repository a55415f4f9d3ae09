"""A scratch directory for properties that read files: one for each process, and removed with it."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def scratch() -> Path:
    made = Path(tempfile.mkdtemp(prefix="hostile-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


@cache
def empty() -> Path:
    return file_of("empty", b"")


def file_of(name: str, data: bytes) -> Path:
    path = scratch() / name
    path.unlink(missing_ok=True)  # ext4 writes through a file that is truncated and closed: 4 ms
    path.write_bytes(data)
    return path
