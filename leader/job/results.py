"""Results: how a job or a part of it has ended. A result is stored once, as dirty. Cleaning up makes it clean.

A dirty result of a leader that crashed in between tells the next one that there is something to clean up.
"""

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from leader.job.fenced_directory import FencedDirectory
from leader.job.status import Status
from leader.job.versioned_files import NumberedEntry, newest, numbered
from leader.layout.information import FORMAT
from leader.layout.names import RESULTS, SEQUENCE, check_word
from store.errors import AlreadyExists, Invalid, NotFound
from store.files import Entry

ATTEMPTS = 4  # tries to read a result that another process marks at the same time
_ENTRY = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]*)=(dirty|clean){SEQUENCE}")
_RANK = {"dirty": 0, "clean": 1}


@dataclass(frozen=True, slots=True)
class Result:
    """How something has ended."""

    status: Status  # a state that ends a job for good
    data: bytes = b""  # the program's own words about the end
    dirty: bool = True  # whether leftovers still have to be cleaned up


class _Wire(msgspec.Struct, frozen=True):
    format: int
    status: str
    data: bytes


_decoder = msgspec.json.Decoder(_Wire)


def encode(result: Result) -> bytes:
    """Encode a result; the name of its entry says whether it is dirty."""
    return msgspec.json.encode(_Wire(FORMAT, result.status.value, result.data))


def decode(data: bytes, *, dirty: bool) -> Result:
    """Decode a result; Invalid if the data is none in a format that this version knows."""
    try:
        wire = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"The result cannot be read: {error}") from error
    if wire.format != FORMAT or wire.status not in Status.__members__ or not Status(wire.status).globally_terminal:
        raise Invalid(
            f"The result cannot be read: this version does not know format {wire.format}, status {wire.status!r}."
        )
    return Result(Status(wire.status), wire.data, dirty)


class Results:
    """The results of a job, for its leader; safe to use from several threads.

    Every method also raises :class:`leader.errors.InvalidName` if the name cannot be stored.
    """

    def __init__(self, directory: FencedDirectory) -> None:
        self._directory = directory
        self._lock = threading.Lock()

    def put(self, name: str, status: Status, data: bytes = b"") -> None:
        """Store a result, dirty.

        Args:
            name: of what has ended: the job itself, a run of it, a query.
            status: a state that ends a job for good.
            data: the program's own words; slightly shorter than :data:`leader.job.fenced_directory.MAX_BYTES`.

        Raises:
            AlreadyExists: there is a result, dirty or clean. After an unknown outcome it may be this one.
            Invalid: the data is too long, or the status does not end a job for good; nothing was stored.
        """
        target = f"{RESULTS}/{check_word(name, 'a result')}=dirty"
        if not status.globally_terminal:
            raise Invalid(f"{status.value} is not a result: give FINISHED, CANCELED or FAILED.")
        with self._lock:
            if self._find(name) is not None:
                raise AlreadyExists(f"Job {self._directory.job!r} has a result of {name!r} already.")
            self._directory.put(encode(Result(status, data)), target)

    def load(self, name: str) -> Result | None:
        """Return a result; None if there is none.

        Raises:
            Invalid: the result cannot be read: it is damaged, or a newer version has written it.
        """
        check_word(name, "a result")
        for attempt in range(1, ATTEMPTS + 1):
            entry = self._find(name)
            if entry is None:
                return None
            try:
                return decode(self._directory.read(entry.path), dirty=not entry.rank)
            except NotFound:  # another process has just marked it
                if attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def dirty(self) -> list[str]:
        """Return the names of all dirty results, sorted."""
        return sorted(name for name, entry in _newest(self._directory.list(RESULTS)).items() if not entry.rank)

    def clean(self, name: str) -> None:
        """Mark a result clean; idempotent.

        Raises:
            NotFound: there is no such result.
        """
        check_word(name, "a result")
        with self._lock:
            entry = self._find(name)
            if entry is None:
                raise NotFound(f"Job {self._directory.job!r} has no result of {name!r}.")
            # A mark that was never acknowledged is made once more, because a NameNode may forget a listed change.
            self._directory.commit(entry.path, f"{RESULTS}/{name}=clean", entry.sequence + 1 if entry.rank else 1)

    def _find(self, name: str) -> NumberedEntry | None:
        return self._directory.look(RESULTS, lambda entries: _newest(entries).get(name))


def _newest(entries: Sequence[Entry]) -> dict[str, NumberedEntry]:
    return newest(numbered(entries, RESULTS, _ENTRY, _RANK.__getitem__))
