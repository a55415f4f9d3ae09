"""The layout of an output's journal: where a batch is on its way to its readers. Pure.

    <leader directory>/out/<output>/
        target=<part>~<of>~<text>                          where batches appear: a Target
        staged/<attempt>/rows/[<column>=<value>/...]       Spark writes here
        staged/<attempt>/files=<part>~<of>~<text>          what it has written: a Record
        ready/<batch id>/                                  decided, by one rename of the attempt; rows are being moved
        done/<batch id // 1000>/<batch id>/files=...       every file of it was in its place; its record stays
        partitions[=...]/...                               what is to be committed: ha/outputs/partitions.py
        merging/<merged file>/plan=...                     files of batches that become one: a Merge, not done yet
        merged/<batch id // 1000>/<merged file>/plan=...   a Merge that is done
        types=<times>/types=<part>~<of>~<text>             of the columns in its files: ha/outputs/columns.py
        line=<tenure>~<since>~<by>~<query id>~<name>       whose batches these are, and their ids: ha/outputs/lines.py
    own=<times>~<unique>/<attempt>/...                 sealed: what the journal that has settled last decides on
    replayed=<times>                                   so many batches were done again and dropped
    <uri>/[<column>=<value>/...]batch=<batch id>           one rename for each partition: it appears as a whole
    <uri>/_dead_letters/batch=<batch id>                   records of it that could not be processed
    <uri>/[<column>=<value>/...]batch-<batch id>.json      the same if the output is flat: one file for each partition
    <uri>/[<column>=<value>/...]merged-<first>-<last>-...  one file that was many: ha/outputs/merging.py
    <uri>/[<column>=<value>/...]_room                      an entry for that file, if there is no room for another one

A table or a topic has the same, but for what is below ``<uri>``: :mod:`ha.outputs.elsewhere`. Its ids only grow.

A regional output has such a folder for each region, and in ``<uri>`` a partition ``region=<region>``. One more has

    region=<region>                                        one of its regions
    mark=<batch id>                                        all regions are complete up to the highest one
    behind=<part>~<of>~<text>                              regions that have failed or are late: a Behind

An id goes from ``staged`` to ``ready`` to ``done``, and each step is one rename. There is at most one id in ``ready``,
and none below it that is not done. Within a leader directory no path of ``ready`` or ``done`` is ever used again, so a
rename or a deletion that the store executes late finds nothing.

An id is the output's own number. It is the number that Spark gave to the batch, unless the query was put back and what
it had published was kept, or another query goes on: then ids go on after those. If the query's state was repartitioned
while a batch was begun and published, Spark gives that batch the next number, and ids are lower by one from there on. A
batch that was put into the trash has its id once more, in another leader directory.
"""

import hashlib
import re
from collections.abc import Iterable

from leader.errors import InvalidSettings
from leader.layout.names import OUT

STAGED, READY, DONE, ROWS = "staged", "ready", "done", "rows"

MERGING, MERGED = "merging", "merged"

ROOM = "_room"
"""Empty file of a folder of a flat output: a merge gives it the merged file's name when the folder takes no more."""

OWN, REPLAYED = "own", "replayed="

DEAD, ALIVE = "dead", "alive"
"""Folders below the rows of a batch that has dead letters: these, and the other rows if they have no partition. Neither
can be one of Spark's partitions."""

DEAD_LETTERS = "_dead_letters"
"""Folder of the target in which batches of dead letters appear; plain readers of the target do not see it."""

REGION, MARK, BATCH = "region=", "mark=", "batch="

_SUFFIX = re.compile(r"^[^.]*(\.c[0-9]+(?=\.|$))?")  # what is in front of it: Spark has its own numbers there

_FILE = re.compile(r"batch-(0|[1-9][0-9]{0,18})(\..*)?")

BUCKET = 1000  # batches in one folder of `done`: one list shows them all


def home(name: str, target: str) -> str:
    """Return an output's folder, relative to the leader directory."""
    # It is named after its target, below the root that it shares with the job: a moved output starts from scratch, and
    # two outputs never decide for each other.
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


def file(batch: int, name: str) -> str:
    """Return the name that a file has in a flat output, by the one under which it was written."""
    return f"batch-{batch}{_SUFFIX.sub('', name)}"


def batch_of(name: str) -> tuple[int, str] | None:
    """Return the batch of a file in a flat output, and the suffix; None if its name says another thing."""
    found = _FILE.fullmatch(name)
    return None if found is None else (int(found[1]), found[2] or "")


def hidden(name: str) -> bool:
    """Whether Spark's readers ignore an entry: markers and check sums, but no partition of a column ``_day``."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def mark(names: Iterable[str]) -> int:
    """Return the id up to which all regions are complete, by the names in a regional output's folder; -1 if none is."""
    return max(numbers(MARK, names), default=-1)


def check_columns(columns: Iterable[str], *ours: str) -> None:
    """Refuse columns of partitions that readers would skip, or find twice: ``ours`` begin the output's folders."""
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


def ids(names: Iterable[str]) -> list[int]:
    """Return the numbers among these names, sorted."""
    return sorted(int(name) for name in names if name.isascii() and name.isdecimal() and name == str(int(name)))


def numbers(word: str, names: Iterable[str]) -> list[int]:
    """Return the numbers behind a word, such as :data:`BATCH`, by the names that begin with it, sorted."""
    return ids(name.removeprefix(word) for name in names if name.startswith(word))
