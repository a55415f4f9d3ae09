"""Operations on ZooKeeper as plain values: made anywhere, sent by ``ZooKeeper.call`` or ``submit``."""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

import msgspec
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import EventType

from store.errors import Invalid
from store.zookeeper.address import ancestors, check_path

T = TypeVar("T")

MAX_REQUEST_BYTES = 1_000_000
"""Longest path and data together, in bytes. A longer request is never sent: the server would cut the connection."""
# Its jute.maxbuffer is 1,048,575 bytes by default, headers included; the cut would suspend all users of this client.


class Stat(msgspec.Struct, frozen=True):
    """The state of a node."""

    version: int  # how often its data changed; the compare of `Set` and `Delete`
    ephemeral_owner: int  # the id of the session that it ends with; 0 if it is not ephemeral
    # the transaction that created it; two nodes of one path that differ in this are not the same node
    created_zxid: int
    data_length: int  # in bytes
    modified_ms: int  # the server's wall clock, in milliseconds since 1970; for display only


class Kind(Enum):
    """The change that a watch saw."""

    CREATED = "created"
    DELETED = "deleted"
    CHANGED = "changed"
    CHILDREN = "children"
    LOST = "lost"  # the connection broke and the watch with it: anything may have happened, so read again


class Event(msgspec.Struct, frozen=True):
    """A watch went off; it was its only time."""

    kind: Kind  # what happened
    path: str  # of the node, as it was given to the operation that set the watch


Watcher = Callable[[Event], None]

_KINDS = {
    EventType.CREATED: Kind.CREATED,
    EventType.DELETED: Kind.DELETED,
    EventType.CHANGED: Kind.CHANGED,
    EventType.CHILD: Kind.CHILDREN,
}


class _Watch(msgspec.Struct, frozen=True):
    """A watcher as kazoo calls it."""

    # Kazoo keeps watches in sets, where equal ones are one: repeated reads with the same function add no watch. New
    # lambdas for every read would pile up until the node changes or the connection breaks.

    path: str
    watcher: Watcher

    def __call__(self, event: Any) -> None:
        # Anything else is EventType.NONE: when the connection is lost, kazoo calls and forgets every watch.
        self.watcher(Event(_KINDS.get(event.type, Kind.LOST), self.path))


class Wire(msgspec.Struct, frozen=True):
    """The means by which an operation sends itself."""

    kazoo: Any  # the client; only its `*_async` calls
    chroot: str  # to be put before every path
    wanted: Callable[[], bool]  # whether the caller still waits; a second request must not be sent after the deadline

    def full(self, path: str) -> str:
        """Return the path as the server knows it."""
        return self.chroot + path if path != "/" else self.chroot or "/"


class _Abstract(msgspec.StructMeta, ABCMeta):
    """The metaclass of structs with abstract methods."""


class Operation(msgspec.Struct, Generic[T], frozen=True, metaclass=_Abstract):
    """A request to ZooKeeper."""

    path: str  # absolute, below the chroot
    writes: ClassVar[bool] = False

    def __str__(self) -> str:
        return f"{type(self).__name__} {self.path}"

    def check(self) -> None:
        """Raise Invalid for a bad path or version, or too much data."""
        check_path(self.path)
        _check_size(self.path, b"")

    @abstractmethod
    def send(self, wire: Wire) -> Any:
        """Send it without blocking, and return kazoo's pending result."""

    @abstractmethod
    def answer(self, raw: Any) -> T:
        """Turn kazoo's answer into ours."""


class Get(Operation[tuple[bytes, Stat]], frozen=True):
    """Read a node's data; ``NotFound`` if there is none. The watch is set either way."""

    # With a watch that is one request if the node is there, and three if it is not.

    watch: Watcher | None = None

    def send(self, wire: Wire) -> Any:
        """See :meth:`Operation.send`."""
        full = wire.full(self.path)
        if self.watch is None:
            return wire.kazoo.get_async(full)
        watch = _watch(self.path, self.watch)
        final = wire.kazoo.handler.async_result()

        def go_on(result: Any) -> None:
            if not isinstance(result.exception, NoNodeError) or not wire.wanted():
                _relay(result, final)
                return
            # ZooKeeper's own get sets no watch on a missing node, so a caller would never hear of its creation. Both
            # requests travel together and are answered in order: the watch is set before the data is read.
            wire.kazoo.exists_async(full, watch=watch)
            wire.kazoo.get_async(full).rawlink(lambda last: _relay(last, final))

        wire.kazoo.get_async(full, watch=watch).rawlink(go_on)
        return final

    def answer(self, raw: Any) -> tuple[bytes, Stat]:
        """Return data and stat."""
        data, stat = raw
        return data or b"", _stat(stat)  # a node made without data has null there


class Exists(Operation[Stat | None], frozen=True):
    """Ask for a node's stat; None if there is no such node. The watch is set either way."""

    watch: Watcher | None = None

    def send(self, wire: Wire) -> Any:
        """See :meth:`Operation.send`."""
        return wire.kazoo.exists_async(wire.full(self.path), watch=_watch(self.path, self.watch))

    def answer(self, raw: Any) -> Stat | None:
        """Return the stat, or None."""
        return None if raw is None else _stat(raw)


class Children(Operation[list[str]], frozen=True):
    """List the names of a node's children, sorted; ``NotFound``, and no watch, if there is no such node."""

    watch: Watcher | None = None

    def send(self, wire: Wire) -> Any:
        """See :meth:`Operation.send`."""
        return wire.kazoo.get_children_async(wire.full(self.path), watch=_watch(self.path, self.watch))

    def answer(self, raw: Any) -> list[str]:
        """Return the names."""
        return sorted(raw)


class Create(Operation[Stat], frozen=True):
    """Create a node.

    The answer's ``ephemeral_owner`` is the session that it was created in. Refused with ``AlreadyExists``; with
    ``NotFound`` if its parent is missing, unless ``make_parents``, which creates the missing ones (never ephemeral).
    """

    data: bytes = b""
    ephemeral: bool = False
    make_parents: bool = False
    writes: ClassVar[bool] = True

    def check(self) -> None:
        """See :meth:`Operation.check`."""
        check_path(self.path)
        _check_size(self.path, self.data)

    def send(self, wire: Wire) -> Any:
        """See :meth:`Operation.send`."""
        first = self._create(wire)
        if not self.make_parents:
            return first
        final = wire.kazoo.handler.async_result()

        def go_on(result: Any) -> None:
            if not isinstance(result.exception, NoNodeError) or not wire.wanted():
                _relay(result, final)
                return
            # The server executes one client's requests in order, so there is no need to wait between them. An error
            # with a parent shows in the last request: the parent is there already (good), or NotFound (the truth).
            for parent in ancestors(wire.full(self.path)):
                wire.kazoo.create_async(parent, b"")
            self._create(wire).rawlink(lambda last: _relay(last, final))

        first.rawlink(go_on)
        return final

    def _create(self, wire: Wire) -> Any:
        full = wire.full(self.path)
        return wire.kazoo.create_async(full, self.data, ephemeral=self.ephemeral, include_data=True)

    def answer(self, raw: Any) -> Stat:
        """Return the new node's stat."""
        return _stat(raw[1])


class Set(Operation[Stat], frozen=True):
    """Replace a node's data; ``Conflict`` unless it has this version (-1: any), ``NotFound`` if there is no node."""

    data: bytes
    version: int
    writes: ClassVar[bool] = True

    def check(self) -> None:
        """See :meth:`Operation.check`."""
        check_path(self.path)
        _check_size(self.path, self.data)
        _check_version(self.version)

    def send(self, wire: Wire) -> Any:
        """See :meth:`Operation.send`."""
        return wire.kazoo.set_async(wire.full(self.path), self.data, self.version)

    def answer(self, raw: Any) -> Stat:
        """Return the node's new stat."""
        return _stat(raw)


class Delete(Operation[None], frozen=True):
    """Delete a node; ``Conflict`` unless it has this version (-1: any), ``NotEmpty`` if it has children."""

    version: int
    writes: ClassVar[bool] = True

    def check(self) -> None:
        """See :meth:`Operation.check`."""
        check_path(self.path)
        _check_size(self.path, b"")
        _check_version(self.version)

    def send(self, wire: Wire) -> Any:
        """See :meth:`Operation.send`."""
        return wire.kazoo.delete_async(wire.full(self.path), self.version)

    def answer(self, raw: Any) -> None:  # noqa: ARG002  # its success says it all
        """Return nothing."""
        return


class Sync(Operation[None], frozen=True):
    """Have the server catch up with the ensemble's leader before it answers later requests."""

    # It needs no quorum, but it does need the leader: a server that is cut off cannot answer it.

    def send(self, wire: Wire) -> Any:
        """See :meth:`Operation.send`."""
        return wire.kazoo.sync_async(wire.full(self.path))

    def answer(self, raw: Any) -> None:  # noqa: ARG002  # its success says it all
        """Return nothing."""
        return


def _watch(path: str, watcher: Watcher | None) -> _Watch | None:
    return None if watcher is None else _Watch(path, watcher)


def _stat(stat: Any) -> Stat:
    return Stat(stat.version, stat.ephemeralOwner, stat.czxid, stat.dataLength, stat.mtime)


def _relay(source: Any, target: Any) -> None:
    if source.exception is not None:
        target.set_exception(source.exception)
    else:
        target.set(source.value)


def _check_size(path: str, data: bytes) -> None:
    if not isinstance(data, bytes):
        raise Invalid(f"The data for {path} must be bytes, not {type(data).__name__}.")
    size = len(path.encode()) + len(data)
    if size > MAX_REQUEST_BYTES:
        raise Invalid(f"Path and data are {size:,} bytes long: ZooKeeper takes at most {MAX_REQUEST_BYTES:,} of ours.")


def _check_version(version: int) -> None:
    if not -1 <= version < 2**31:
        raise Invalid(f"{version!r} is not a version: give the one of the node's stat, or -1 for any.")
