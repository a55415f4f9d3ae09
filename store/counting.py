"""Counting: listeners hear of every call of every store of this process, and of its requests to the NameNode.

:mod:`store.pool` and :mod:`store.zookeeper.calls` report a call where it ends, and a driver's caller reports a request.
So a caller that opens a store need not think of it.
"""

import logging
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from store.files import Entry, Files
from store.outcome import Outcome

# Called with an operation of `Files`, and how many requests it sends to the NameNode.
Requests = Callable[[str, int], None]

_WEB = {"list": 1, "make_directory": 2, "make_root": 1, "rename": 1, "read": 3, "write": 6, "delete": 1}

REQUESTS: Mapping[str, Mapping[str, int]] = {
    "hdfs": {"list": 1, "make_directory": 1, "make_root": 1, "rename": 1, "read": 1, "write": 4, "delete": 1},
    "webhdfs": _WEB,
    "swebhdfs": _WEB,
}
"""Requests of each operation, by scheme, as long as nothing goes wrong; a ``file://`` root has no NameNode.

``tests/unit/store/test_counting.py`` compares them with what a NameNode itself has counted; those of ``webhdfs``
include what DataNodes ask it to read and write. Not counted: a list costs one more for each further 1,000 entries, a
file whose block is reported late is completed more than once, and a NameNode that is not active is asked in vain.
"""

_log = logging.getLogger(__name__)


class CallListener(Protocol):
    """Counts calls. Called from any thread; it must not block."""

    def call_ended(self, store: str, operation: str, outcome: Outcome[Any]) -> None:
        """Hear that a call of ``files`` or ``zookeeper`` has ended."""

    def requests_sent(self, operation: str, requests: int) -> None:
        """Hear that an operation is about to cost the NameNode that many requests."""


# By identity. Adding, removing and copying are atomic: no lock that a fork could leave held.
_listeners: dict[int, "weakref.ref[CallListener]"] = {}


def listen(listener: CallListener) -> None:
    """Report every call of the process to this listener, for as long as anything else refers to it."""
    key = id(listener)
    _listeners[key] = weakref.ref(listener, lambda _: _listeners.pop(key, None))


def call_ended(store: str, operation: str, outcome: Outcome[Any]) -> None:
    """Report a call's outcome to all listeners."""
    if _listeners:
        _tell(lambda listener: listener.call_ended(store, operation, outcome))


def requests_sent(operation: str, requests: int) -> None:
    """Report an operation's cost to all listeners."""
    if _listeners:
        _tell(lambda listener: listener.requests_sent(operation, requests))


def _tell(what: Callable[[CallListener], None]) -> None:
    for reference in list(_listeners.values()):
        listener = reference()
        if listener is None:
            continue
        try:
            what(listener)
        except Exception:  # noqa: BLE001  # a broken metric must not break the election
            _log.exception("A listener to store calls failed.")


class CountedFiles:
    """A :class:`store.files.Files` that tells what each operation costs before it is done: a lost one costs as much."""

    def __init__(self, files: Files, requests: Mapping[str, int], told: Requests | None = None) -> None:
        """Count a driver's operations; ``told`` hears their costs, from any thread, and must not block."""
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
        requests = self._requests[operation]
        requests_sent(operation, requests)
        if self._told is not None:
            self._told(operation, requests)
