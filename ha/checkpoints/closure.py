"""Closure: the exact set of files that a restart after a batch needs. Pure: it asks for contents, and is given them.

A restart after batch N reads ``metadata``, ``offsets/N`` and the one before, ``commits/N``, what each file source had
seen by then, and version N + 1 of every state store: its newest whole version on the way there, and all changes since.
Tried by copying exactly that into an empty directory, and starting there (tests/system/spark/test_closures.py).
"""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec

from ha.checkpoints import contents
from ha.checkpoints.check_sums import check_hadoop, hadoop_sums
from ha.checkpoints.checkpoint_files import CheckpointFiles, SourceLog, Store
from ha.checkpoints.contents import Altered, Offsets, OperatorStores, Unreadable
from ha.checkpoints.schemas import check_schemas

T = TypeVar("T")

Form = Callable[[bytes], object]  # reads a file, and raises `Unreadable` if it has another form
Wanted = frozenset[str]  # paths of small files whose contents are asked for
Contents = Mapping[str, bytes | None]  # of files; None if there is no such file any more. Of a changelog only the head
Parsed = dict[str, Any]  # small files, parsed, by path
Asking = Generator[Wanted, Contents, "Closure"]

_TIME_DIGITS = 13  # of milliseconds since 1970: fewer are a part of a time, and Spark would count from another one


class Closure(msgspec.Struct, frozen=True):
    """All that a restart after a batch needs."""

    batch: int  # its number
    files: dict[str, int]  # size of each file, by path; all that were found, where one is missing
    # Files that are missing and can be made, by path, with the file that they are made from.
    rebuilt: dict[str, str] = {}
    missing: str = ""  # path of the first file that is missing; empty if there is none
    reason: str = ""  # why it does not do, in a sentence; empty if there is nothing to say
    keys: dict[Store, int] = {}  # number of keys of each store, in its newest whole version; only RocksDB counts them
    replayed: dict[Store, int] = {}  # number of changes that each store reads after its whole version
    altered: bool = False  # whether Spark would go on, and the missing file is not what was written
    # Whole versions that are damaged; Spark 4.1 and newer begins with older ones in their place.
    skipped: list[str] = []

    @property
    def restorable(self) -> bool:
        """Whether a restart succeeds, perhaps after files were rebuilt."""
        return not self.missing

    @property
    def bytes(self) -> int:
        """Total size of its files."""
        return sum(self.files.values())


class Hole(Exception):
    """The first file that is missing, and why that is so."""

    def __init__(self, path: str, reason: str, *, altered: bool = False) -> None:
        super().__init__(reason)
        self.path = path  # of the file
        self.altered = altered  # whether Spark would take it as it is
        self.wholes: list[str] = []  # whole versions that cannot be read; older ones do as well, with more changes


def own_logs(offsets: Mapping[str, Any], logs: Mapping[str, object]) -> dict[str, Any]:
    """Return the offset of each source, by the name of its log; given them by their place among all, or by name."""
    # A stream that a query reads twice (a union with itself) has two equal offsets, one log, and one number.
    numbers = [int(each) for each in logs if each.isdecimal()]
    twice = len(offsets) - max(numbers, default=len(offsets) - 1) - 1 if all(map(str.isdecimal, offsets)) else 0
    found: dict[str, Any] = {}
    for number, offset in offsets.items():
        if twice > 0 and offset is not None and offset in found.values():
            twice -= 1
        else:
            found[str(len(found)) if number.isdecimal() else number] = offset
    return found


class Head(msgspec.Struct, frozen=True):
    """A batch as small files describe it: its offsets, the ids of its versions (format 2), and its operators."""

    offsets: Offsets
    ids: dict[int, list[list[str]]]
    operators: dict[int, OperatorStores]


class Closing:
    """One closure, as far as it has been collected. Methods raise :class:`Hole` at the first file that is missing."""

    def __init__(self, files: CheckpointFiles, batch: int, parsed: Parsed, *, begun: bool = False) -> None:
        self._names = files
        self._checksums = files.checksums
        self._batch = batch
        self._newest = batch + 1 if begun else batch  # the newest batch whose input is known
        self._parsed = parsed
        self._files: dict[str, int] = {}
        self._rebuilt: dict[str, str] = {}
        self._keys: dict[Store, int] = {}
        self._replayed: dict[Store, int] = {}
        self._forms: dict[str, Form] = {}  # of files that say nothing here, and need only have their form

    def result(self, hole: Hole | None = None) -> Closure:
        """Return what has been collected until now, and what is missing."""
        missing, reason, altered = (hole.path, str(hole), hole.altered) if hole is not None else ("", "", False)
        skipped = [*self._names.skipped]
        if not missing and skipped:
            reason = "It is damaged: Spark 4.1 and newer takes an older version and more changes; others do not start."
        return Closure(
            self._batch, self._files, self._rebuilt, missing, reason, self._keys, self._replayed, altered, skipped
        )

    def collect_head(self) -> Generator[Wanted, Contents, Head]:
        """Collect everything but the versions of the stores."""
        batch = self._batch
        commit, last, newest = f"commits/{batch}", f"offsets/{batch}", f"offsets/{self._newest}"
        for path in ("metadata", last, commit, newest):
            self.need(path)
        if batch > 0:
            # Spark reads it and takes nothing from it: the batch after it is complete.
            self._need_or_rebuild(f"offsets/{batch - 1}", last)
        for operator in self._names.without_metadata(batch):
            raise Hole(
                f"state/{operator}/_metadata/v2/0",
                f"Neither it nor another one up to {batch} is there, and they name the schemas of its variables.",
            )
        operators = self._names.operator_metadata(batch)
        said = yield frozenset({"metadata", commit, last, newest, *operators.values()})
        self.read(contents.query_id, said, "metadata")
        offsets = self.read(contents.offsets, said, last)
        ids = self.read(contents.state_ids, said, commit)
        known: dict[int, OperatorStores] = {}
        for operator, path in operators.items():
            try:
                known[operator] = self.read(contents.operator_stores, said, path)
            except Hole as hole:  # Spark goes on, as without it, unless it needs the schemas of variables
                if hole.altered or self._names.has_variables(operator):
                    raise
        self.need_sources(self.read(contents.offsets, said, newest), newest)
        for operator, stores in known.items():
            self.need(operators[operator])
            self._compare_names(operator, stores.stores, operators[operator])
            for schema in stores.schemas:
                self.need(schema)
        for path in self._names.schemas(known or self._names.operators):
            self.need(path)
        return Head(offsets, ids, known)

    def _compare_names(self, operator: int, named: list[str], metadata: str) -> None:
        """Compare the stores that an operator's metadata name with those that are there: Spark goes by its program."""
        there = {each.name for each in self._names.stores if each.operator == operator}
        if (gone := set(named) - there) and (others := there - set(named)):
            names, found = (", ".join(sorted(each)) for each in (gone, others))
            raise Hole(
                metadata, f"It is altered: it names {names}, which is missing, in place of {found}.", altered=True
            )

    def need(self, path: str, size: int | None = None) -> None:
        """Add a file, unless it is missing, damaged, empty, or of another length than it should be."""
        found = self._names.sizes.get(path)
        if found is None:
            raise Hole(path, "It is missing.")
        if not found and path.startswith("state/"):
            raise Hole(path, "It is empty.")
        if path in self._names.faults:
            raise self._names.faults[path]
        if size is not None and found != size:
            raise Hole(path, f"It has {found:,} bytes, and had {size:,} when it was written.")
        self._files[path] = found
        if self._checksums and (checks := f"{path}.crc") in self._names:  # a restart does without
            self._files[checks] = self._names.sizes[checks]

    def _need_or_rebuild(self, path: str, origin: str) -> None:
        if path in self._names:
            self.need(path)
        else:
            self._rebuilt[path] = origin

    def need_sources(self, offsets: Offsets, path: str, *, whole: bool = False) -> None:
        """Add the logs of all sources, up to the entry that their offset names, in ``path``, or the whole log."""
        for number, offset in own_logs(offsets.sources, self._names.sources).items():
            log, used = self._names.source(number), contents.log_offset(offset)
            of_files = bool(log.compacted) or len(log.entries) > 1  # others write one entry at most
            if used is None and offset is not None and of_files:
                raise Hole(path, f"It names no entry of the log of source {number}.")
            if whole and (of_files or used is not None):
                self._need_log(f"sources/{number}", log, max([*log.entries, *log.compacted, used or 0]))
            elif used is not None:
                self._need_log(f"sources/{number}", log, used)
            else:
                self._need_other(number, log, offset)

    def _need_log(self, folder: str, log: SourceLog, newest: int) -> None:
        """Add the log of a file source up to an entry: its newest compacted entry, and all entries after it."""
        base = max((each for each in log.compacted if each <= newest), default=None)
        needed = range(0 if base is None else base + 1, newest + 1)
        hole = next((each for each in needed if each not in log.entries), None)
        later = [each for each in log.compacted if each > newest]
        if hole is None:
            paths = [*([] if base is None else [log.compacted[base]]), *(log.entries[each] for each in needed)]
        elif later:
            paths = [log.compacted[min(later)]]
            self._rebuilt[f"{folder}/{newest}.compact"] = paths[0]
        else:
            raise Hole(f"{folder}/{hole}", "It is missing, and no later log contains its entries.")
        for path in paths:
            if hole is None:
                self.need(path)
            self._forms[path] = partial(_check_entry, size=self._names.sizes[path])

    def _need_other(self, source: str, log: SourceLog, offset: Any) -> None:
        """Add the log of another source. That of a rate source has a form; one that has no directory needs none."""
        # Kafka does not read its log again once there is an offset; of others that is not known.
        for path in log.paths:  # where another source began, for instance
            self.need(path)
        if isinstance(offset, int) and not isinstance(offset, bool):  # of a rate source
            if source in self._names.sources and not log.entries:
                raise Hole(f"sources/{source}/0", "It is missing, and tells when the source began.")
            self._forms |= dict.fromkeys(log.paths, _check_beginning)

    def check(self, forms: Mapping[str, Form] | None = None) -> Generator[Wanted, Contents, Parsed]:
        """Read these files, and those whose form is to be checked; returns what they say, by path."""
        wanted = {**(forms or {}), **self._forms}
        said = yield frozenset(path for path in wanted if path in self._names) - self._parsed.keys()
        for path in forms or ():
            self.need(path)
        return {path: self.read(form, said, path) for path, form in wanted.items()}

    def check_forms(self, head: Head) -> Generator[Wanted, Contents, None]:
        """Read what a restart reads of what was collected, and nothing else has read."""
        schemas = [each for stores in head.operators.values() for each in stores.schemas]
        for path in (*schemas, *self._names.schemas(head.operators or self._names.operators)):
            self._forms[path] = check_schemas
        for stores in head.operators.values():
            if stores.schemas:  # the last one counts
                self._forms[stores.schemas[-1]] = partial(check_schemas, variables=stores.variables)
        before = f"offsets/{self._batch - 1}"
        yield from self.check()
        if before in self._files:
            try:
                yield from self.check({before: contents.offsets})
            except Hole:
                del self._files[before]
                self._rebuilt[before] = f"offsets/{self._batch}"

    def read(self, reader: Callable[[bytes], T], said: Contents, path: str) -> T:
        """Return what a file says, unless it is missing, has another form, or is altered."""
        if path not in self._parsed:
            data = said.get(path)
            if data is None:
                raise Hole(path, "It is missing.")
            sums = said.get(hadoop_sums(path))
            try:
                read = reader(data)
                if sums is not None:
                    check_hadoop(sums, data, whole=len(data) >= self._names.sizes.get(path, 0))
            except Unreadable as error:
                altered = isinstance(error, Altered)
                raise Hole(path, f"It is {'altered' if altered else 'damaged'}. {error}", altered=altered) from error
            self._parsed[path] = read
        found: T = self._parsed[path]
        return found


def _check_entry(data: bytes, size: int) -> bool:
    """Check an entry of a file source's log; if ``data`` is shorter than ``size``, only its head was read."""
    contents.logged_files(data if len(data) >= size else data.rpartition(b"\n")[0])
    return True


def _check_beginning(data: bytes) -> bool:
    """Check the entry of a rate source: a version, and a time."""
    version, _, said = data.partition(b"\n")
    if version != b"v1" or not said.isdigit():
        raise Unreadable("It does not say when the source began." if data else "It is empty.")
    if len(said) < _TIME_DIGITS:
        raise Altered("It says that the source began in another century.")  # Spark takes any time
    return True
