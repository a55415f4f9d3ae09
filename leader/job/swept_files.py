"""SweptFiles: moves swept files from a checkpoint into a trash, each by one rename, and back.

    <trash>/<name>/swept=<query>/<escaped path>    a file of a query's checkpoint
    <trash>/<name>/importing=<query>                an unfinished copy
    <trash>/<name>/revived=<directory>             a leader directory that a fenced Spark brought back to life

The name in the trash says where it came from; nothing else is remembered. A checkpoint outside of jobs has its trash
beside it.
"""

import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from leader.errors import InvalidName
from leader.layout.names import SPARK, TRASH, escape, unescape
from store.errors import AlreadyExists, NotFound
from store.files import Entry

SWEPT = "swept="
IMPORTING = "importing="
REVIVED = "revived="


class Place(Protocol):
    """A directory whose files are swept: a leader directory is one."""

    def list(self, folder: str = "") -> Sequence[Entry]:
        """Return the entries of a folder; none if there is no such folder."""

    def make_folder(self, path: str) -> None:
        """Create a folder unless it exists."""

    def rename(self, source: str, target: str) -> None:
        """Rename an entry once; raises ``NotFound`` or ``AlreadyExists`` if that is so."""

    def delete(self, path: str) -> None:
        """Delete an entry with everything below it; no error if there is none."""


class SweptFiles:
    """The swept files of one job, or of one checkpoint."""

    def __init__(self, place: Place, checkpoints: str = SPARK, trash: str = TRASH) -> None:
        """``place`` contains checkpoints (empty path: it is them itself) and trash."""
        self._place, self._checkpoints, self._trash = place, checkpoints, trash

    def begin(self) -> str:
        """Make a new folder in the trash, and return its name."""
        name = uuid.uuid4().hex[:8]
        self._place.make_folder(self._trash)
        self._place.make_folder(f"{self._trash}/{name}")
        return name

    def move(self, name: str, query: str, paths: Iterable[str]) -> Iterable[str]:
        """Move files of a query's checkpoint, one by one, and yield those that were still there."""
        folder = f"{self._trash}/{name}/{SWEPT}{query}"
        self._place.make_folder(folder)
        for path in paths:
            with suppress(NotFound):  # Spark has deleted it meanwhile
                self._place.rename(self._at(query, path), f"{folder}/{escape(path)}")
                yield path

    def move_whole(self, name: str, source: str, target: str) -> None:
        """Move a directory; ``target`` is one of the names in the head of this file."""
        with suppress(NotFound):
            self._place.rename(source, f"{self._trash}/{name}/{target}")

    def newest(self) -> str | None:
        """Return the name of what was swept last; None if there is nothing."""
        found = [
            (entry.modified_ms, entry.name)
            for entry in self._place.list(self._trash)
            if entry.is_directory and swept_from(each.name for each in self._place.list(f"{self._trash}/{entry.name}"))
        ]
        return max(found)[1] if found else None

    def undo(self, name: str) -> tuple[int, list[str]]:
        """Put back what one sweep has moved; return how many entries, and the paths of those that stay in the trash."""
        # A path is where an entry came from if that place is taken or gone, and where it is if no sweep has moved it.
        back, taken = 0, []
        folder = f"{self._trash}/{name}"
        for entry in self._place.list(folder):
            place = f"{folder}/{entry.name}"
            if entry.name.startswith(SWEPT):
                query = entry.name.removeprefix(SWEPT)
                moves = [(f"{place}/{each.name}", self._home_in(query, each.name)) for each in self._place.list(place)]
            else:
                moves = [(place, _home_of(entry.name))]
            for source, target in moves:
                if not target:
                    taken.append(source)
                    continue
                try:
                    self._place.rename(source, target)
                    back += 1
                except (AlreadyExists, NotFound):  # of the second: its directory is gone
                    taken.append(target)
        if not taken:
            self._place.delete(folder)
        return back, taken

    def _home_in(self, query: str, name: str) -> str:
        """Return the path of a file in the trash, by its name there; empty if no sweep has given it that."""
        try:
            path = unescape(name)
        except InvalidName:
            return ""
        return "" if {"", ".", ".."} & set(path.split("/")) else self._at(query, path)

    def _at(self, query: str, path: str) -> str:
        return "/".join(filter(None, (self._checkpoints, query, path)))


def swept_from(names: Iterable[str]) -> list[str]:
    """Return where the contents of a folder of the trash came from; empty if no sweep has made it."""
    found = []
    for name in names:
        if name.startswith(SWEPT):
            found.append(f"{SPARK}/{name.removeprefix(SWEPT)}/...")
        elif name.startswith((IMPORTING, REVIVED)):
            found.append(_home_of(name))
    return sorted(found)


def _home_of(name: str) -> str:
    """Return the path of a whole directory in the trash, relative to the leader directory; empty if it is another's."""
    if name.startswith(REVIVED):
        return f"../{name.removeprefix(REVIVED)}"
    return f"importing/{name.removeprefix(IMPORTING)}" if name.startswith(IMPORTING) else ""
