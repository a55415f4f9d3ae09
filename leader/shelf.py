"""Small files by name, each with a version: a change is the next version, moved into its name.

A rename refuses a name that is there, so of two that replace version 3 one gets to be version 4. A removal is a
version, too: an empty directory. So versions only grow, and what is executed late is refused, or older than what
counts.
"""

import re
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from leader.errors import InvalidName
from leader.names import SEQUENCE, check_word
from leader.own import LOOKS, OwnDirectory
from store.errors import AlreadyExists, Conflict, NotFound, StoreError, Unknown

ATTEMPTS = 4
"""Tries to be the next version, or to read the present one, while somebody else makes new ones."""

MAX_VERSION = 10**18 - 1

_ENTRY = re.compile(rf"([A-Za-z0-9][A-Za-z0-9._-]*)=([1-9][0-9]{{0,17}}){SEQUENCE}")


@dataclass(frozen=True, slots=True)
class Kept:
    """A file that is kept.

    Attributes:
        version: 1 at first, one higher with each change.
        data: its content.
    """

    version: int
    data: bytes


@dataclass(frozen=True, slots=True, order=True)
class _Entry:
    """One entry of a name; of several, the greatest counts."""

    version: int
    sequence: int = 1
    removed: bool = False
    path: str = ""


_NONE: Final = _Entry(0, removed=True)


class Shelf:
    """The leader's hand on the files in one folder of its directory; safe to use from several threads."""

    def __init__(self, own: OwnDirectory, folder: str, what: str) -> None:
        """Touch nothing yet.

        Args:
            own: the leader's directory.
            folder: the folder in it.
            what: what is kept there, for messages.
        """
        self._own = own
        self._folder = folder
        self._what = what
        self._lock = threading.Lock()

    def versions(self) -> dict[str, int]:
        """Return what is there: version by name.

        Raises:
            Fenced: another leader has taken over.
            StoreError: the store did not answer.
        """
        return {name: newest.version for name, newest in self._newest().items() if not newest.removed}

    def load(self, name: str) -> Kept | None:
        """Return a file; None if there is none. One that cannot be read is an error, and nothing older is read for it.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: that is no name.
            StoreError: the store did not answer.
        """
        check_word(name, self._what)
        for _ in range(ATTEMPTS):
            newest = self._find(name)
            if newest.removed:
                return None
            with suppress(NotFound):  # it was replaced meanwhile
                return Kept(newest.version, self._own.read(newest.path))
        raise Unknown(f"{self._folder}/{name} of job {self._own.job!r} is listed, and cannot be read.")

    def put(self, name: str, data: bytes, expected: int | None = None) -> int:
        """Store the next version of a file, and return which that is.

        Args:
            name: the file's name.
            data: its content, at most :data:`leader.own.MAX_BYTES`.
            expected: the version that it is to replace, 0 if there is to be none; None replaces whatever is there.

        Raises:
            Conflict: another version is there; after an outcome that stayed unknown, perhaps this one. Load it.
            Fenced: another leader has taken over.
            Invalid: the content is too long.
            InvalidName: that is no name.
            StoreError: it was refused, or it stayed unknown whether it was stored.
        """
        with self._lock:
            return self._change(name, data, expected)

    def remove(self, name: str) -> None:
        """Remove a file; no error if there is none.

        Raises:
            Fenced: another leader has taken over.
            InvalidName: that is no name.
            StoreError: it was refused, or it stayed unknown whether it was removed.
        """
        with self._lock:
            if self._find(check_word(name, self._what)) is not _NONE:  # a removal that is only seen is made once more
                self._change(name, None, None)

    def _change(self, name: str, data: bytes | None, expected: int | None) -> int:
        base = f"{self._folder}/{check_word(name, self._what)}"
        for _ in range(ATTEMPTS):
            newest = self._find(name)
            if expected is not None and expected != (0 if newest.removed else newest.version):
                present = "there is none" if newest.removed else f"it is version {newest.version}"
                raise Conflict(f"{base} of job {self._own.job!r} is not version {expected}: {present}.")
            if newest.version >= MAX_VERSION:  # what comes after it could not be read back
                raise InvalidName(f"The versions of {base} end at {MAX_VERSION:,}: mend its name.")
            with suppress(AlreadyExists):  # somebody else has made that version
                self._own.place(data, f"{base}={newest.version + 1}")
                self._delete_older(name, newest.version + 1)
                return newest.version + 1
        raise Unknown(f"Somebody else changes {base} of job {self._own.job!r} all the time.")

    def _find(self, name: str) -> _Entry:
        for _ in range(LOOKS):
            if found := self._newest().get(name):
                return found
        return _NONE

    def _newest(self) -> dict[str, _Entry]:
        found: dict[str, _Entry] = {}
        for name, entry in self._entries():
            found[name] = max(entry, found.get(name, entry))
        return found

    def _entries(self) -> list[tuple[str, _Entry]]:
        found = []
        for entry in self._own.list(self._folder):
            if match := _ENTRY.fullmatch(entry.name):
                path = f"{self._folder}/{entry.name}"
                found.append((match[1], _Entry(int(match[2]), int(match[3] or 1), entry.is_directory, path)))
        return found

    def _delete_older(self, name: str, version: int) -> None:
        with suppress(StoreError):  # the newer one counts; the next change tries again
            for each, entry in self._entries():
                if each == name and entry.version < version:
                    self._own.delete(entry.path)
