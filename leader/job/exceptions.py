"""Exceptions: the newest failures of a job, whoever led it. Each is one file, moved into its name behind the fence.

    exceptions/<number>-<eight hex digits>[~<sequence>]

The number is one higher than the newest one's, so it says the order of the failures as their writers saw it. Two
writers of one leadership, the sidecar and its driver, may take the same number: the digits keep their files apart.
"""

import re
import socket
import uuid
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from leader.job.fenced_directory import FencedDirectory
from leader.layout.information import FORMAT
from leader.layout.names import EXCEPTIONS, EXCEPTIONS_RETAINED, SEQUENCE
from store.errors import NotFound, StoreError
from store.files import Entry

MESSAGE_BYTES = 1_000
TRACE_BYTES = 4_000
"""A longer trace loses its middle: the error stands at one end, and its root cause at the other."""

DUMP_BYTES = 64_000
"""Of the thread dumps of a program that did not answer."""

UNSAID = "The failure came without an exception."

_CUT = "\n[...]\n"
_ENTRY = re.compile(rf"([1-9][0-9]{{0,15}})-([0-9a-f]{{8}}){SEQUENCE}")


class JobException(msgspec.Struct, frozen=True, kw_only=True):
    """One failure of a job.

    Attributes:
        kind: class of the exception; or in one word how a program has ended, ``exit-3`` for example.
        message: its text.
        query: of which query; empty if it is no query's.
        trace: stack trace.
        dump: thread dumps of a program that did not answer.
        epoch: of the leadership.
        host: name of the host.
        at_ms: milliseconds since 1970 by the file system's wall clock; for display only.
    """

    kind: str
    message: str
    query: str = ""
    trace: str = ""
    dump: str = ""
    epoch: int = 0
    host: str = ""
    at_ms: int = 0


class _Wire(JobException, frozen=True, kw_only=True):
    format: int


_decoder = msgspec.json.Decoder(_Wire)


class Exceptions:
    """The failures of a job; only its leader adds some.

    Every method raises :class:`leader.errors.Fenced` once another leader has taken over, and
    :class:`store.errors.StoreError` if the store refuses the call or its outcome stays unknown.
    """

    def __init__(self, directory: FencedDirectory, retained: int = EXCEPTIONS_RETAINED) -> None:
        """Connect to nothing yet.

        Args:
            directory: the leader directory.
            retained: number of failures that are kept; at least 1.
        """
        self._directory = directory
        self._retained = retained

    def add(self, kind: str, message: str, *, query: str = "", trace: str = "", dump: str = "") -> None:
        """Add a failure of now; it is visible at once. The oldest ones go; arguments as :class:`JobException` has them.

        Long texts are cut, so nothing is refused for its length.
        """
        failure = _Wire(
            format=FORMAT,
            kind=cut(kind, MESSAGE_BYTES),
            message=cut(message, MESSAGE_BYTES) or UNSAID,
            query=cut(query, MESSAGE_BYTES),
            trace=cut(trace, TRACE_BYTES),
            dump=cut(dump, DUMP_BYTES),
            epoch=self._directory.leader.epoch,
            host=socket.gethostname(),
        )
        kept = _numbered(self._directory.list(EXCEPTIONS))
        number = kept[-1][0] + 1 if kept else 1
        self._directory.put(msgspec.json.encode(failure), f"{EXCEPTIONS}/{number}-{uuid.uuid4().hex[:8]}")
        with suppress(StoreError):  # the next one deletes what is too old by then
            for _, name, _ in kept[: max(0, len(kept) + 1 - self._retained)]:
                self._directory.delete(f"{EXCEPTIONS}/{name}")

    def list(self) -> list[JobException]:
        """Return the failures that are kept, oldest first; without those that this version cannot read."""
        found = []
        for _, name, at_ms in _numbered(self._directory.list(EXCEPTIONS))[-self._retained :]:
            with suppress(NotFound, msgspec.MsgspecError, UnicodeDecodeError):  # its leader has just deleted it
                wire = _decoder.decode(self._directory.read(f"{EXCEPTIONS}/{name}"))
                if wire.format == FORMAT:
                    known = {key: getattr(wire, key) for key in JobException.__struct_fields__}
                    found.append(JobException(**(known | {"at_ms": at_ms})))
        return found


def cut(text: str, most: int) -> str:
    """Return a text of at most that many bytes in UTF-8: the middle of a longer one is left out."""
    raw = text.encode(errors="replace")
    if len(raw) <= most:
        return raw.decode()
    half = (most - len(_CUT)) // 2
    return raw[:half].decode(errors="ignore") + _CUT + raw[-half:].decode(errors="ignore")


def _numbered(entries: Sequence[Entry]) -> list[tuple[int, str, int]]:
    """Return the numbers, names and times of the failures among the entries, oldest first."""
    found = ((entry, _ENTRY.fullmatch(entry.name)) for entry in entries if not entry.is_directory)
    return sorted((int(match[1]), entry.name, entry.modified_ms) for entry, match in found if match)
