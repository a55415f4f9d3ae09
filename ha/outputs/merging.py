"""Merging: makes one file of many in a flat output, while its job runs and its readers read.

HDFS puts files of one folder behind each other in one step, without a byte being read or written: ``concat``. Of text,
of JSON lines and of what gzip and bzip2 have made of them, files behind each other are one file. So a merge never
leaves its folder, and a folder is what a reader lists in one step.

A plan is put into the journal first, then an empty file appears, and one step of the NameNode fills it and takes the
others away. The step happens once or not at all, however often it is requested. So it needs no lease: if two processes
merge the same files, one of them is refused. After an interruption the next merge resumes the plan. A reader that
misses a file of a batch finds it in the plans. See decision 59.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from ha.leadership.fenced_rename import ATTEMPTS, patiently
from ha.outputs import layout
from ha.outputs.folder import OutputFolder, make_room
from leader.errors import Unreadable
from leader.layout.names import REWINDING
from leader.layout.packed_names import read, written
from store.errors import Conflict, NoSpace, NotFound, Unknown
from store.files import Entry

PLAN = "plan"  # first word of the names that hold a `Merge`
MOST_FILES = 500  # files of one merge

MOST_PATHS = 24_000
"""Characters of all their paths: they are sent in the address of one HTTP request, and a NameNode takes 64 KiB."""

SUFFIXES = re.compile(r"\.(json|txt)(\.(gz|bz2))?")  # names of files that can be put behind each other
COMMA = ","  # separates the paths of such a request; a path that contains one cannot be named there


class Merge(msgspec.Struct, frozen=True):
    """Files of one folder that become one."""

    partition: str  # path of the folder, relative to the output's directory; empty for that itself
    target: str  # name of the one file; never used before
    # The names of the others, each with its bytes, in the order in which they are put behind each other.
    files: dict[str, int]

    @property
    def bytes(self) -> int:
        """How long the one file is."""
        return sum(self.files.values())

    @property
    def batches(self) -> list[int]:
        """The batches that the files are of."""
        return sorted(found[0] for found in map(layout.batch_of, self.files) if found is not None)

    @property
    def newest(self) -> int:
        """The newest of them."""
        return self.batches[-1]

    @property
    def thousand(self) -> int:
        """The folder of the journal that they share."""
        return self.batches[0] // layout.BUCKET

    def done(self, listed: Mapping[str, int]) -> bool:
        """Whether it has happened, by the files in the folder: it happens in one step, or not at all."""
        return listed.get(self.target) == self.bytes

    def possible(self, listed: Mapping[str, int]) -> bool:
        """Whether it may still happen: HDFS refuses if a file is missing, and no file ever has that name again."""
        return all(listed.get(name) == size for name, size in self.files.items())


@dataclass(frozen=True)
class Rule:
    """The files that are merged."""

    files: int = 100  # as many become one; fewer if they would get longer than `bytes`, or with `rest`
    bytes: int = 128 << 20  # longest file that is made, and files of that length are left alone
    older_than_s: float = 3600.0  # seconds since a file was written
    rest: bool = False  # whether to merge also where there are not enough files yet


def merge_in(names: Iterable[str]) -> Merge | None:
    """Return the plan that these names of the journal hold; None if they hold none that is whole."""
    try:
        found = read(PLAN, Merge, names)
    except Unreadable:
        return None
    return found if found is not None and found.batches else None


def plan(
    partition: str, entries: Iterable[Entry], newest: int, now_ms: int, rule: Rule, token: str, root: str = ""
) -> list[Merge]:
    """Return the merges of one folder, by its entries and the store's present time."""
    # newest: newest complete batch; all before it are complete as well.
    # token: text that makes the names of new files unique.
    # root: absolute path of the output's directory.
    place = f"{root}/{partition}/"
    if COMMA in place:
        return []
    found: dict[tuple[int, str], list[tuple[int, Entry]]] = {}
    for entry in entries:
        known = layout.batch_of(entry.name)
        if known is None or entry.is_directory or not SUFFIXES.fullmatch(known[1]):
            continue
        old = entry.modified_ms + rule.older_than_s * 1000 <= now_ms
        if known[0] <= newest and old and 0 < entry.size < rule.bytes:
            found.setdefault((known[0] // layout.BUCKET, known[1]), []).append((known[0], entry))
    merges = []
    for (_, suffix), files in sorted(found.items()):
        packs = _packs(sorted(files, key=lambda each: each[0]), rule, len(place))
        for pack in packs:
            sizes = {entry.name: entry.size for _, entry in pack}
            merges.append(Merge(partition, f"merged-{pack[0][0]}-{pack[-1][0]}-{token}{suffix}", sizes))
    return merges


def _packs(files: list[tuple[int, Entry]], rule: Rule, path: int) -> list[list[tuple[int, Entry]]]:
    """Cut a row of files, in the order of their batches, into those that become one."""
    packs: list[list[tuple[int, Entry]]] = []
    pack: list[tuple[int, Entry]] = []
    size = paths = 0
    for each in files:
        length = path + len(each[1].name) + 1
        full = pack and (size + each[1].size > rule.bytes or paths + length > MOST_PATHS)
        if full:
            packs.append(pack)
            pack, size, paths = [], 0, 0
        pack.append(each)
        size, paths = size + each[1].size, paths + length
        if len(pack) == min(rule.files, MOST_FILES):
            packs.append(pack)
            pack, size, paths = [], 0, 0
    if rule.rest:
        packs.append(pack)
    return [pack for pack in packs if len(pack) > 1]


NEW = "-new"  # ends the name of a plan that is not whole yet
CLOCK = "clock"  # folder that is made to see what time the store has
EMPTY = "empty"  # file that is moved out of a plan

_NOT_ALONE = "Somebody else merges this output: wait until that has ended."

Concat = Callable[[str, Sequence[str]], None]
"""Puts files behind one of the same folder: its path and theirs, below the root of the renames."""


class Merging:
    """The merges of one output in the present leader directory. Its methods raise what those of the renames do.

    The owner of the renames need not lead, and ``concat`` raises ``StoreError``.
    """

    def __init__(self, folder: OutputFolder, concat: Concat) -> None:
        self._folder, self._renames, self._concat = folder, folder.renames, concat
        self._at, self._out = folder.at, folder.out

    def now_ms(self) -> int:
        """Return the time of the store."""
        clock = self._at(layout.MERGING, CLOCK)
        self._renames.remove(clock)
        self._renames.make_folders(self._at(layout.MERGING), clock)
        found = next((each for each in self._renames.list(self._at(layout.MERGING)) if each.name == CLOCK), None)
        if found is None:
            raise Conflict(_NOT_ALONE)
        return found.modified_ms

    def sweep(self) -> None:
        """Delete what is no whole plan: it was not begun, or is what is left of one that was done."""
        for name in self._folder.names(layout.MERGING):
            if name.endswith(NEW) or merge_in(self._folder.names(layout.MERGING, name)) is None:
                self._renames.remove(self._at(layout.MERGING, name))

    def pending(self) -> list[Merge]:
        """Return the plans that are not done yet."""
        return list(_plans(self._folder, layout.MERGING))

    def partitions(self, wanted: str = "") -> Iterator[tuple[str, list[Entry]]]:
        """Return the folders that contain files, each with its entries: all, or a partition and those below it."""
        folders = [wanted.strip("/")]
        while folders:
            folder = folders.pop()
            entries = [each for each in self._renames.list(self._out(folder)) if not layout.hidden(each.name)]
            folders += [f"{folder}/{each.name}".lstrip("/") for each in reversed(entries) if each.is_directory]
            if any(not each.is_directory for each in entries):
                yield folder, entries

    def planned(self, newest: int, now_ms: int, rule: Rule, token: str, wanted: str = "") -> Iterator[Merge]:
        """Return the merges that are to be made; see :func:`ha.outputs.merging.plan`."""
        waiting: dict[str, set[str]] = {}
        for each in self.pending():
            waiting.setdefault(each.partition, set()).update(each.files)
        for number, (partition, entries) in enumerate(self.partitions(wanted)):
            free = [each for each in entries if each.name not in waiting.get(partition, ())]
            unique = f"{token}{number:x}"  # partitions have files of the same batches, and their plans share a folder
            yield from plan(partition, free, newest, now_ms, rule, unique, f"/{self._renames.outside}")

    def begin(self, merge: Merge) -> None:
        """Put a plan into the journal; :meth:`finish` does the rest."""
        renames, whole = self._renames, self._at(layout.MERGING, merge.target)
        new = f"{whole}{NEW}"
        names = written(PLAN, merge)
        renames.make_folders(self._at(layout.MERGING), new, *(f"{new}/{name}" for name in names))
        try:
            renames.move(new, whole)
        except NotFound as error:
            raise Conflict(_NOT_ALONE) from error

    def finish(self, merge: Merge) -> bool:
        """Do what is left of a plan; return False, and drop it, if it cannot be done because files of it are gone."""
        # Conflict: a query of the job is being put back.
        # Refused: HDFS does not merge these files; the message says why. They stay as they are.
        # Unknown: whether it is done is not known; call it again.
        heard = False
        for _ in range(ATTEMPTS):
            listed = self._listed(merge)
            if merge.done(listed):
                if layout.ROOM not in listed:
                    make_room(self._renames, self._out(merge.partition))
                if heard or self._still(merge, merge.done):  # or its plan is put away, and the store forgets the merge
                    self._keep(merge)
                    return True
            elif merge.possible(listed):
                heard = self._fill(merge, listed) or heard
            elif self._still(merge, lambda later: not (merge.possible(later) or merge.done(later))):
                self._drop(merge)
                return False
        raise Unknown(f"It is not known whether {self._out(merge.partition, merge.target)!r} is merged: merge again.")

    def _still(self, merge: Merge, what: Callable[[dict[str, int]], bool]) -> bool:
        """Whether what was seen holds also after a change that is acknowledged: before it, the store may forget it."""
        self._renames.acknowledge()
        return what(self._listed(merge))

    def _fill(self, merge: Merge, listed: Mapping[str, int]) -> bool:
        """Have the store do the one step; False if its answer was lost, and the next look tells."""
        if self._renames.list(f"{self._renames.inside}/{REWINDING}"):
            raise Conflict("A query of the job is being put back: start the job, and merge when that is done.")
        target = self._out(merge.partition, merge.target)
        if merge.target not in listed:
            self._make(merge, target)
        with suppress(NotFound, Unknown):
            patiently(lambda: self._concat(target, [self._out(merge.partition, name) for name in merge.files]))
            return True
        return False

    def _make(self, merge: Merge, target: str) -> None:
        """Make the one file, without content, unless it is there. HDFS renames within a folder that is full."""
        made = self._at(layout.MERGING, merge.target, EMPTY)
        self._renames.do(lambda files: files.write(made, b""))
        try:
            with suppress(NotFound):  # a move that was executed twice
                self._renames.move(made, target)
        except NoSpace as error:
            try:
                self._renames.move(self._out(merge.partition, layout.ROOM), target)
            except NotFound:
                raise error from None

    def _keep(self, merge: Merge) -> None:
        """Put a plan that is done with the records of its batches."""
        folder = self._at(layout.MERGED, f"{merge.thousand}")
        self._renames.make_folders(self._at(layout.MERGED), folder)
        with suppress(NotFound):  # somebody else has done that
            self._renames.move(self._at(layout.MERGING, merge.target), f"{folder}/{merge.target}")

    def _drop(self, merge: Merge) -> None:
        """Delete the one file, which can no longer be filled, and then the plan."""
        self._renames.remove(self._out(merge.partition, merge.target))
        self._renames.remove(self._at(layout.MERGING, merge.target))

    def _listed(self, merge: Merge) -> dict[str, int]:
        return {each.name: each.size for each in self._renames.list(self._out(merge.partition))}


def merges(folder: OutputFolder) -> list[Merge]:
    """Return all merges of an output whose plans are kept, those that are not done included."""
    found = list(_plans(folder, layout.MERGING))
    for thousand in folder.names(layout.MERGED):
        found += _plans(folder, f"{layout.MERGED}/{thousand}")
    return found


def _plans(folder: OutputFolder, path: str) -> Iterator[Merge]:
    for name in folder.names(path):
        if name != CLOCK and not name.endswith(NEW) and (merge := merge_in(folder.names(path, name))) is not None:
            yield merge
