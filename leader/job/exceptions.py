"""Exceptions: the newest failures of a job, of all leaders, behind the fence. Each is one file, moved into its name.

    exceptions/<number>-<eight hex digits>[~<sequence>]
    exceptions/<number>-<eight hex digits>=<packed>     a short one is the name of an empty folder

A file takes half a second in HDFS: too long for a leader that gives its lease back because of the failure. The number,
one higher than the newest one's, is the order of the failures as their writers saw it. Sidecar and driver of one
leadership may take the same number: the digits keep their files apart.
"""

import re
import socket
import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from leader.errors import Unreadable
from leader.job.fenced_directory import FencedDirectory
from leader.layout.information import FORMAT
from leader.layout.names import EXCEPTIONS, EXCEPTIONS_RETAINED, SEQUENCE
from leader.layout.packed_names import TEXT, pack, unpack
from store.errors import Invalid, NotFound, StoreError
from store.files import Entry

MESSAGE_BYTES = 1_000
TRACE_BYTES = 4_000  # a longer trace loses its middle: the error stands at one end, and its root cause at the other
DUMP_BYTES = 64_000  # of the thread dumps of a program that did not answer
UNSAID = "The failure came without an exception."

_CUT = "\n[...]\n"
_ENTRY = re.compile(rf"([1-9][0-9]{{0,15}})-[0-9a-f]{{8}}(?:=([A-Za-z0-9_-]+))?{SEQUENCE}")


class JobException(msgspec.Struct, frozen=True, kw_only=True):
    """One failure of a job."""

    kind: str  # class of the exception; or in one word how a program has ended, `exit-3` for example
    message: str  # its text
    query: str = ""  # the query that failed; empty if it is no query's failure
    trace: str = ""  # stack trace
    dump: str = ""  # thread dumps of a program that did not answer
    epoch: int = 0  # of the leadership
    host: str = ""  # name of the host
    at_ms: int = 0  # milliseconds since 1970 by the file system's wall clock; for display only


class _Wire(JobException, frozen=True, kw_only=True, omit_defaults=True):
    format: int


_decoder = msgspec.json.Decoder(_Wire)


class Exceptions:
    """The failures of a job; only its leader adds some."""

    def __init__(self, directory: FencedDirectory, retained: int = EXCEPTIONS_RETAINED) -> None:
        """Connect to nothing yet; ``retained`` failures are kept, at least 1."""
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
        number = kept[-1].number + 1 if kept else 1
        self._store(f"{EXCEPTIONS}/{number}-{uuid.uuid4().hex[:8]}", failure, first=not kept)
        with suppress(StoreError):  # the next one deletes what is too old by then
            for each in kept[: max(0, len(kept) + 1 - self._retained)]:
                self._directory.delete(f"{EXCEPTIONS}/{each.name}")

    def _store(self, path: str, failure: _Wire, *, first: bool) -> None:
        packed = pack(failure)
        if len(packed) > TEXT:
            self._directory.put(msgspec.json.encode(failure), path)
            return
        if first:
            self._directory.make_folder(EXCEPTIONS)
        self._directory.make_folder(f"{path}={packed}")

    def list(self) -> list[JobException]:
        """Return the failures that are kept, oldest first; without those that this version cannot read."""
        found = []
        for each in _numbered(self._directory.list(EXCEPTIONS))[-self._retained :]:
            # its leader has just deleted it, or somebody else has made it
            with suppress(NotFound, Invalid, Unreadable, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                wire = unpack(each.packed, _Wire) if each.packed else self._read(each.name)
                if wire.format == FORMAT:
                    known = {key: getattr(wire, key) for key in JobException.__struct_fields__}
                    found.append(JobException(**(known | {"at_ms": each.at_ms})))
        return found

    def _read(self, name: str) -> _Wire:
        return _decoder.decode(self._directory.read(f"{EXCEPTIONS}/{name}"))


def cut(text: str, most: int) -> str:
    """Return a text of at most that many bytes in UTF-8: the middle of a longer one is left out."""
    raw = text.encode(errors="replace")
    if len(raw) <= most:
        return raw.decode()
    half = (most - len(_CUT)) // 2
    return raw[:half].decode(errors="ignore") + _CUT + raw[-half:].decode(errors="ignore")


class _Kept(NamedTuple):
    number: int
    name: str
    at_ms: int
    packed: str  # the text in a folder's name; empty for a file


def _numbered(entries: Sequence[Entry]) -> list[_Kept]:
    found = ((entry, _ENTRY.fullmatch(entry.name)) for entry in entries)
    return sorted(
        _Kept(int(match[1]), entry.name, entry.modified_ms, match[2] or "")
        for entry, match in found
        if match and entry.is_directory == bool(match[2])
    )
