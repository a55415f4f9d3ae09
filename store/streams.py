"""Streams: new files of any size, on ``hdfs://`` and ``file://``, for the tasks of a job.

:meth:`store.files.Files.write` is for small files that others may read at once. Here a file has no readers before a
rename of its folder has shown it. So every file has a name that is never used again, missing parents are made, and a
call may be repeated: hdfs-native does that while NameNodes change their roles.
"""

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from store.errors import AlreadyExists, Invalid
from store.uris import split

SCHEMES = ("hdfs", "file")


class Stream(io.RawIOBase):
    """A new file; ``size`` bytes are written so far."""

    def __init__(self, file: Any, finish: Callable[[], object]) -> None:
        """``file.write`` takes all, or says how much it took; ``finish`` is called before the file is closed."""
        self._file, self._finish, self.size = file, finish, 0

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self.size

    def write(self, data: Any) -> int:
        """Write all of the data."""
        left = bytes(data)  # hdfs-native takes any other buffer one byte after the other: 19 MB in 0.4 s
        written = len(left)
        while left:
            left = left[self._file.write(left) :]
        self.size += written
        return written

    def close(self) -> None:
        """Keep the file for good."""
        if not self.closed:
            try:
                self._finish()
            finally:
                self._file.close()
                super().close()


class Streams:
    """Opens new files below a directory, which need not be there."""

    def __init__(self, uri: str) -> None:
        """Connect to the file system of the directory; Invalid for another scheme than the two."""
        parts = split(uri)
        if parts.scheme not in SCHEMES:
            raise Invalid(f"{uri!r} cannot be written by tasks: its scheme is neither hdfs:// nor file://.")
        self._root = parts.path.rstrip("/")
        self._client: Any = None
        if parts.scheme == "hdfs":
            from hdfs_native import Client  # noqa: PLC0415  # 53 ms, which only users of HDFS should pay

            from store.hdfs import ACTIVE_ONLY, OBSERVERS  # noqa: PLC0415

            active = {} if ":" in parts.netloc else {f"{OBSERVERS}.{parts.netloc}": ACTIVE_ONLY}
            self._client = Client(f"hdfs://{parts.netloc}", active)

    def create(self, path: str) -> Stream:
        """Create a file below the directory, with the directories above it."""
        # AlreadyExists: there is a local file of that name. OSError, or hdfs-native's own: it cannot be created.
        if self._client is None:
            return _local(Path(self._root, path))
        from hdfs_native import WriteOptions  # noqa: PLC0415

        file = self._client.create(f"{self._root}/{path}", WriteOptions(overwrite=False, create_parent=True))
        return Stream(file, lambda: None)


def _local(path: Path) -> Stream:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = path.open("xb", buffering=0)
    except FileExistsError as error:
        raise AlreadyExists(f"{path} exists already.") from error
    return Stream(file, lambda: os.fsync(file.fileno()))
