"""Tree: a directory with all files below it. The store's own drivers list it, and ``pyarrow.fs`` copies contents.

pyarrow reaches HDFS through fsspec, whose listings silently leave out what could not be listed. A copy of such a
listing would look complete. So the drivers list names and sizes, and pyarrow only streams.
"""

import getpass
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from store.bounded import BoundedFiles
from store.errors import Invalid, NotFound, Unknown
from store.files import Entry

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

READ_TIMEOUT_S = 20.0
"""Time for the head of each file."""

LIST_TIMEOUT_S = 20.0
"""Time for the list of one directory."""

LISTERS = 16
"""Directories that are listed at once: a checkpoint has several for each partition."""

MAX_FILES = 1_000_000
"""Most files of a tree: no checkpoint has more, and their names must fit into memory."""

SLOWEST = 1 << 20
"""Bytes a second below which reading a file is given up."""

CHUNK = 4 << 20
"""Number of bytes that are read and written at once."""


class Tree:
    """One directory; safe to use from several threads."""

    def __init__(self, files: BoundedFiles, path: str = "", before: Callable[[], object] = bool) -> None:
        """Connect to nothing yet.

        Args:
            files: the store; whoever opened it closes it.
            path: of the directory, below the root of the store.
            before: called before each list, and before each file is read; it may wait.
        """
        self.files = files
        self.path = path
        self._before = before

    @property
    def uri(self) -> str:
        """URI of the directory."""
        return self.files.at(self.path)

    def listing(self, below: str = "") -> dict[str, int]:
        """Return the size of every file in bytes, by its path in this tree.

        Args:
            below: path of the part to list; default: the whole tree.

        Raises:
            Invalid: there are too many files.
            NotFound: there is no such directory, or one below it disappeared meanwhile.
            StoreError: the store did not answer.
        """
        return {path: entry.size for path, entry in self.entries(below).items()}

    def entries(self, below: str = "") -> dict[str, Entry]:
        """Return every file with its size and time, by its path in this tree; otherwise as :meth:`listing`."""
        return {path: entry for path, entry in self.names(below).items() if not entry.is_directory}

    def names(self, below: str = "") -> dict[str, Entry]:
        """Return every file and every directory, by its path in this tree; otherwise as :meth:`listing`."""
        found: dict[str, Entry] = {}
        folders = [below]
        with ThreadPoolExecutor(LISTERS, thread_name_prefix="ha-tree") as crew:
            while folders:
                further = []
                for folder, entries in zip(folders, crew.map(self._list, folders), strict=True):
                    for entry in entries:
                        path = f"{folder}/{entry.name}".lstrip("/")
                        found[path] = entry
                        if entry.is_directory:
                            further.append(path)
                    if len(found) > MAX_FILES:
                        raise Invalid(f"{self.uri} has more than {MAX_FILES:,} files: it is not a checkpoint.")
                folders = further
        return found

    def read_into(self, path: str, target: "Tree", name: str, told: Callable[[int], None]) -> int:
        """Copy the content of one file; it has no time limit, so call it within a deadline.

        Args:
            path: of the file in this tree.
            target: the other tree.
            name: of the file there; an existing one is replaced.
            told: called with the number of bytes in each step.

        Returns:
            Number of bytes of the file.

        Raises:
            Unknown: the file could not be copied, for whatever reason; a part of it may exist.
        """
        copied = 0
        with (
            _classified(path),  # the outermost, so that it also sees errors of closing the others
            self._arrow.open_input_stream(f"{self._at}/{path}") as source,
            target._arrow.open_output_stream(f"{target._at}/{name}") as sink,  # noqa: SLF001 - our own class
        ):
            while chunk := source.read(CHUNK):
                sink.write(chunk)
                copied += len(chunk)
                told(len(chunk))
        return copied

    def store(self, path: str, data: bytes) -> None:
        """Write a small file; it has no time limit, so call it within a deadline.

        Raises:
            Unknown: it could not be written, for whatever reason; a part of it may exist.
        """
        with _classified(path), self._arrow.open_output_stream(f"{self._at}/{path}") as sink:
            sink.write(data)

    def head(self, path: str, most: int) -> bytes:
        """Return a file's first bytes, or all of it if it is shorter.

        Raises:
            NotFound: there is no such file.
            Unknown: it could not be read, for whatever reason.
        """
        (found,) = self.heads({path: most})
        if found is None:
            raise NotFound(f"{path} does not exist.")
        return found

    def heads(self, wanted: Mapping[str, int]) -> list[bytes | None]:
        """Return the first bytes of small files, read in one call, one after the other; None of one that is not there.

        Args:
            wanted: how many bytes of each at most, by path.

        Raises:
            Unknown: one could not be read, for whatever reason.
        """

        def read(path: str, most: int) -> bytes | None:
            with suppress(NotFound), _classified(path), self._arrow.open_input_stream(f"{self._at}/{path}") as source:
                return bytes(source.read(most))
            return None

        for _ in wanted:
            self._before()
        timeout = READ_TIMEOUT_S * len(wanted)
        return self.files.call("bulk_read", lambda _: [read(path, most) for path, most in wanted.items()], timeout)

    def tail(self, path: str, most: int) -> bytes:
        """Return a file's last bytes, or all of it if it is shorter.

        Raises:
            NotFound: there is no such file.
            Unknown: it could not be read, for whatever reason.
        """

        def read(_: object) -> bytes:
            with _classified(path), self._arrow.open_input_file(f"{self._at}/{path}") as source:
                size = source.size()
                source.seek(max(0, size - most))
                return bytes(source.read(min(most, size)))

        self._before()
        return self.files.call("bulk_read", read, READ_TIMEOUT_S)

    def read_through(self, path: str, size: int, told: Callable[[bytes], object]) -> None:
        """Read a whole file; a store that keeps check sums, as HDFS does, compares them.

        Args:
            path: of the file.
            size: its length in the listing; a longer file has more time.
            told: called with each piece.

        Raises:
            NotFound: there is no such file.
            Unknown: it could not be read, for whatever reason.
        """

        def read(_: object) -> None:
            with _classified(path), self._arrow.open_input_stream(f"{self._at}/{path}") as source:
                while chunk := source.read(CHUNK):
                    told(bytes(chunk))

        self._before()
        self.files.call("bulk_read", read, READ_TIMEOUT_S + size / SLOWEST)

    def _list(self, folder: str) -> list[Entry]:
        path = f"{self.path}/{folder}".strip("/")
        self._before()
        return self.files.call("bulk_list", lambda files: files.list(path), LIST_TIMEOUT_S)

    @cached_property
    def _arrow(self) -> "FileSystem":
        return bulk_files(self.uri)

    @property
    def _at(self) -> str:
        return urlsplit(self.uri).path


def bulk_files(uri: str) -> "FileSystem":
    """Return pyarrow's file system for a URI that one of our drivers has accepted.

    The HDFS of pyarrow itself needs Hadoop's native library and a JVM in this process; hdfs-native needs neither.

    Raises:
        Invalid: see :func:`check_bulk`.
    """
    check_bulk(uri)
    from pyarrow import PythonFile  # noqa: PLC0415
    from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem  # noqa: PLC0415  # takes 60 ms, only for a copy

    parts = urlsplit(uri)
    if parts.scheme == "file":
        return LocalFileSystem()
    if parts.scheme == "hdfs":
        from hdfs_native.fsspec import HdfsFileSystem  # noqa: PLC0415

        class Handler(FSSpecHandler):  # type: ignore[misc]  # pyarrow has no types
            """Writes bytes, because hdfs-native takes pyarrow's buffers byte by byte, at 4 MB/s."""

            def open_output_stream(self, path: str, metadata: object) -> PythonFile:
                del metadata
                return PythonFile(_Sink(self.fs.open(path, mode="wb")), mode="w")

        # fsspec would keep it for the life of the process, with a connection to a NameNode that may hang.
        return PyFileSystem(Handler(HdfsFileSystem(parts.hostname, parts.port, skip_instance_cache=True)))
    from fsspec.implementations.webhdfs import WebHDFS  # noqa: PLC0415

    user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    return PyFileSystem(FSSpecHandler(WebHDFS(parts.hostname, parts.port, user=user, skip_instance_cache=True)))


def check_bulk(uri: str) -> None:
    """Check that whole directories can be copied from or to a URI that one of our drivers has accepted.

    Raises:
        Invalid: it is WebHDFS of a nameservice, or encrypted.
    """
    parts = urlsplit(uri)
    if parts.scheme == "swebhdfs" or (parts.scheme == "webhdfs" and parts.port is None):
        kind = "encrypted WebHDFS" if parts.scheme == "swebhdfs" else "WebHDFS of a nameservice"
        raise Invalid(f"{uri!r} is {kind}, which a bulk copy cannot use: write hdfs:// instead.")


class _Sink:
    """A file of hdfs-native to which pyarrow writes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.closed = False

    def write(self, data: Any) -> int:
        self._file.write(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Do nothing: closing completes the file."""

    def close(self) -> None:
        if not self.closed:
            self._file.close()
            self.closed = True


@contextmanager
def _classified(path: str) -> Iterator[None]:
    """Turn each other error of pyarrow, fsspec or a driver into ``Unknown``: only that it failed is certain."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist.") from error
    except Exception as error:
        line = str(error).partition("\n")[0]
        raise Unknown(f"{path} could not be read or copied ({type(error).__name__}: {line}).") from error
