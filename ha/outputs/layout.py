"""The layout of an output's journal: where a batch is on its way to its readers. Pure.

    <leader directory>/out/<output>/
        target=<part>~<of>~<text>                          where batches appear: a Target
        staged/<attempt>/rows/[<column>=<value>/...]       Spark writes here
        staged/<attempt>/files=<part>~<of>~<text>          what it has written: a Record
        ready/<batch id>/                                  decided, by one rename of the attempt; rows are being moved
        done/<batch id // 1000>/<batch id>/files=...       every file of it was in its place; its record stays
        partitions[=...]/...                               what is to be committed: ha/outputs/partitions.py
        merging/<merged file>/plan=...                     files of batches that become one: a Merge, not done yet
        merged/<batch id // 1000>/<merged file>/plan=...   likewise, done
        shift=<batch>~<by>                                 from this batch of the query on, ids are higher by so many
    <uri>/[<column>=<value>/...]batch=<batch id>           one rename for each partition: it appears as a whole
    <uri>/_dead_letters/batch=<batch id>                   records of it that could not be processed
    <uri>/[<column>=<value>/...]batch-<batch id>.json      likewise, if the output is flat: one file for each partition
    <uri>/[<column>=<value>/...]merged-<first>-<last>-...  one file that was many: ha/outputs/merging.py

A regional output has such a folder for each region, and in ``<uri>`` a partition ``region=<region>``. One more has

    region=<region>                                        one of its regions
    mark=<batch id>                                        all regions are complete up to the highest one
    behind=<part>~<of>~<text>                              regions that have failed or are late: a Behind

An id goes from ``staged`` to ``ready`` to ``done``, and each step is one rename. There is at most one id in ``ready``,
and none below it that is not done. Within a leader directory no path of ``ready`` or ``done`` is ever used again, so a
rename or a deletion that the store executes late finds nothing.

An id is the number that Spark gave to the batch, unless the query was put back and what it had published was kept: then
ids go on after those, and Spark's numbers do not. If its state was repartitioned while a batch was begun and published,
Spark gives that batch the next number, and ids are lower by one from there on. A batch that was put into the trash has
its id once more, in another leader directory.
"""

import hashlib
import re
from collections.abc import Iterable

from leader.errors import InvalidSettings
from leader.layout.names import OUT

STAGED, READY, DONE, ROWS = "staged", "ready", "done", "rows"

MERGING, MERGED = "merging", "merged"

SHIFT = "shift="

_SHIFT = re.compile(r"shift=(0|[1-9][0-9]{0,18})~(0|-?[1-9][0-9]{0,18})")

DEAD, ALIVE = "dead", "alive"
"""Folders below the rows of a batch that has dead letters: these, and the other rows if they have no partition. Neither
can be one of Spark's partitions."""

DEAD_LETTERS = "_dead_letters"
"""Folder of the target in which batches of dead letters appear; plain readers of the target do not see it."""

REGION, MARK, BATCH = "region=", "mark=", "batch="

MOST_SHIFTS = 1000
"""Shifts that are kept of one output: a region that is often away gets many."""

_SUFFIX = re.compile(r"^[^.]*(\.c[0-9]+(?=\.|$))?")
"""What is in front of it: Spark has its own numbers there."""

_FILE = re.compile(r"batch-(0|[1-9][0-9]{0,18})(\..*)?")

BUCKET = 1000
"""Batches in one folder of ``done``: one list shows them all."""


def home(name: str, target: str) -> str:
    """Return an output's folder, relative to the leader directory.

    It is named after its target: an output that is moved begins anew, and two outputs never decide for each other.

    Args:
        name: of the output.
        target: path of the directory in which its batches appear, below the root that it shares with the job's.
    """
    return f"{OUT}/{name}-{hashlib.sha256(target.encode()).hexdigest()[:12]}"


def ready(batch: int) -> str:
    """Return a decided batch's folder, relative to the output's."""
    return f"{READY}/{batch}"


def done(batch: int) -> str:
    """Return a complete batch's folder, relative to the output's."""
    return f"{DONE}/{batch // BUCKET}/{batch}"


def place(partition: str, batch: int) -> str:
    """Return where readers find a partition of a batch, relative to the target."""
    first, _, rest = partition.partition("/")
    if first == DEAD:
        return f"{DEAD_LETTERS}/batch={batch}"
    return f"{rest if first == ALIVE else partition}/batch={batch}".lstrip("/")


def folder(partition: str, batch: int, *, flat: bool) -> str:
    """Return the folder with the files of a partition of a batch, relative to the target."""
    return partition if flat else place(partition, batch)


def file(batch: int, name: str, *, flat: bool) -> str:
    """Return the name that a file has there, by the one under which it was written."""
    return f"batch-{batch}{_SUFFIX.sub('', name)}" if flat else name


def batch_of(name: str) -> tuple[int, str] | None:
    """Return the batch of a file in a flat output, and the suffix; None if its name says another thing."""
    found = _FILE.fullmatch(name)
    return None if found is None else (int(found[1]), found[2] or "")


def hidden(name: str) -> bool:
    """Whether Spark's readers ignore an entry: markers and check sums, but no partition of a column ``_day``."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def mark(names: Iterable[str]) -> int:
    """Return the id up to which all regions are complete, by the names in a regional output's folder; -1 if none is."""
    return max(ids([each.removeprefix(MARK) for each in names if each.startswith(MARK)]), default=-1)


def check_columns(columns: Iterable[str], *ours: str) -> None:
    """Refuse columns of partitions that readers would skip, or find twice in a path.

    Args:
        columns: of the output's partitions.
        ours: what its own folders begin with, such as :data:`BATCH`.

    Raises:
        InvalidSettings: there is one.
    """
    if isinstance(columns, str):
        raise InvalidSettings(f"partition_by is the text {columns!r}: give a list of columns, such as [{columns!r}].")
    for each in columns:
        if each.startswith("."):
            raise InvalidSettings(f"Readers skip folders like {each}=1, so column {each!r} cannot be in partition_by.")
        if f"{each.lower()}=" in ours:
            raise InvalidSettings(
                f"The output has folders {each.lower()}=... of its own, so column {each!r} cannot be in partition_by: "
                "give it another name."
            )


def ids(names: "list[str]") -> list[int]:
    """Return the numbers among these names, sorted."""
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal() and name == str(int(name)))


def batches(names: "list[str]") -> list[int]:
    """Return the batches in a partition, by the names in its folder."""
    return ids([name.removeprefix(BATCH) for name in names if name.startswith(BATCH)])


def shift(batch: int, names: Iterable[str]) -> int:
    """Return by how much the id of a query's batch is higher than Spark's number, by the names in the journal."""
    return max(((since, by) for since, by in _shifts(names) if since <= batch), default=(0, 0))[1]


def surplus(names: Iterable[str]) -> list[str]:
    """Return the shifts that say nothing of the newest batches any more: all but the newest :data:`MOST_SHIFTS`."""
    return [f"{SHIFT}{since}~{by}" for since, by in _shifts(names)[:-MOST_SHIFTS]]


def shifts_after(batch: int, names: Iterable[str], by: int) -> list[str]:
    """Return the shifts of a query that is put back to a batch: the next one has an id that is higher by so many."""
    kept = [(since, known) for since, known in _shifts(names) if since <= batch]
    before = max(kept, default=(0, 0))[1]
    return [f"{SHIFT}{since}~{known}" for since, known in kept] + ([f"{SHIFT}{batch + 1}~{by}"] if by != before else [])


def _shifts(names: Iterable[str]) -> list[tuple[int, int]]:
    return sorted((int(each[1]), int(each[2])) for each in map(_SHIFT.fullmatch, names) if each is not None)
