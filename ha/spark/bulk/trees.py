"""A directory with all files below it: listed by the store's own drivers, their contents moved by ``pyarrow.fs``.

pyarrow reaches HDFS through fsspec, whose listings leave out what could not be listed, without a word: a copy of such a
listing would look complete. So names and sizes are the drivers' business, and pyarrow only streams.
"""

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from store.bounded import BoundedFiles
from store.errors import Invalid, Unknown
from store.files import Entry

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

LIST_TIMEOUT = 20.0
"""Seconds for the list of one directory."""

MAX_FILES = 1_000_000
"""Most files of a tree; what has more is no checkpoint, and their names should fit into memory."""

CHUNK = 4 << 20
"""Bytes that are read and written at once."""


class Tree:
    """One directory; safe to use from several threads."""

    def __init__(self, files: BoundedFiles, path: str = "") -> None:
        """Touch nothing yet.

        Args:
            files: closed by whoever opened it.
            path: of the directory, below their root.
        """
        self.files = files
        self.path = path

    @property
    def uri(self) -> str:
        """Where it is."""
        return f"{self.files.uri}/{self.path}".rstrip("/")

    def listing(self, below: str = "") -> dict[str, int]:
        """Return the size of every file in bytes, by its path in this tree.

        Args:
            below: the part of it that is to be listed.

        Raises:
            Invalid: there are too many.
            NotFound: there is no such directory, or one in it went away meanwhile.
            StoreError: the store did not answer.
        """
        found: dict[str, int] = {}
        folders = [below]
        while folders:
            folder = folders.pop()
            for entry in self._list(folder):
                path = f"{folder}/{entry.name}".lstrip("/")
                if entry.is_directory:
                    folders.append(path)
                else:
                    found[path] = entry.size
            if len(found) > MAX_FILES:
                raise Invalid(f"{self.uri} has more than {MAX_FILES:,} files: that is no checkpoint.")
        return found

    def read_into(self, path: str, target: "Tree", name: str, told: Callable[[int], None]) -> int:
        """Copy one file's content, in as long as that takes: call it within a deadline.

        Args:
            path: of the file in this tree.
            target: the other tree.
            name: what to write there; replaced if it is there.
            told: how many bytes were copied just now.

        Returns:
            How many bytes it has.

        Raises:
            Unknown: it could not be copied, for whatever reason; what was written so far may be there.
        """
        copied = 0
        with (
            _classified(path),  # the first, so that it hears of what goes wrong in closing the others, too
            self._arrow.open_input_stream(f"{self._at}/{path}") as source,
            target._arrow.open_output_stream(f"{target._at}/{name}") as sink,  # noqa: SLF001 - our own class
        ):
            while chunk := source.read(CHUNK):
                sink.write(chunk)
                copied += len(chunk)
                told(len(chunk))
        return copied

    def _list(self, folder: str) -> list[Entry]:
        path = f"{self.path}/{folder}".strip("/")
        return self.files.call("bulk_list", lambda files: files.list(path), LIST_TIMEOUT)

    @cached_property
    def _arrow(self) -> "FileSystem":
        return bulk_files(self.files.uri)

    @property
    def _at(self) -> str:
        return urlsplit(self.uri).path


def bulk_files(uri: str) -> "FileSystem":
    """Return pyarrow's file system of a URI that one of our drivers has accepted.

    pyarrow's own HDFS needs Hadoop's native library and a JVM in this process; hdfs-native's needs neither.

    Raises:
        Invalid: it is WebHDFS of a nameservice.
    """
    from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem  # noqa: PLC0415  # 60 ms, for who copies

    parts = urlsplit(uri)
    if parts.scheme == "file":
        return LocalFileSystem()
    if parts.scheme == "hdfs":
        from hdfs_native.fsspec import HdfsFileSystem  # noqa: PLC0415

        # fsspec would keep one for the life of the process, and with it a connection to a NameNode that may hang.
        return PyFileSystem(FSSpecHandler(HdfsFileSystem(parts.hostname, parts.port, skip_instance_cache=True)))
    if parts.port is None:
        raise Invalid(f"{uri!r} is WebHDFS of a nameservice, which no bulk copy can use: write hdfs:// instead.")
    from fsspec.implementations.webhdfs import WebHDFS  # noqa: PLC0415

    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return PyFileSystem(FSSpecHandler(WebHDFS(parts.hostname, parts.port, user=user, skip_instance_cache=True)))


@contextmanager
def _classified(path: str) -> Iterator[None]:
    """Whatever pyarrow, fsspec or a driver says: the file is not copied, and that is all that can be told for sure."""
    try:
        yield
    except Exception as error:
        line = str(error).partition("\n")[0]
        raise Unknown(f"{path} could not be copied ({type(error).__name__}: {line}).") from error
