"""Tree: a directory with all files below it. The store's own drivers list it, and ``pyarrow.fs`` copies contents.

pyarrow reaches HDFS through fsspec, whose listings silently leave out what could not be listed. A copy of such a
listing would look complete. So the drivers list names and sizes, and pyarrow only streams. A :class:`Pace` bounds how
many calls, or bytes, are begun in a second.
"""

import errno
import getpass
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from store.bounded import BoundedFiles
from store.clock import BOOT_CLOCK, Clock
from store.errors import Invalid, NoSpace, NotFound, Unknown
from store.files import Entry
from store.local import open_below
from store.traits import traits

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

READ_TIMEOUT_S = 20.0  # time for the head of each file
LIST_TIMEOUT_S = 20.0  # time for the list of one directory
LISTERS = 16  # directories that are listed at once: a checkpoint has several for each partition
MAX_FILES = 1_000_000  # most files of a tree: no checkpoint has more, and their names must fit into memory
SLOWEST = 1 << 20  # bytes a second below which reading a file is given up
CHUNK = 4 << 20  # number of bytes that are read and written at once


class Tree:
    """One directory of a store, which the caller closes; safe to use from several threads.

    ``before`` is called before each list and each read file; it may wait. Any failure raises
    :class:`store.errors.Unknown`, and a part of a file that was written may exist.
    """

    def __init__(self, files: BoundedFiles, path: str = "", before: Callable[[], object] = bool) -> None:
        self.files = files
        self.path = path
        self._before = before

    @property
    def uri(self) -> str:
        """URI of the directory."""
        return self.files.at(self.path)

    @property
    def local(self) -> bool:
        """Whether it is on ``file://``, where Hadoop keeps check sums beside each file."""
        return traits(self.uri).local

    def listing(self, below: str = "") -> dict[str, int]:
        """Return the size of every file in bytes, by its path in this tree, or in the part of it that is ``below``."""
        # Invalid: there are too many files. NotFound: there is no such directory, or one below it disappeared.
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

    def read_into(self, path: str, size: int, target: "Tree", name: str, told: Callable[[bytes], object]) -> int:
        """Copy the content of one file to another tree, and return its bytes."""
        # It has no time limit: call it within a deadline.
        # `size` is in the listing; of a longer file the copy ends soon after that. An existing file is replaced. `told`
        # gets each piece.
        copied = 0
        with (
            _classified(path),  # the outermost, so that it also sees errors of closing the others
            self._opened(path) as source,
            target._arrow.open_output_stream(f"{target._at}/{name}") as sink,  # noqa: SLF001 - our own class
        ):
            while copied <= size and (chunk := source.read(CHUNK)):
                sink.write(chunk)
                copied += len(chunk)
                told(bytes(chunk))
        return copied

    def store(self, path: str, data: bytes) -> None:
        """Write a small file; it has no time limit, so call it within a deadline."""
        with _classified(path), self._arrow.open_output_stream(f"{self._at}/{path}") as sink:
            sink.write(data)

    def head(self, path: str, most: int) -> bytes:
        """Return a file's first bytes, or all of it if it is shorter; ``NotFound`` if there is none."""
        (found,) = self.heads({path: most})
        if found is None:
            raise NotFound(f"{path} does not exist.")
        return found

    def heads(self, wanted: Mapping[str, int]) -> list[bytes | None]:
        """Return the first bytes of small files, so many of each, read in one call; None of one that is not there."""

        def read(path: str, most: int) -> bytes | None:
            with suppress(NotFound), _classified(path), self._opened(path) as source:
                return bytes(source.read(most))
            return None

        for _ in wanted:
            self._before()
        timeout = READ_TIMEOUT_S * len(wanted)
        return self.files.call("bulk_read", lambda _: [read(path, most) for path, most in wanted.items()], timeout)

    def read_through(self, path: str, size: int, told: Callable[[bytes], object]) -> None:
        """Read a whole file, in pieces; a store that keeps check sums, as HDFS does, compares them."""
        # The time limit follows from its size in the listing. A file that is gone raises NotFound.

        def read(_: object) -> None:
            seen = 0
            with _classified(path), self._opened(path) as source:
                while seen <= size and (chunk := source.read(CHUNK)):
                    seen += len(chunk)
                    told(bytes(chunk))

        self._before()
        self.files.call("bulk_read", read, READ_TIMEOUT_S + size / SLOWEST)

    def _list(self, folder: str) -> list[Entry]:
        path = f"{self.path}/{folder}".strip("/")
        self._before()
        return self.files.call("bulk_list", lambda files: files.list(path), LIST_TIMEOUT_S)

    def _opened(self, path: str) -> Any:
        """Open a file for reading: on this host only a regular one, below directories that are none by a link."""
        if self.local:
            return open_below(os.fsencode(urlsplit(self.files.uri).path), f"{self.path}/{path}".lstrip("/"))
        return self._arrow.open_input_stream(f"{self._at}/{path}")

    @cached_property
    def _arrow(self) -> "FileSystem":
        return bulk_files(self.uri)

    @property
    def _at(self) -> str:
        return urlsplit(self.uri).path


class Pace:
    """Lets work begin one piece after the other, evenly; safe to use from several threads."""

    def __init__(self, rate: float, clock: Clock = BOOT_CLOCK) -> None:
        """Nothing has begun yet; ``rate`` is the number of calls, or of bytes, in a second."""
        self._clock = clock
        self._gap = 1 / rate
        self._lock = threading.Lock()
        self._next = float("-inf")

    def wait(self, amount: float = 1) -> None:
        """Wait until the next piece may begin: so many calls or bytes, which hold back those after it."""
        with self._lock:
            at = self._clock.now()
            begins = max(at, self._next)
            self._next = begins + amount * self._gap
        if begins > at:
            self._clock.sleep(begins - at)


def bulk_files(uri: str) -> "FileSystem":
    """Return pyarrow's file system for a URI that one of our drivers has accepted, and :func:`check_bulk`."""
    # The HDFS of pyarrow itself needs Hadoop's native library and a JVM in this process; hdfs-native needs neither.
    check_bulk(uri)
    from pyarrow import PythonFile  # noqa: PLC0415
    from pyarrow.fs import FSSpecHandler, LocalFileSystem, PyFileSystem  # noqa: PLC0415  # takes 60 ms, only for a copy

    parts = urlsplit(uri)
    if traits(uri).local:
        return LocalFileSystem()
    if traits(uri).address == "rpc-address":
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
    """Raise ``Invalid`` if a driver has accepted a URI, and whole directories cannot be copied from or to it."""
    encrypted, address = traits(uri).encrypted, traits(uri).address
    if encrypted or (address == "http-address" and urlsplit(uri).port is None):
        kind = "encrypted WebHDFS" if encrypted else "WebHDFS of a nameservice"
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
    except Invalid as error:
        raise Invalid(f"{path} is a link, a pipe or a device: a checkpoint has regular files only.") from error
    except Exception as error:
        line = str(error).partition("\n")[0]
        said = f"{path} could not be read or copied ({type(error).__name__}: {line})"
        full = (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)) or "QuotaExceeded" in line
        raise Unknown(f"{NoSpace(said)}." if full else f"{said}.") from error
