"""Merge plans: which files of a flat output become one file. Pure.

HDFS puts files of one folder behind each other in one step, without a byte being read or written: ``concat``. Of text,
of JSON lines and of what gzip and bzip2 have made of them, files behind each other are one file. So a merge never
leaves its folder, and a folder is what a reader lists in one step. See decision 59.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

from ha.outputs import layout
from leader.errors import Unreadable
from leader.layout.packed_names import read
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
    """Return the merges of one folder."""
    # entries: what is in it.
    # newest: newest complete batch; all before it are complete as well.
    # now_ms: the store's present time.
    # rule: what is wanted.
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
