"""VersionedFiles: small files by name, each with a version. A change is the next version, moved to its name.

A rename refuses a name that exists, so of two processes that replace version 3, one makes version 4. A removal is a
version, too: an empty directory. So versions only grow. A change that is executed late is refused, or is outdated.
"""

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from leader.errors import InvalidName
from leader.job.fenced_directory import MAX_BYTES, FencedDirectory
from leader.layout.names import GRAPH, SEQUENCE, check_word
from store.errors import AlreadyExists, Conflict, NotFound, StoreError, Unknown
from store.files import Entry

ATTEMPTS = 4  # tries to make the next version, or to read the present one, while other processes make new ones
MAX_VERSION = 10**18 - 1

_ENTRY = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]{{0,63}})=([1-9][0-9]{{0,17}}){SEQUENCE}")


@dataclass(frozen=True, slots=True)
class VersionedBlob:
    """One version of a file, with its content."""

    version: int  # 1 for the first content of a name, one higher with each change
    data: bytes  # the content
    # when it was stored, in milliseconds since 1970 by the store's wall clock; for display only
    at_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, order=True)
class NumberedEntry:
    """One entry of a name. A crash may leave several; the greatest counts."""

    rank: int  # number of the version, or of the state that the entry's name says
    sequence: int = 1  # how often the entry was written
    is_directory: bool = False  # whether it is a directory
    path: str = ""  # its path in the leader directory
    at_ms: int = field(default=0, compare=False)  # see `VersionedBlob`


def numbered(
    entries: Iterable[Entry], folder: str, pattern: re.Pattern[str], rank: Callable[[str], int] = int
) -> list[tuple[str, NumberedEntry]]:
    """Read the entries of a folder: those that match, with their names."""
    # The groups of the pattern are the name, the text that `rank` reads, and leader.layout.names.SEQUENCE.

    def read(entry: Entry, match: re.Match[str]) -> tuple[str, NumberedEntry]:
        path = f"{folder}/{entry.name}"
        sequence = int(match[3] or 1)
        return match[1], NumberedEntry(rank(match[2]), sequence, entry.is_directory, path, entry.modified_ms)

    found = ((entry, pattern.fullmatch(entry.name)) for entry in entries)
    return [read(entry, match) for entry, match in found if match is not None]


def newest(found: Iterable[tuple[str, NumberedEntry]]) -> dict[str, NumberedEntry]:
    """Return the greatest entry of each name."""
    greatest: dict[str, NumberedEntry] = {}
    for name, entry in found:
        greatest[name] = max(entry, greatest.get(name, entry))
    return greatest


_NONE: Final = NumberedEntry(0, is_directory=True)


class VersionedFiles:
    """The versioned files in one folder of the leader directory; safe to use from several threads.

    Every method also raises :class:`leader.errors.InvalidName` if the name cannot be stored.
    """

    def __init__(self, directory: FencedDirectory, folder: str, what: str, most: int = MAX_BYTES) -> None:
        """Connect to nothing yet. Messages call the files ``what``; ``most`` is their length in bytes."""
        self._most = most
        self._directory = directory
        self._folder = folder
        self._what = what
        self._lock = threading.Lock()

    def versions(self) -> dict[str, int]:
        """Return the version of each file, by name."""
        return {name: entry.rank for name, entry in newest(self._entries()).items() if not entry.is_directory}

    def load(self, name: str) -> VersionedBlob | None:
        """Return a file's newest version; None if there is none. One that is damaged is an error."""
        check_word(name, self._what)
        for _ in range(ATTEMPTS):
            present = self._find(name)
            if present.is_directory:
                return None
            with suppress(NotFound):  # it has just been replaced
                return VersionedBlob(present.rank, self._directory.read(present.path, self._most), present.at_ms)
        raise Unknown(f"{self._folder}/{name} of job {self._directory.job!r} is listed, but cannot be read.")

    def put(self, name: str, data: bytes, expected: int | None = None) -> int:
        """Store the next version of a file, and return its number.

        Args:
            name: of the file.
            data: content.
            expected: version to be replaced; 0 if there must be no file; None replaces any version.

        Raises:
            Conflict: the present version is another one. After an unknown outcome it may be yours: load it.
            Invalid: the content is too long.
        """
        with self._lock:
            return self._change(name, data, expected)

    def remove(self, name: str) -> None:
        """Remove a file; no error if there is none."""
        with self._lock:
            if self._find(check_word(name, self._what)) is not _NONE:  # an unacknowledged removal is made once more
                self._change(name, None, None)

    def delete(self, name: str) -> None:
        """Delete every version of a file, and leave no trace of its name for readers."""
        for each, entry in self._entries():
            if each == name:
                self._directory.delete(entry.path)

    def forget_removals(self, before_ms: int, most: int) -> None:
        """Delete what says that files were removed, if nothing can bring them back: at most so many names.

        ``before_ms`` is a time, by the store's clock, before the present leader began: what was sent before its claim
        finds no path any more.
        """
        entries = sorted(self._entries(), key=lambda each: each[1])
        present = newest(entries)
        gone = [name for name, entry in present.items() if entry.is_directory and entry.at_ms < before_ms][:most]
        for name, entry in entries:  # the removal last: until then it counts
            if name in gone:
                self._directory.delete(entry.path)

    def _change(self, name: str, data: bytes | None, expected: int | None) -> int:
        base = f"{self._folder}/{check_word(name, self._what)}"
        for _ in range(ATTEMPTS):
            present = self._find(name)
            if expected is not None and expected != (0 if present.is_directory else present.rank):
                says = "there is none" if present.is_directory else f"it is version {present.rank}"
                raise Conflict(f"{base} of job {self._directory.job!r} is not version {expected}: {says}.")
            if present.rank >= MAX_VERSION:  # a higher version could not be read back
                raise InvalidName(f"The versions of {base} end at {MAX_VERSION:,}: rename it by hand.")
            with suppress(AlreadyExists):  # another process has made that version
                self._directory.put(data, f"{base}={present.rank + 1}", self._most)
                self._delete_older(name, present.rank + 1)
                return present.rank + 1
        raise Unknown(f"Other processes keep changing {base} of job {self._directory.job!r}.")

    def _find(self, name: str) -> NumberedEntry:
        def pick(entries: Sequence[Entry]) -> NumberedEntry | None:
            return newest(numbered(entries, self._folder, _ENTRY)).get(name)

        return self._directory.look(self._folder, pick) or _NONE

    def _entries(self) -> list[tuple[str, NumberedEntry]]:
        return numbered(self._directory.list(self._folder), self._folder, _ENTRY)

    def _delete_older(self, name: str, version: int) -> None:
        with suppress(StoreError):  # the newer version counts; the next change deletes the older ones
            for each, entry in self._entries():
                if each == name and entry.rank < version:
                    self._directory.delete(entry.path)


class VersionedFile:
    """One versioned file; safe to use from several threads."""

    def __init__(self, files: VersionedFiles, name: str) -> None:
        self._files = files
        self._name = name

    def load(self) -> VersionedBlob | None:
        """Return the file's newest version; None if there is none. One that is damaged is an error."""
        return self._files.load(self._name)

    def put(self, data: bytes, expected: int = 0) -> int:
        """Store the next version in place of the expected one, and return its number.

        Args:
            data: content, at most :data:`leader.job.fenced_directory.MAX_BYTES`.
            expected: version that was loaded or put before; 0 if there must be no file.

        Raises:
            Conflict: the present version is another one. After an unknown outcome it may be yours: load it.
            Invalid: the content is too long.
        """
        return self._files.put(self._name, data, expected)

    def remove(self) -> None:
        """Remove the file; no error if there is none."""
        self._files.remove(self._name)


def graph_of(directory: FencedDirectory) -> VersionedFile:
    """Return the graph of a job: the one versioned file that describes what the job runs."""
    return VersionedFile(VersionedFiles(directory, GRAPH, "a graph"), GRAPH)
