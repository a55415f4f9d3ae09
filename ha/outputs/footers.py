"""Footers: reads those of the files of a merge, and makes the one that comes behind them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from ha.outputs import parquet_footer
from ha.outputs.merge_plan import ORC, Merge
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
        Invalid: files of ORC need packages that are not installed.
    """
    if not merge.needs_footer:
        yield Footed(merge)
        return
    form, names = _form(merge), list(merge.files)
    with ThreadPoolExecutor(READERS, "ha-footers") as crew:
        found = list(crew.map(partial(_read, tail, form, merge.partition), names))
    row: list[tuple[str, Any]] = []
    for name, each in zip(names, found, strict=True):
        if isinstance(each, Invalid):
            yield from _runs(form, merge, row)
            row = []
            yield Footed(merge.part([name]), problem=f"{name}: {each}")
        else:
            row.append((name, each))
    yield from _runs(form, merge, row)


def _form(merge: Merge) -> ModuleType:
    """Return the module that knows the footers of these files: both have the same functions."""
    if merge.target.endswith(ORC):
        try:
            from ha.outputs import orc_footer  # noqa: PLC0415  # loads pyarrow and protobuf
        except ImportError as error:
            raise Invalid("Files of ORC need pyarrow and protobuf: pip install 'hybrid-ha[spark]'.") from error
        return orc_footer
    return parquet_footer


def _runs(form: ModuleType, merge: Merge, row: list[tuple[str, Any]]) -> Iterator[Footed]:
    for run in form.alike([footer for _, footer in row]):
        part = merge.part([row[number][0] for number in run])
        if len(run) == 1:
            yield Footed(part, problem="no file beside it has the same schema and writer")
            continue
        footer = form.joined((row[number][1], merge.files[row[number][0]]) for number in run)
        yield Footed(part.with_footer(len(footer)), footer)


def _read(tail: Tail, form: ModuleType, partition: str, name: str) -> Any:
    """Return the footer of a file, or the error that says why it has none that can be used."""
    path = f"{partition}/{name}".lstrip("/")
    try:
        data = tail(path, FIRST_LOOK)
        needed = form.length(data)
        if needed > len(data):
            data = tail(path, needed)
        if needed > len(data):
            return Invalid("it is shorter than its footer")
        return form.parsed(data[-needed:])
    except Invalid as error:
        return error
