"""OutputFolder: an output's folder in the leader directory, and the renames that lead from there to its readers.

Also the room in the directories of readers: HDFS limits the entries of each, and each batch is one.
"""

import logging
import posixpath
import re
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from ha.leadership.fenced_rename import FencedRename
from ha.outputs import layout
from ha.outputs.record import FILES, Record
from ha.program.output_report import REPORTS
from leader.layout.packed_names import read
from store.errors import StoreError
from store.hadoop_errors import configuration


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """The folder of one output; everything in :mod:`ha.outputs.layout` is below it."""

    renames: FencedRename  # lead to the target
    home: str  # path of the folder, below the root of the renames
    name: str  # of the output, for messages

    @staticmethod
    def of(renames: FencedRename, name: str) -> "OutputFolder":
        """Return the folder of the output of that name, with the target to which these renames lead."""
        return OutputFolder(renames, f"{renames.inside}/{layout.home(name, renames.outside)}", name)

    def at(self, *parts: str) -> str:
        """Return the path of something in it."""
        return posixpath.join(self.home, *parts)

    def out(self, *parts: str) -> str:
        """Return the path of something below the target."""
        return posixpath.join(self.renames.outside, *parts).rstrip("/")

    def names(self, *parts: str) -> list[str]:
        """Return the names of the entries of a folder in it, sorted; none if there is no such folder."""
        return self.renames.names(self.at(*parts))

    def ids(self, *parts: str) -> list[int]:
        """Return the numbers among these names, sorted."""
        return layout.ids(self.names(*parts))

    def record(self, *parts: str) -> Record | None:
        """Return what a batch with this folder consists of; None if there is no record."""
        # Unreadable: it is damaged.
        return read(FILES, Record, self.names(*parts))

    def taken(self, word: str, names: Iterable[str]) -> tuple[int, str]:
        """Return how often a folder ``<word>=<times>~<unique>`` was taken over, and its path; before that ``<word>``.

        A folder with a lower number was made by a call that was executed late.
        """
        named = re.compile(rf"{word}=([1-9][0-9]{{0,18}})~[0-9a-f]{{32}}")
        found = [(int(each[1]), each[0]) for each in map(named.fullmatch, names) if each]
        times, name = max(found, default=(0, word))
        return times, self.at(name)

    def take_over(self, word: str, names: Iterable[str]) -> str:
        """Rename such a folder, so that its former owner finds nothing there any more; return its path."""
        # Each name is used once. So a rename or a creation that is executed late does not give the folder back.
        times, before = self.taken(word, names)
        if not times:
            self.renames.make_folders(before)
        taken = self.at(f"{word}={times + 1}~{uuid.uuid4().hex}")
        self.renames.move(before, taken)
        return taken

    def keep(self, folder: str, names: list[str]) -> None:
        """Make the folders whose names hold a value."""
        for name in names:
            self.renames.make_folder(f"{folder}/{name}")


LIMIT, USUAL = "dfs.namenode.fs-limits.max-directory-items", 1_048_576

SHARE = 0.8  # the directory is nearly full from here on

_log = logging.getLogger("ha")


def look(renames: FencedRename, name: str, batch: int, partitions: Iterable[str]) -> None:
    """Count the entries of the directories in which a batch has appeared, if they can be so many, by its id."""
    try:
        most = int(configuration().get(LIMIT, USUAL))
    except ValueError:
        most = USUAL
    if batch < SHARE * most:
        return
    fullest = 0
    for partition in partitions:
        folder = posixpath.join(renames.outside, partition).rstrip("/")
        with suppress(StoreError):  # the next thousand tries again
            entries = len(renames.list(folder))
            fullest = max(fullest, entries)
            if entries >= SHARE * most:
                _log.warning(
                    "Output %s: /%s has %s entries, and HDFS allows %s in a directory: merge its files or move old "
                    "ones away, or raise %s on the NameNodes. Once it is full, no batch is published there.",
                    name, folder, f"{entries:,}", f"{most:,}", LIMIT,
                )  # fmt: skip
    REPORTS.set(name, fullness=fullest / most)


def make_room(renames: FencedRename, folder: str) -> None:
    """Keep an entry of a folder for a merge: once the folder is full, it takes no other."""
    with suppress(StoreError):  # the next process of the job tries again, and so does the next merge
        renames.do(lambda files: files.write(f"{folder}/{layout.ROOM}", b""))
