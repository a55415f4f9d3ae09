"""Results: how what was run has ended. Stored once, dirty; clean when all that it left has been cleaned up.

A leader that crashes in between leaves a dirty result, and the next one knows what is still to be cleaned up.
"""

import re
import threading
from dataclasses import dataclass

import msgspec

from leader.information import FORMAT
from leader.names import RESULTS, SEQUENCE, check_word
from leader.own import LOOKS, OwnDirectory
from leader.status import Status
from store.errors import AlreadyExists, Invalid, NotFound

ATTEMPTS = 4
"""Tries to read a result that somebody else marks at the same time."""

_ENTRY = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]*)=(dirty|clean){SEQUENCE}")


@dataclass(frozen=True, slots=True)
class Result:
    """How something has ended.

    Attributes:
        status: one that ends a job for good.
        data: whatever its program has to say about it.
        dirty: whether something of it is still to be cleaned up.
    """

    status: Status
    data: bytes = b""
    dirty: bool = True


class _Wire(msgspec.Struct, frozen=True):
    format: int
    status: str
    data: bytes


_decoder = msgspec.json.Decoder(_Wire)


def encode(result: Result) -> bytes:
    """Write a result; whether it is dirty is in its name."""
    return msgspec.json.encode(_Wire(FORMAT, result.status.value, result.data))


def decode(data: bytes, *, dirty: bool) -> Result:
    """Read a result.

    Raises:
        Invalid: it is none in a format that is known here.
    """
    try:
        wire = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"That is no result: {error}") from error
    if wire.format != FORMAT or wire.status not in Status.__members__ or not Status(wire.status).globally_terminal:
        raise Invalid(f"That is no result that is known here: format {wire.format}, status {wire.status!r}.")
    return Result(Status(wire.status), wire.data, dirty)


@dataclass(frozen=True, slots=True, order=True)
class _Entry:
    """One entry of a result; of several, the greatest counts: clean before dirty."""

    clean: bool
    sequence: int
    path: str


class Results:
    """The leader's hand on its job's results; safe to use from several threads."""

    def __init__(self, own: OwnDirectory) -> None:
        """Touch nothing yet; ``own`` is the leader's directory."""
        self._own = own
        self._lock = threading.Lock()

    def put(self, name: str, status: Status, data: bytes = b"") -> None:
        """Store a result, dirty.

        Args:
            name: of what has ended: the job itself, a run of it, a query.
            status: one that ends a job for good.
            data: whatever is to be said about it, somewhat less than :data:`leader.own.MAX_BYTES`.

        Raises:
            AlreadyExists: there is one, dirty or clean. After an outcome that stayed unknown that may be this one.
            Fenced: another leader has taken over.
            Invalid: it is too long, or that status does not end a job for good; nothing was stored.
            InvalidName: that is no name.
            StoreError: it was refused, or it stayed unknown whether it was stored.
        """
        target = f"{RESULTS}/{check_word(name, 'a result')}=dirty"
        if not status.globally_terminal:
            raise Invalid(f"{status.value} is no result: what has ended is FINISHED, CANCELED or FAILED.")
        with self._lock:
            if self._find(name) is not None:
                raise AlreadyExists(f"There is a result of {name!r} of job {self._own.job!r} already.")
            self._own.place(encode(Result(status, data)), target)

    def load(self, name: str) -> Result | None:
        """Return a result; None if there is none.

        Raises:
            Fenced: another leader has taken over.
            Invalid: it cannot be read: it is damaged, or of a newer version.
            InvalidName: that is no name.
            StoreError: the store did not answer.
        """
        check_word(name, "a result")
        for attempt in range(1, ATTEMPTS + 1):
            entry = self._find(name)
            if entry is None:
                return None
            try:
                return decode(self._own.read(entry.path), dirty=not entry.clean)
            except NotFound:  # it was marked meanwhile
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def dirty(self) -> list[str]:
        """Return the names of the results whose leavings are still to be cleaned up, sorted.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        return sorted(name for name, entry in self._entries().items() if not entry.clean)

    def clean(self, name: str) -> None:
        """Mark a result clean; to do that twice is to do it once.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: that is no name.
            NotFound: there is no such result.
            StoreError: it was refused, or it stayed unknown whether it was marked.
        """
        check_word(name, "a result")
        with self._lock:
            entry = self._find(name)
            if entry is None:
                raise NotFound(f"There is no result of {name!r} of job {self._own.job!r}.")
            # A mark that is only seen is made once more: a NameNode may forget what it shows.
            self._own.settle(entry.path, f"{RESULTS}/{name}=clean", entry.sequence + 1 if entry.clean else 1)

    def _find(self, name: str) -> _Entry | None:
        return next(filter(None, (self._entries().get(name) for _ in range(LOOKS))), None)

    def _entries(self) -> dict[str, _Entry]:
        found: dict[str, _Entry] = {}
        for each in self._own.list(RESULTS):
            if match := _ENTRY.fullmatch(each.name):
                entry = _Entry(match[2] == "clean", int(match[3] or 1), f"{RESULTS}/{each.name}")
                found[match[1]] = max(entry, found.get(match[1], entry))
        return found
