"""Guarding: keeps PySpark from starting queries that would lose rows, and tells of those that may.

:class:`ha.spark.lead` calls it, and :mod:`ha.hook.run_hook`. The rules are those of :mod:`ha.hook.query_rules`.
"""

from __future__ import annotations

import functools
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from . import batch_functions, file_sinks, misses
from .query_rules import NAMELESS, REPEATED, UNGUARDED, called, fault, path_of, unguarded
from .writer_calls import WriterCalls, note_calls

WRITERS = "pyspark.sql.streaming.readwriter"
LOCATION = "spark.sql.streaming.checkpointLocation"
"""Setting of Spark: each query keeps its checkpoint below it, in a directory of the query's name."""

EVERY = "ha.every"  # property of the threads of a query whose batches all go to an output of this package: `true`
OPTION = "partitionby"  # option that tells the format `ha` of `partitionBy`, which Spark hides from Python data sources

EXACT_FORMATS = file_sinks.FORMATS | {"console", "delta", "ha", "iceberg", "memory", "noop"}
"""Formats of Spark that know a batch that comes again, or keep nothing."""
EXACT_CATALOGS = ("org.apache.iceberg.spark.", "org.apache.spark.sql.delta.")
"""How the classes of catalogs begin whose tables do so; Spark's own catalog has no class."""

_ONCE_MORE = (
    "if its driver dies in a batch, the next one does that batch again, and what it had written stays: "
    "have the sink know a batch or a row that comes again, or write with the format ha or with ha.spark.Output."
)
AGAIN = f"{REPEATED}: {_ONCE_MORE}"
BEGINS_ANEW = (
    "its rows are in the memory of its driver, and Spark continues no such query: it begins anew at each start."
)
FORGETS = (
    "its source socket keeps nothing: rows that were read, but are in no batch that is done, are lost with the driver, "
    "and the rows after a new start may be as well. Take a source that keeps its rows, as files or Kafka."
)


class Refused(ValueError):
    """A query that is not started."""


@dataclass(frozen=True)
class Guard:
    """The rules of one leadership."""

    checkpoints: str  # URI of the folder with the checkpoints of its queries
    # Called with the name of each query that may lose rows or repeat them, and with a sentence that begins with
    # `UNGUARDED` or `REPEATED`; with an empty one if that was not so.
    tell: Callable[[str, str], object]
    refuse: Callable[[str], Exception] = Refused  # what is raised instead of a start
    check: Callable[[], object] = bool  # raises once the leadership has ended: nothing begins after that
    copies: bool = False  # whether the checkpoints are copies: the queries themselves may have come further
    teach: Callable[[Any], object] = bool  # tells a session of the format `ha`, before its first query with it


@dataclass
class Watched:
    """What a program's writers ask: the last guard that was added counts; and the queries by their names, or ids.

    Also what was said of its end, and who looks whether that is still so.
    """

    guards: list[Guard]
    queries: dict[str, Any]
    refused: tuple[str, str] = ("", "")
    said: tuple[str, str] = ("", "")
    started: Callable[[], object] = bool
    look: Callable[[], object] = bool
    over: Callable[[], object] = bool  # the check of the last guard, while there is none
    told: set[str] = field(default_factory=set)  # queries that may repeat rows, whatever their outputs take
    sinks: file_sinks.FileSinks = field(default_factory=file_sinks.FileSinks)

    def note(self, name: str, query: Any) -> None:
        """Keep a query that has started, in place of the one of its name, or of those without one that have ended."""
        if not name:
            for ended in [each for each in self.queries if NAMELESS.fullmatch(each) and not self.runs(each)]:
                del self.queries[ended]
            name = str(getattr(query, "id", ""))
            self.sinks.begun(name)
        self.queries[name] = query

    def runs(self, query: str) -> bool:
        """Whether a query of that name runs; not if that is not known."""
        with suppress(Exception):  # py4j's, or there is none
            return bool(self.queries[query].isActive)
        return False


@contextmanager
def guarded(guard: Guard) -> Iterator[None]:
    """Guard the queries that start in the block; after it none starts that this guard refuses, until the next one."""
    import pyspark.sql.streaming.readwriter as module  # noqa: PLC0415  # a sidecar has none

    watched = change(module)
    watched.guards.append(guard)
    try:
        yield
    finally:
        watched.over = guard.check  # before it is removed: a thread may be about to start one
        watched.guards.remove(guard)


def was_stopped(query: Any) -> bool:
    """Whether the program has stopped the Spark context of a query, which ends all of them with an error."""
    return bool(query._jsq.sparkSession().sparkContext().isStopped())  # noqa: SLF001


def knows_batches(query: str) -> None:
    """Withdraw a report that a query repeats rows, if nothing is in doubt but whether it has an output."""
    if (watched := watched_of()) is not None and watched.guards and query not in watched.told:
        watched.guards[-1].tell(query, "")


def watched_of() -> Any:
    """Return what the program's writers ask; None before they were changed."""
    return getattr(getattr(sys.modules.get(WRITERS), "DataStreamWriter", None), "ha_watched", None)


def change(module: Any) -> Watched:
    """Have the writers of PySpark's module ask before they start a query; return what they ask. Idempotent."""
    writer = module.DataStreamWriter
    if hasattr(writer, "ha_noted"):
        return writer.ha_watched  # type: ignore[no-any-return]
    writer.ha_watched = Watched([], {})
    misses.change(writer)  # first: what the program has given is noted before it is wrapped
    note_calls(writer)
    writer.start, writer.toTable = _asking(writer.start, "path"), _asking(writer.toTable, "tableName")
    return writer.ha_watched  # type: ignore[no-any-return]


def _asking(start: Any, place_is: str) -> Any:
    @functools.wraps(start)
    def asked(
        self: Any,
        place: Any = None,
        format: Any = None,  # noqa: A002  # as PySpark calls it
        outputMode: Any = None,  # noqa: N803
        partitionBy: Any = None,  # noqa: N803
        queryName: Any = None,  # noqa: N803
        **options: Any,
    ) -> Any:
        place = options.pop(place_is, place)
        self.options(**options)
        further = (("outputMode", outputMode), ("partitionBy", partitionBy), ("format", format))
        for name, value in (*further, ("queryName", queryName)):
            if value is not None:
                getattr(self, name)(value)
        watched, name = self.ha_watched, ""
        guard = next(reversed(watched.guards), None)
        check = guard.check if guard else watched.over
        check()
        if guard:
            name = _ask(self, guard, place, table=place_is != "path")
        context, every = self._spark.sparkContext, _publishes(WriterCalls(self.ha_noted).function)
        before = context.getLocalProperty(EVERY)
        context.setLocalProperty(EVERY, "true" if every else None)  # which the threads of the query inherit
        try:
            query = start(self, *([place] if place is not None else []))
            watched.note(name, query)
        finally:
            context.setLocalProperty(EVERY, before)
        try:
            check()
        except Exception:
            query.stop()  # whoever stopped the others has not seen this one
            raise
        watched.started()
        watched.look()
        return query

    return asked


def _ask(writer: Any, guard: Guard, place: Any, *, table: bool) -> str:
    """Refuse a query that would lose rows, tell of one that may; return its name."""
    # place: the path or the table to which it writes; None if its options say it.
    said = WriterCalls(writer.ha_noted)
    name = said.options.get("queryname", said.name)
    location = _place(writer, said, name, guard.checkpoints)
    elsewhere = unguarded(name, location, guard.checkpoints)
    why = elsewhere or _lost(writer, said.format, said.mode)
    ours = said.format == "ha" or _publishes(said.function)
    writer.ha_watched.told.discard(name)
    writer.ha_watched.sinks.forget(name)
    dropped = _dropped(said, table=table) if ours else _skipped(writer, said, name, place, guard, table=table)
    if refused := why if (why and ours) or (elsewhere and name and not location) else dropped:
        raise guard.refuse(f"{called(name)} is not started: {refused}")
    if said.format == "memory" and why and not elsewhere:  # a checkpoint of its name would bar each further start
        writer.option("checkpointLocation", f"{guard.checkpoints}/{uuid.uuid4()}")
    if said.format == "ha":
        guard.teach(writer._spark)  # noqa: SLF001
        if said.columns and OPTION not in said.options:
            writer.option("partitionBy", ",".join(said.columns))
        # Spark looks for a format of Python's in the session of this thread, and only the first thread has one.
        writer._spark._jvm.SparkSession.setActiveSession(writer._spark._jsparkSession)  # noqa: SLF001
    if why:
        guard.tell(name, f"{UNGUARDED}: {why}")
    elif not ours:
        doubt, for_good = _doubt(writer, said, str(place) if table else "")
        if doubt:
            guard.tell(name, doubt)
            writer.ha_watched.told.update({name} if for_good else ())
    return str(name)


def _place(writer: Any, said: WriterCalls, name: str, checkpoints: str) -> str:
    """Return where a query keeps its checkpoint; empty for its leader's folder, which another session is told."""
    location = said.options.get("checkpointlocation", "")
    default = writer._spark.conf.get(LOCATION, None) or ""  # noqa: SLF001  # a Connect session has no such writer
    if location or path_of(default) == path_of(checkpoints):
        return location
    if name and not (default or fault(name)):  # of another session than the one that leads
        writer.option("checkpointLocation", f"{checkpoints}/{name}")
        return ""
    return f"{default}/{name}" if default else "in a temporary directory"


def _dropped(said: WriterCalls, *, table: bool) -> str:
    """Return what Spark hides from Python data sources and functions, and drops; empty if it is nothing."""
    format_ha, columns = said.format == "ha", said.columns
    if wrong := {"continuous", "realTime"} & said.others:
        return f"{min(wrong)} has no batches to publish; choose another trigger."
    if "clusterBy" in said.others:
        return "its output cannot be clustered; leave clusterBy out."
    if table and format_ha:
        return "the format ha writes to a path, not to a table; use start()."
    if columns and (not format_ha or said.options.get(OPTION, ",".join(columns)) != ",".join(columns)):
        where = "say it once, by partitionBy" if format_ha else "say partition_by to Output"
        return f"partitionBy {', '.join(columns)} would be lost; {where}."
    if unknown := said.options.keys() - {"checkpointlocation", "queryname"} if not format_ha else ():
        why = "because Output writes the files; give it to Output, if it is known there."
        return f"the option {min(unknown)} would be lost, {why}"
    return ""


def _skipped(writer: Any, said: WriterCalls, name: str, place: Any, guard: Guard, *, table: bool) -> str:
    """Return why Spark's file sink would drop batches of a query; empty if it would not."""
    path = said.options.get("path", "") if place is None or table else str(place)
    if said.function is not None or not (path or table) or _form(writer, said) not in file_sinks.FORMATS:
        return ""
    watched, spark = writer.ha_watched, writer._spark  # noqa: SLF001

    def hadoop() -> tuple[Any, Any]:
        return spark._jsparkSession.sessionState(), spark._jvm.org.apache.hadoop.fs.Path  # noqa: SLF001

    default = spark.conf.get(LOCATION, None) or guard.checkpoints
    checkpoint = said.options.get("checkpointlocation", f"{default}/{name}" if name else "")
    copies = any(each.copies for each in watched.guards)  # that of ha.spark.lead does not know of a dry run
    made = str(place) if table else ""
    return str(watched.sinks.fault(hadoop, name, path, checkpoint, watched.runs, table=made, copies=copies))


def _form(writer: Any, said: WriterCalls) -> str:
    """Return the format of a query, which may be Spark's default."""
    conf = writer._spark.conf  # noqa: SLF001
    return said.format or str(conf.get("spark.sql.sources.default", None) or "parquet").lower()


def _publishes(function: Any) -> bool:
    """Whether a function of foreachBatch is an output of this package."""
    return type(getattr(function, "__self__", function)).__module__.startswith("ha.spark.")


def _doubt(writer: Any, said: WriterCalls, table: str) -> tuple[str, bool]:
    """Return why a query may repeat rows, empty if it does not; and whether that is so whatever its outputs take."""
    if said.function is not None:
        has_output, beside = batch_functions.read(said.function)
        why = f"{REPEATED}: {beside}, which may write elsewhere: {_ONCE_MORE}" if beside else AGAIN
        return "" if has_output and not beside else why, bool(beside)
    get = writer._spark.conf.get  # noqa: SLF001
    form = _form(writer, said)
    if form not in EXACT_FORMATS:
        return f"{REPEATED}: nobody knows of {form} that it takes a batch once: {_ONCE_MORE}", True
    for name in (table.partition(".")[0], get("spark.sql.defaultCatalog", None) or "spark_catalog") if table else ():
        if kind := get(f"spark.sql.catalog.{name}", None):
            why = f"{REPEATED}: nobody knows of the catalog {name} that its tables take a batch once: {_ONCE_MORE}"
            return "" if kind.startswith(EXACT_CATALOGS) else why, True
    return "", True


def _lost(writer: Any, form: str, mode: str) -> str:
    """Return why a query of this format and output mode loses rows or begins anew with its driver; empty if not."""
    if form == "memory" and mode != "complete":  # Spark: DataStreamWriter.startQuery, recoverFromCheckpointLocation
        return BEGINS_ANEW
    return FORGETS if "socket" in _sources(writer) else ""


def _sources(writer: Any) -> Iterator[str]:
    with suppress(Exception):  # py4j's: then the start says what is wrong
        leaves = writer._df._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001
        for number in range(leaves.size()):
            yield str(leaves.apply(number).toString())
