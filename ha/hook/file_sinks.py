"""File sinks: whether Spark's own file sink would drop batches of a query without a word.

That sink knows a batch by its number alone: it takes each one up to the newest in its log, ``_spark_metadata``, for a
repetition (``FileStreamSink.addBatch``). So a query that begins anew loses as many batches as others have written
there, one that was put back loses those that it does again, and of two queries at once each loses what the other wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

FORMATS = frozenset({"avro", "csv", "json", "orc", "parquet", "text", "xml"})
LOG, OFFSETS = "_spark_metadata", "offsets"
_BATCH = re.compile(r"([0-9]{1,18})(?:\.compact)?")


class FileSinks:
    """The directories to which the queries of this driver write by Spark's file sink."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}  # the directory of each query, by its name or id; by "" of one that is started

    def forget(self, query: str) -> None:
        """Forget where a query of that name wrote: it is about to be started once more, perhaps elsewhere."""
        self._of.pop(query, None)

    def begun(self, query: str) -> None:
        """Note the id of the query without a name that was asked about last, and has started."""
        if "" in self._of:
            self._of[query] = self._of.pop("")

    def fault(
        self,
        hadoop: Callable[[], tuple[Any, Any]],
        query: str,
        path: str,
        checkpoint: str,
        runs: Callable[[str], bool],
        *,
        table: str = "",
        copies: bool = False,
    ) -> str:
        """Return why batches of a query would be dropped, and what helps; empty if none would, or it is not known."""
        # hadoop: returns the state of Spark's session, and Hadoop's class of paths, as py4j shows them.
        # path: to which it writes; of a table where it will be if it is made anew.
        # checkpoint: its directory; empty for a new one.
        # runs: whether a query of that name does.
        # copies: whether the checkpoint is a copy of one that may have come further.
        with suppress(Exception):  # py4j's: then the start says what is wrong
            folders = _Folders(*hadoop())
            place = folders.of_table(table, path) if table else folders.path(path)
            here = self._of[query] = folders.named(place)
            others = (name for name, its in self._of.items() if its == here and name != query)
            if (other := next(filter(runs, others), None)) is not None:
                return (
                    f"the query {other!r} writes to {here} as well, and Spark's file sink knows a batch by its number "
                    "alone, so it would drop batches of both without a word: give it a directory of its own."
                )
            newest = folders.newest(place, LOG)
            begun = folders.newest(folders.path(checkpoint), OFFSETS) if newest >= 0 and checkpoint else -1
            if newest > begun and not (copies and begun >= 0):
                return (
                    f"its next batch is {begun + 1}, and {here} has batches up to {newest} of another query, or of "
                    "this one before it was put back, so Spark's file sink would drop as many without a word: give it "
                    "a new directory, or the checkpoint of the query that wrote there (`ha checkpoint import`)."
                )
        return ""


class _Folders:
    """Directories, as the JVM of a session lists them. Each method raises py4j's error if there is none."""

    def __init__(self, state: Any, path: Any) -> None:
        self._state, self._settings, self.path = state, state.newHadoopConf(), path

    def of_table(self, name: str, path: str) -> Any:
        """Return the directory of a table of files, or the path at which it will be made."""
        catalog, known = self._state.catalog(), self._state.sqlParser().parseTableIdentifier(name)
        if path and not catalog.tableExists(known):
            return self.path(path)
        table = catalog.getTableMetadata(known)
        if table.provider().get().lower() not in FORMATS:
            raise ValueError(name)
        return self.path(table.location())

    def named(self, folder: Any) -> str:
        """Return the one name of a directory."""
        return str(folder.getFileSystem(self._settings).makeQualified(folder).toString()).rstrip("/")

    def newest(self, folder: Any, log: str) -> int:
        """Return the highest number of a batch in a log of Spark's in a directory; -1 if there is none."""
        where = self.path(folder, log)
        files = where.getFileSystem(self._settings)
        if not files.exists(where):
            return -1
        found = (_BATCH.fullmatch(each.getPath().getName()) for each in files.listStatus(where))
        return max((int(each[1]) for each in found if each), default=-1)
