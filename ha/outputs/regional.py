"""RegionalHome: where a regional output keeps its regions, its mark, and what holds the mark back.

It is a folder of the journal, with names only. The mark moves by one rename, which is a fenced driver's last. A mark
that is late, or that the store has forgotten, is a lower one: the highest counts. See decision 58.
"""

import logging
from collections.abc import Sequence
from urllib.parse import urlsplit

import msgspec

from ha.leadership.fenced_rename import FencedRename
from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from ha.outputs.record import TARGET, Target
from ha.outputs.region_marks import RegionRecord
from leader.errors import InvalidSettings, Unreadable
from leader.layout.names import OUT
from leader.layout.packed_names import read, written
from store.errors import NotFound, StoreError

BEHIND = "behind"  # first word of the names that hold a `Behind`

_log = logging.getLogger("ha")


class Behind(msgspec.Struct, frozen=True):
    """The regions that hold the mark back."""

    regions: list[RegionRecord]


class RegionalHome:
    """The folder of one regional output, for the leader that owns it. Its methods raise what those of the renames do.

    Attributes:
        mark: all regions are complete up to this one; -1 if nothing was told.
    """

    def __init__(self, renames: FencedRename, name: str) -> None:
        self._renames, self._name = renames, name
        self._folder = OutputFolder.of(renames, name)
        self._at = self._folder.at
        self._behind: list[str] = []
        self.mark = -1

    def load(self, regions: Sequence[str]) -> None:
        """Read what is there, and note the regions that are new."""
        # InvalidSettings: one that was there before is missing.
        renames = self._renames
        renames.make_folders(f"{renames.inside}/{OUT}", self._folder.home)
        names = self._folder.names()
        known = {each.removeprefix(layout.REGION) for each in names if each.startswith(layout.REGION)}
        if gone := sorted(known - set(regions)):
            raise InvalidSettings(
                f"Output {self._name!r} has a region {gone[0]!r} that is not given: its rows would be lost, or read "
                "twice. Give the regions that it had, or another directory."
            )
        target = Target(f"{urlsplit(renames.root).path.rstrip('/')}/{renames.outside}")
        wanted = [*written(TARGET, target), *(f"{layout.REGION}{each}" for each in regions)]
        if missing := [each for each in wanted if each not in names]:
            renames.make_folders(*map(self._at, missing))
        self._behind = [each for each in names if each.startswith(f"{BEHIND}=")]
        self.mark = layout.mark(names)

    def move(self, mark: int) -> None:
        """Publish a mark that is higher than the last one; one call."""
        target = self._at(f"{layout.MARK}{mark}")
        try:
            self._renames.move(self._at(f"{layout.MARK}{self.mark}"), target)
        except NotFound:  # the first one, or somebody has deleted the last one
            self._renames.make_folders(target)
        self.mark = mark

    def tell(self, records: Sequence[RegionRecord]) -> None:
        """Publish which regions hold the mark back; for people only, so a failure does no harm."""
        names = written(BEHIND, Behind(list(records))) if records else []
        try:
            for each in [each for each in self._behind if each not in names]:
                self._renames.remove(self._at(each))
                self._behind.remove(each)
            for each in [each for each in names if each not in self._behind]:
                self._renames.do(lambda files, each=each: files.make_directory(self._at(each)))  # type: ignore[misc]
                self._behind.append(each)
        except StoreError as error:
            _log.warning("Output %s: which regions are behind is not told: %s", self._name, error)


def behind(names: Sequence[str]) -> list[RegionRecord]:
    """Return the regions that hold the mark back, by the names in the folder; none while these are being changed."""
    try:
        found = read(BEHIND, Behind, names)
    except Unreadable:
        return []
    return found.regions if found else []
