"""What file-system calls cost the NameNode: its requests, counted where drivers are asked."""

from collections.abc import Callable, Mapping

from store.files import Entry, Files

Requests = Callable[[str, int], None]
"""Told the operation, one of :class:`store.files.Files`, and how many requests it sends to the NameNode."""

REQUESTS: Mapping[str, Mapping[str, int]] = {
    "hdfs": {"list": 1, "make_directory": 1, "make_root": 1, "rename": 1, "read": 1, "write": 4, "delete": 1},
    "webhdfs": {"list": 1, "make_directory": 2, "make_root": 1, "rename": 1, "read": 3, "write": 6, "delete": 1},
}
"""Of each operation, by scheme, as long as nothing goes wrong; a ``file://`` root has no NameNode.

``tests/store/test_counting.py`` compares them with what a NameNode itself has counted; those of ``webhdfs`` hold what
DataNodes ask it to read and write. Not counted: a list of more than 1,000 entries costs one more for each further
thousand, a file whose block is reported late is completed more than once, and a NameNode that is not the active one may
be asked in vain before.
"""


class CountedFiles:
    """A :class:`store.files.Files` that tells what each operation costs before it is done: a lost one costs as much."""

    def __init__(self, files: Files, requests: Mapping[str, int], told: Requests) -> None:
        """Stand before a driver.

        Args:
            files: the driver.
            requests: what each operation costs.
            told: called from any thread; it must not block.
        """
        self.uri = files.uri
        self._files = files
        self._requests = requests
        self._told = told

    def list(self, path: str) -> list[Entry]:
        """See :meth:`store.files.Files.list`."""
        self._tell("list")
        return self._files.list(path)

    def make_directory(self, path: str) -> None:
        """See :meth:`store.files.Files.make_directory`."""
        self._tell("make_directory")
        self._files.make_directory(path)

    def make_root(self) -> None:
        """See :meth:`store.files.Files.make_root`."""
        self._tell("make_root")
        self._files.make_root()

    def rename(self, source: str, destination: str) -> None:
        """See :meth:`store.files.Files.rename`."""
        self._tell("rename")
        self._files.rename(source, destination)

    def read(self, path: str, limit: int) -> bytes:
        """See :meth:`store.files.Files.read`."""
        self._tell("read")
        return self._files.read(path, limit)

    def write(self, path: str, data: bytes) -> None:
        """See :meth:`store.files.Files.write`."""
        self._tell("write")
        self._files.write(path, data)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """See :meth:`store.files.Files.delete`."""
        self._tell("delete")
        self._files.delete(path, recursive=recursive)

    def close(self) -> None:
        """Close the driver."""
        self._files.close()

    def _tell(self, operation: str) -> None:
        self._told(operation, self._requests[operation])
