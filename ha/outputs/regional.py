"""Regional: the progress of an output's regions, and where it keeps them and the mark up to which all are complete.

The batches of all regions have ids on one scale. A region that was away goes on with the id that the others have come
to, and always with one after the mark. So no row with an id up to the mark comes any more, whatever happens.

The folder is one of the journal, with names only. The mark moves by one rename, which is a fenced driver's last. A mark
that is late, or that the store has forgotten, is a lower one: the highest counts. See decision 58.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec

from ha.leadership.fenced_rename import FencedRename
from ha.outputs import layout
from ha.outputs.folder import OutputFolder
from ha.outputs.record import TARGET, Target
from leader.errors import InvalidSettings, RegionBehind, Unreadable
from leader.layout.names import OUT
from leader.layout.packed_names import read, written
from store.errors import NotFound, StoreError

LATE = 2
"""Batches that the others have come further when a region is late. One apart are regions that do not end together."""


class RegionState(StrEnum):
    """The reason for which a region holds the mark back."""

    ERROR = "ERROR"
    EXPIRED = "EXPIRED"


class RegionRecord(msgspec.Struct, frozen=True):
    """A region that holds the mark back."""

    checkpoint_id: int  # the first batch that is not known to be complete
    scope: str  # name of the region, which is that of its query
    state: RegionState  # `ERROR` if its last try has failed, `EXPIRED` if it is only late
    tasks: list[str]  # those of Spark that have failed, as `stage/task`
    message: str  # what went wrong


@dataclass(slots=True)
class _Region:
    """One region."""

    newest: int  # its newest batch that is complete
    come_to: int  # all its batches up to this id are complete, if it has any
    number: int = -1  # of the batch that is under way, or has failed, as Spark numbers it
    least: int | None = None  # the lowest id that this batch may have; None if the last one is complete
    tries: int = 0  # how many were begun
    runs: bool = False  # whether a try is under way
    error: str = ""  # of the last try; empty if it did not fail
    tasks: tuple[str, ...] = ()


class RegionMarks:
    """The arithmetic of one output; not safe to use from several threads.

    Attributes:
        mark: all batches up to this id are complete; -1 if none is.
        front: the newest complete batch of any region; -1 if there is none.
    """

    def __init__(self, newest: Mapping[str, int], mark: int, most_apart: int) -> None:
        """Begin with what a journal knows: of each region its newest complete batch, or -1, and the mark."""
        # most_apart: batches that the front may be before the mark.
        self._regions = {name: _Region(each, max(each, mark)) for name, each in newest.items()}
        self._most = most_apart
        self.mark = mark
        self.front = self._floor = max([mark, *newest.values()])  # no mark that anybody has seen was higher
        self._advance()

    def begin(self, region: str, number: int, known: int) -> int:
        """Begin a try of a batch; return the lowest id that it may have."""
        # A try of a batch that has failed keeps its id, so a region that fails again and again holds the mark. Spark
        # numbers the batch, and the region's journal would give it the id `known`.
        # RegionBehind: the batch would be too far before a region that holds the mark.
        found = self._regions[region]
        if known <= found.newest:
            return known  # it was decided before, so it has its id
        kept = found.least if found.least is not None and found.number == number else self.front
        least = max(known, kept, found.come_to + 1, self.mark + 1, self._floor + 1)
        if least > self.mark + self._most and found.come_to > self.mark:
            raise RegionBehind(self._apart(region, least))
        found.number, found.least, found.runs = number, least, True
        found.tries += 1
        return least

    def complete(self, region: str, newest: int) -> None:
        """Take note that a try has ended well, and of the region's newest complete batch."""
        found = self._regions[region]
        found.newest = max(found.newest, newest)
        found.come_to = max(found.come_to, found.newest)
        found.least, found.runs, found.error, found.tasks = None, False, "", ()
        self.front = max(self.front, found.newest)
        self._advance()

    def fail(self, region: str, error: str, tasks: tuple[str, ...] = ()) -> None:
        """Take note that the last try of a region has failed."""
        found = self._regions[region]
        found.runs, found.error, found.tasks = False, error, tasks

    def unknown(self) -> dict[str, int]:
        """Return the tries of the regions that have no batch under way and are not at the front: ask for these."""
        return {
            name: each.tries for name, each in self._regions.items() if each.least is None and each.come_to < self.front
        }

    def idle(self, region: str, tries: int, front: int) -> None:
        """Take note that a region had nothing to do at a front, if no try has begun since :meth:`unknown` was asked."""
        found = self._regions[region]
        if found.tries == tries:
            found.come_to = max(found.come_to, front)
            found.error, found.tasks = "", ()
            self._advance()

    def lag(self, region: str) -> int:
        """Return how many batches the others have come further."""
        return self.front - self._regions[region].come_to

    @property
    def apart(self) -> int:
        """Batches from the mark to the front."""
        return self.front - self.mark

    def behind(self) -> list[RegionRecord]:
        """Return the regions that have failed or are late; of a late one the message does not change while it is."""
        return [
            RegionRecord(
                each.come_to + 1,
                name,
                RegionState.ERROR if each.error else RegionState.EXPIRED,
                list(each.tasks),
                each.error or _late(each),
            )
            for name, each in self._regions.items()
            if each.error or self.lag(name) >= LATE
        ]

    def _advance(self) -> None:
        self.mark = max(self.mark, min(each.come_to for each in self._regions.values()))

    def _apart(self, region: str, least: int) -> str:
        holding = [name for name, each in self._regions.items() if each.come_to <= self.mark]
        first = self._regions[holding[0]]
        more = f" and {len(holding) - 1} more" if len(holding) > 1 else ""
        return (
            f"Region {region!r} does not begin batch {least}: region {holding[0]!r}{more} has come to batch "
            f"{self.mark} only, and max_region_lag is {self._most}. {first.error or _late(first)}"
        )


def _late(region: _Region) -> str:
    if region.runs:
        return f"Its batch {region.number} is not complete."
    return "No batch of it has begun, and its query has not said that there is nothing to do."


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
                self._renames.make_folder(self._at(each))
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
