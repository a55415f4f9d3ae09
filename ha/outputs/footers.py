"""Footers: reads those of the files of a merge, and makes the one that comes behind them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

from ha.outputs.merge_plan import Merge
from ha.outputs.parquet_footer import END, alike, joined, length, parsed
from ha.outputs.thrift_compact import Fields
from store.errors import Invalid

READERS = 16
"""Files that are read at once."""

FIRST_LOOK = 64 << 10
"""Bytes at the end of a file that are read first: most footers are shorter."""


Tail = Callable[[str, int], bytes]
"""Returns the last bytes of a file of the output: its path, and how many at most."""


class Footed(NamedTuple):
    """A merge that can be begun, or files that are left alone.

    Attributes:
        merge: the plan; with a footer if it needs one.
        footer: its bytes; none if the plan has none.
        problem: why the files are left alone; empty if they can be merged.
    """

    merge: Merge
    footer: bytes = b""
    problem: str = ""


def footed(tail: Tail, merge: Merge) -> Iterator[Footed]:
    """Return what becomes of a planned merge: itself, or several, because files of two schemas are no file.

    Args:
        tail: reads; it raises ``NotFound`` or another ``StoreError``.
        merge: as it was planned.

    Raises:
        NotFound: a file is gone.
        StoreError: the store did not answer.
    """
    if not merge.needs_footer:
        yield Footed(merge)
        return
    names = list(merge.files)
    with ThreadPoolExecutor(READERS, "ha-footers") as crew:
        found = list(crew.map(partial(_read, tail, merge.partition), names))
    row: list[tuple[str, Fields]] = []
    for name, each in zip(names, found, strict=True):
        if isinstance(each, Invalid):
            yield from _runs(merge, row)
            row = []
            yield Footed(merge.part([name]), problem=f"{name}: {each}")
        else:
            row.append((name, each))
    yield from _runs(merge, row)


def _runs(merge: Merge, row: list[tuple[str, Fields]]) -> Iterator[Footed]:
    for run in alike([footer for _, footer in row]):
        part = merge.part([row[number][0] for number in run])
        if len(run) == 1:
            yield Footed(part, problem="no file beside it has the same schema and writer")
            continue
        footer = joined((row[number][1], merge.files[row[number][0]]) for number in run)
        yield Footed(part.with_footer(len(footer)), footer)


def _read(tail: Tail, partition: str, name: str) -> Fields | Invalid:
    path = f"{partition}/{name}".lstrip("/")
    try:
        data = tail(path, FIRST_LOOK)
        needed = length(data[-END:])
        if needed > len(data):
            data = tail(path, needed)
        if needed > len(data):
            return Invalid("it is shorter than its footer")
        return parsed(data[-needed:])
    except Invalid as error:
        return error
