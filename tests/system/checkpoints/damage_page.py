"""The page of damaged files, made from ``damage.json``: python -m tests.system.checkpoints.damage_page."""

import json
import re
from collections import Counter, defaultdict
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from typing import TypedDict

FILE = Path(__file__).with_name("damage.json")
PAGE = Path(__file__).parents[3] / "docs" / "damaged-checkpoints.md"

TOLD, BY_SUMS, ALTERED = "told", "told by sums", "altered"
STARTS, REPAIRED, UNKNOWABLE = "starts", "repaired", "not knowable"
UNSEEN, STRICT = "**not told**", "*told, and starts*"
"""What a cell says."""

COLUMNS = ("emptied", "halved", "first byte", "middle byte", "gone")
BEGUN = " (a batch is begun)"
"""End of a kind of file whose newest batch was begun only."""

HEAD = """# Damaged checkpoints

Made by `python -m tests.system.checkpoints.damage_table`, with Spark {spark}. Do not edit it.

Of each kind of file of a checkpoint the oldest and the two newest were damaged, one file at a time, in five ways. Then
a query was started from it, and `ha checkpoint verify` was asked. `N` is a number, `ID` an id, and `STORE` a store of a
join. `plain` has no state; of the others only the files of state are damaged, and commits where these name its ids.

| a cell says | Spark | `ha checkpoint verify` |
|---|---|---|
| starts | starts, and goes on with the same rows | says that it can be continued |
| repaired | starts from an older version of the state, with the same rows | says so, and names the file |
| told | fails, or goes on with other rows | names the file; export, adopt, replicate and savepoints refuse |
| told by sums | fails, or goes on with other rows | names the file with `--checksums`, which reads all contents |
| altered | starts with what is there, whatever it is | says that it is not what was written; tools refuse |
| not knowable | starts with other rows, or fails | says that it can be continued: the byte keeps the form |
| **not told** | fails, or goes on with other rows | says that it can be continued |
| *told, and starts* | starts, and goes on with the same rows | names the file |

A place is `file`, with Hadoop's check sums beside each file, as Spark writes on `file://`; or `bare`, without these, as
another tool has copied it; or `hdfs`, where HDFS has taken what was written wrong for right. What a disk has changed
below HDFS is found by its own sums, and is not in this table. A case that is not in it was not run.
"""
UNKNOWABLE_HEAD = """
## Not knowable

Nothing here can know these, and no file is longer, shorter or of another form for them:

- The log of a source, without a check sum: a byte in the name or the time of an input file makes it another input
  file, which Spark has not read yet. On HDFS only what was written wrong can be so; on `file://` it is *altered*.
- A digit in the time at which a rate source began: Spark takes any time, and may fail with the batch that it had begun.
- A letter in the name of a type in a schema: any name is taken here, since Spark gets more types with its versions.
- A table of RocksDB (`.sst`): its blocks have sums that only RocksDB computes. Spark starts, and its batch fails.

| file | damage | where |
|---|---|---|
"""
DIFFER_HEAD = """
## What differs
"""
REST_HEAD = """
## Each kind of file

Kinds that have the same cells share a row. *Where* numbers the cases; all are those in which the kind occurs.
A kind is split into *begun* and *complete* where a newest batch that was only begun changes its cells.
"""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_JOIN = re.compile(r"(left|right)-key[A-Za-z]+")
_NUMBER = re.compile(r"(?<=[/_.])[0-9]+(?=[./_-]|$)")

Cells = dict[str, dict[str, list[str]]]


class Case(TypedDict):
    """What is kept of a case: verdicts by kind of file and damage, and a sentence for each difference."""

    rows: int
    differ: list[str]
    cells: Cells


def kind(path: str) -> str:
    """Return what kind of file it is: its path without numbers, ids and the stores of a join."""
    return _NUMBER.sub("N", _ID.sub("ID", _JOIN.sub("STORE", path)))


def page(found: dict[str, Case]) -> str:
    lines = [
        HEAD.format(spark=version("pyspark")),
        "| case | program, source or state, place | tried |",
        "|---:|---|---:|",
        *(f"| {number} | {case} | {said['rows']} |" for number, (case, said) in enumerate(found.items(), 1)),
        f"| | all | {sum(said['rows'] for said in found.values()):,} |",
    ]
    differ = [fill(f"- {case}: {each}", 118) for case, said in found.items() for each in said["differ"]]
    lines += [UNKNOWABLE_HEAD + "\n".join(_unknowable(_numbered(found))), DIFFER_HEAD, *(differ or ["Nothing."])]
    return "\n".join([*lines, REST_HEAD, *_kinds(_numbered(found)), ""])


def _numbered(found: dict[str, Case]) -> dict[str, Case]:
    return {str(number): said for number, said in enumerate(found.values(), 1)}


def _unknowable(found: dict[str, Case]) -> list[str]:
    """Return a row for each damage of a kind of file that nothing here can know."""
    where: dict[str, list[str]] = defaultdict(list)
    for case, said in found.items():
        for name, cells in said["cells"].items():
            damages = ", ".join(each for each in COLUMNS if UNKNOWABLE in cells.get(each, []))
            row = f"| `{name.removesuffix(BEGUN)}` | {damages} |"
            if damages and case not in where[row]:
                where[row].append(case)
    return [f"{row} {', '.join(cases)} |" for row, cases in sorted(where.items())]


def _kinds(found: dict[str, Case]) -> list[str]:
    """Return the table of cells: a row for all kinds of files that have the same cells in the same cases."""
    rows: dict[tuple[str, ...], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    places: Counter[str] = Counter()
    for case, said in found.items():
        for name, cells in _merged(said["cells"]).items():
            rows[cells][name].append(case)
            places[name.partition(" ")[0]] += not name.endswith("(begun)")
    shared: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cells, names in rows.items():
        for name, cases in names.items():
            path, _, mark = name.partition(" ")
            where = "all" if len(cases) == places[path] else ", ".join(cases)
            shared[where, " | ".join(cells)].append(f"`{path}` {mark}".strip())
    lines = sorted(f"| {', '.join(files)} | {where} | {cells} |" for (where, cells), files in shared.items())
    return [f"| file | where | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 2) + "|", *lines]


def _merged(cells: Cells) -> dict[str, tuple[str, ...]]:
    """Return the cells by kind of file; a kind is named twice only if a batch that was begun changes its cells."""
    said = {
        name: tuple(", ".join(sorted(each.get(damage, ["-"]))) for damage in COLUMNS) for name, each in cells.items()
    }
    merged = {}
    for name, each in said.items():
        path = name.removesuffix(BEGUN)
        if said.get(f"{path}{BEGUN}", each) == said.get(path, each):
            merged[path] = each
        else:
            merged[f"{path} ({'begun' if name != path else 'complete'})"] = each
    return merged


def write(found: dict[str, Case]) -> None:
    PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    write(json.loads(FILE.read_text(encoding="utf-8")))
