"""Guarding: keeps PySpark from starting queries that would lose rows, and reports on the queries that it starts.

A query is guarded if its checkpoint is below the leader directory, in a folder of the query's name: there the next
leader finds it, and a fenced driver cannot commit. It is exactly once if its sink also knows a batch that comes again.
``ha run`` copies this file for the program's Python; :class:`ha.spark.lead` calls it.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

WRITERS, QUERIES = "pyspark.sql.streaming.readwriter", "pyspark.sql.streaming.query"
REMOTE_WRITERS = "pyspark.sql.connect.streaming.readwriter"
LOCATION = "spark.sql.streaming.checkpointLocation"
"""Setting of Spark: each query keeps its checkpoint below it, in a directory of the query's name."""

UNGUARDED, REPEATED = "not guarded", "not exactly once"
"""How the sentence begins that is told of a query: no takeover goes on with it, or one does a batch of it again."""
EXACT = "exactly once after all: it writes with an output of ha."

SERVED = (
    "it runs in a server of Spark Connect, which goes on with it when its driver has ended, beside that of the next "
    "leader: use a classic session."
)

EVERY = "ha.every"  # property of the threads of a query whose batches all go to an output of this package: `true`
FILE = ".unguarded"  # at the end of the name of the file for `note`, after that of the report of a run
MOST = 1_000  # lines of it that are read
OPTION = "partitionby"  # option that tells the format `ha` of `partitionBy`, which Spark hides from Python data sources

LEAD = "ha.spark.driver.lead_session"

HOPELESS = re.compile(r"\b(?:InvalidSettings|InvalidName|ForeignBatch)\b")
"""Errors of this package that come again at each start of the same program."""

_QUERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
NAMELESS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Name that Spark gives to the checkpoint of a query without a name, new at each start."""

_NOTED = (
    "format", "option", "options", "outputMode", "queryName", "partitionBy", "clusterBy", "trigger", "foreachBatch",
    "foreach",
)  # fmt: skip

EXACT_FORMATS = frozenset({
    "avro", "console", "csv", "delta", "ha", "iceberg", "json", "memory", "noop", "orc", "parquet", "text", "xml",
})  # fmt: skip
"""Formats of Spark that know a batch that comes again, or keep nothing."""
EXACT_CATALOGS = ("org.apache.iceberg.spark.", "org.apache.spark.sql.delta.")
"""How the classes of catalogs begin whose tables do so; Spark's own catalog has no class."""

_ONCE_MORE = (
    "if its driver dies in a batch, the next one does that batch again, and what it had written stays: "
    "have the sink know a batch or a row that comes again, or write with the format ha or with ha.spark.Output."
)
AGAIN = f"{REPEATED}: {_ONCE_MORE}"


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


@dataclass
class Watched:
    """What a program's writers ask: the last guard that was added counts; and the queries by their names.

    Also what was said of its end, and who looks whether that is still so.
    """

    guards: list[Guard]
    queries: dict[str, Any]
    refused: tuple[str, str] = ("", "")
    said: tuple[str, str] = ("", "")
    look: Callable[[], object] = bool
    over: Callable[[], object] = bool  # the check of the last guard, while there is none
    told: set[str] = field(default_factory=set)  # queries that may repeat rows, whatever their outputs take


def fault(query: str) -> str:
    """Return what is wrong with the name of a query; empty if its checkpoint can be kept under that name."""
    if _QUERY.fullmatch(query) and not NAMELESS.fullmatch(query):
        return ""
    return (
        f"{query!r} cannot be the name of a query with a checkpoint here: use 1 to 128 letters, digits, dots, "
        "underscores and hyphens, starting with a letter or a digit, and no UUID."
    )


left_out: set[str] = set()
"""Names of checkpoints that :func:`named` has left out in this process: a command that did so has not done all."""


def named(checkpoints: Iterable[str]) -> list[str]:
    """Return the names of queries among those of checkpoints, sorted. Those that Spark makes up are of no query."""
    known = sorted(checkpoints)
    left_out.update(name for name in known if fault(name) and not NAMELESS.fullmatch(name))
    return [name for name in known if not fault(name)]


def unguarded(name: str, location: str, checkpoints: str) -> str:
    """Return why a query would not resume where it was after its driver's end; empty if it would."""
    # name: of the query; empty without.
    # location: of its checkpoint; empty if that is for Spark to choose.
    # checkpoints: where the leader keeps those of its queries.
    if location:
        folder, _, name = _path(location).rpartition("/")
        if folder != _path(checkpoints):
            return (
                f"its checkpoint {location} is not in {checkpoints}, so no takeover fences it or goes on with it: "
                "leave checkpointLocation out and set queryName, under `ha run --spark` or in ha.spark.lead."
            )
    if not name or NAMELESS.fullmatch(name):
        return "it has no name, so it begins anew at each start: set queryName."
    return fault(name)


def note(file: Path, query: str, why: str) -> None:
    """Add a report on a query to the file of its program's run; skip it if the file cannot be written."""
    with suppress(OSError), file.open("a") as lines:
        lines.write(json.dumps([query, why]) + "\n")


def noted(file: Path) -> dict[str, str]:
    """Return the last report on each query in such a file; nothing without a file."""
    try:
        found = dict(json.loads(line) for line in file.read_text().splitlines()[:MOST])
        return {query: why for query, why in found.items() if why}
    except (OSError, ValueError):
        return {}


@contextmanager
def guarded(guard: Guard) -> Iterator[None]:
    """Guard the queries that start in the block; after it none starts that this guard refuses, until the next one."""
    import pyspark.sql.streaming.readwriter as module  # noqa: PLC0415  # a sidecar has none

    from ha.hook import batch_functions, misses, recovery  # noqa: PLC0415  # stand beside a copy of this file

    for asked in (batch_functions, misses, recovery):
        asked.change(module)
    watched = change(module)
    watched.guards.append(guard)
    try:
        yield
    finally:
        watched.over = guard.check  # before it is removed: a thread may be about to start one
        watched.guards.remove(guard)


def knows_batches(query: str) -> None:
    """Withdraw a report that a query repeats rows, if nothing is in doubt but whether it has an output."""
    if (watched := _watched()) is not None and watched.guards and query not in watched.told:
        watched.guards[-1].tell(query, "")


def _watched() -> Any:
    return getattr(getattr(sys.modules.get(WRITERS), "DataStreamWriter", None), "ha_watched", None)


def change(module: Any) -> Watched:
    """Have the writers of PySpark's module ask before they start a query; return what they ask. Idempotent."""
    writer = module.DataStreamWriter
    if hasattr(writer, "ha_noted"):
        return writer.ha_watched  # type: ignore[no-any-return]
    writer.ha_noted, writer.ha_watched = (), Watched([], {})
    for name in _NOTED:
        if hasattr(writer, name):  # an older PySpark has no clusterBy
            setattr(writer, name, _noting(name, getattr(writer, name)))
    writer.start, writer.toTable = _asking(writer.start, "path"), _asking(writer.toTable, "tableName")
    return writer.ha_watched  # type: ignore[no-any-return]


def _noting(name: str, method: Any) -> Any:
    @functools.wraps(method)
    def noted(self: Any, *given: Any, **named: Any) -> Any:
        self.ha_noted = (*self.ha_noted, (name, given, named))
        return method(self, *given, **named)

    return noted


def _asking(start: Any, called: str) -> Any:
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
        place = options.pop(called, place)
        self.options(**options)
        further = (("outputMode", outputMode), ("partitionBy", partitionBy), ("format", format))
        for name, value in (*further, ("queryName", queryName)):
            if value is not None:
                getattr(self, name)(value)
        given = [place] if place is not None else []
        watched, name = self.ha_watched, ""
        guard = next(reversed(watched.guards), None)
        check = guard.check if guard else watched.over
        check()
        if guard:
            name = _ask(self, guard, table=str(place) if called != "path" else "")
        context, every = self._spark.sparkContext, _publishes(_Said(self.ha_noted).function)
        before = context.getLocalProperty(EVERY)
        context.setLocalProperty(EVERY, "true" if every else None)  # which the threads of the query inherit
        try:
            query = watched.queries[name] = start(self, *given)
        finally:
            context.setLocalProperty(EVERY, before)
        try:
            check()
        except Exception:
            query.stop()  # whoever stopped the others has not seen this one
            raise
        watched.look()
        return query

    return asked


class _Said:
    """What a program has said to a writer."""

    def __init__(self, noted: Any) -> None:
        self.options: dict[str, str] = {}
        self.format, self.name, self.mode, self.function = "", "", "", None
        self.columns: list[str] = []
        self.others: set[str] = set()
        for method, given, named in noted:
            values = [*given, *named.values()]
            if method == "option":
                self.options[str(named.get("key", given[0] if given else "")).lower()] = str(values[-1])
            elif method == "options":
                self.options.update({key.lower(): str(each) for key, each in named.items() if each is not None})
            elif method == "queryName":
                self.name = values[0]
            elif method == "outputMode":
                self.mode = str(values[0]).lower()
            elif method in ("format", "foreachBatch", "foreach"):  # the last of them counts
                self.format = {"format": str(values[0]).lower(), "foreach": method}.get(method, "")
                self.function = values[0] if method == "foreachBatch" else None
            elif method == "partitionBy":
                self.columns = list(values[0]) if values and isinstance(values[0], (list, tuple)) else values
            elif method == "trigger":
                self.others.update(key for key, each in named.items() if each)
            else:
                self.others.add(method)


def _ask(writer: Any, guard: Guard, *, table: str) -> str:
    """Refuse a query that would lose rows, tell of one that may; return its name."""
    said = _Said(writer.ha_noted)
    name = said.options.get("queryname", said.name)
    location = _place(writer, said, name, guard.checkpoints)
    elsewhere = unguarded(name, location, guard.checkpoints)
    why = elsewhere or writer.ha_lost(writer, said.format, said.mode)
    ours = said.format == "ha" or _publishes(said.function)
    called = _called(name)
    writer.ha_watched.told.discard(name)
    if (why and ours) or (elsewhere and name and not location):
        raise guard.refuse(f"{called} is not started: {why}")
    if said.format == "memory" and why and not elsewhere:  # a checkpoint of its name would bar each further start
        writer.option("checkpointLocation", f"{guard.checkpoints}/{uuid.uuid4()}")
    if ours:
        _check(said, called, guard, table=bool(table))
    if said.format == "ha":
        if said.columns and OPTION not in said.options:
            writer.option("partitionBy", ",".join(said.columns))
        # Spark looks for a format of Python's in the session of this thread, and only the first thread has one.
        writer._spark._jvm.SparkSession.setActiveSession(writer._spark._jsparkSession)  # noqa: SLF001
    if why:
        guard.tell(name, f"{UNGUARDED}: {why}")
    elif not ours:
        doubt, for_good = _doubt(writer, said, table)
        if doubt:
            guard.tell(name, doubt)
            writer.ha_watched.told.update({name} if for_good else ())
    return str(name)


def _place(writer: Any, said: _Said, name: str, checkpoints: str) -> str:
    """Return where a query keeps its checkpoint; empty for its leader's folder, which another session is told."""
    location = said.options.get("checkpointlocation", "")
    default = writer._spark.conf.get(LOCATION, None) or ""  # noqa: SLF001  # a Connect session has no such writer
    if location or _path(default) == _path(checkpoints):
        return location
    if name and not (default or fault(name)):  # of another session than the one that leads
        writer.option("checkpointLocation", f"{checkpoints}/{name}")
        return ""
    return f"{default}/{name}" if default else "in a temporary directory"


def _check(said: _Said, called: str, guard: Guard, *, table: bool) -> None:
    """Refuse options that Spark hides from Python data sources and functions, and drops."""
    format_ha = said.format == "ha"
    wrong = {"continuous", "realTime"} & said.others
    if wrong:
        raise guard.refuse(f"{called} is not started: {min(wrong)} has no batches to publish; choose another trigger.")
    if "clusterBy" in said.others:
        raise guard.refuse(f"{called} is not started: its output cannot be clustered; leave clusterBy out.")
    if table and format_ha:
        raise guard.refuse(f"{called} is not started: the format ha writes to a path, not to a table; use start().")
    lost = said.columns and not format_ha
    if lost or (format_ha and said.options.get(OPTION, ",".join(said.columns)) != ",".join(said.columns) != ""):
        where = "say it once, by partitionBy" if format_ha else "say partition_by to Output"
        raise guard.refuse(f"{called} is not started: partitionBy {', '.join(said.columns)} would be lost; {where}.")
    if unknown := sorted(said.options.keys() - {"checkpointlocation", "queryname"}) if not format_ha else []:
        raise guard.refuse(
            f"{called} is not started: the option {unknown[0]} would be lost, because Output writes the files; "
            "give it to Output, if it is known there."
        )


def _called(name: str) -> str:
    return f"The query {name!r}" if name else "A query without a name"


def _publishes(function: Any) -> bool:
    """Whether a function of foreachBatch is an output of this package."""
    return type(getattr(function, "__self__", function)).__module__.startswith("ha.spark.")


def _doubt(writer: Any, said: _Said, table: str) -> tuple[str, bool]:
    """Return why a query may repeat rows, empty if it does not; and whether that is so whatever its outputs take."""
    if said.function is not None:
        has_output, beside = writer.ha_reads(said.function)
        why = f"{REPEATED}: {beside}, which may write elsewhere: {_ONCE_MORE}" if beside else AGAIN
        return "" if has_output and not beside else why, bool(beside)
    get = writer._spark.conf.get  # noqa: SLF001
    form = said.format or str(get("spark.sql.sources.default", None) or "parquet").lower()
    if form not in EXACT_FORMATS:
        return f"{REPEATED}: nobody knows of {form} that it takes a batch once: {_ONCE_MORE}", True
    for name in (table.partition(".")[0], get("spark.sql.defaultCatalog", None) or "spark_catalog") if table else ():
        if kind := get(f"spark.sql.catalog.{name}", None):
            why = f"{REPEATED}: nobody knows of the catalog {name} that its tables take a batch once: {_ONCE_MORE}"
            return "" if kind.startswith(EXACT_CATALOGS) else why, True
    return "", True


def _path(uri: str) -> str:
    return urlsplit(uri)._replace(scheme="", netloc="").geturl().rstrip("/")


def files(plan: Mapping[str, str]) -> dict[str, Mapping[str, str] | None]:
    """Return the file of this module, with its plan, and those that are asked; see :mod:`ha.hook.entry`."""
    from ha.hook import batch_functions, misses, recovery  # noqa: PLC0415  # stand beside a copy of this file

    return {f"{each.__file__}": None for each in (batch_functions, misses, recovery)} | {__file__: plan}


def changes(plan: Mapping[str, str]) -> Mapping[str, Callable[[Any], None]]:
    """Return what is changed in a program of ``ha run``."""
    # plan: the URI of `checkpoints`, the `file` for `note`, and the one in which a program tells of its `end`: see
    # `ha.program.end_file`.
    file = Path(plan["file"])

    def tell(query: str, why: str) -> None:
        if why or query in noted(file):
            sys.stderr.write(f"WARNING: {_called(query)} is {why or EXACT}\n")
            note(file, query, why)

    def end(said: str, remedy: str, *, inside: bool = False) -> None:
        staged = Path(f"{plan['end']}.staged")
        with suppress(OSError):
            staged.write_text(json.dumps({"said": said, "remedy": remedy, "inside": inside} if said else {}))
            staged.replace(plan["end"])

    def changed(module: Any) -> None:
        watched = change(module)

        def refused(said: str) -> Exception:
            watched.refused = watched.said = (said, said.rstrip("."))
            end(*watched.refused)
            return Refused(said)

        watched.look = functools.partial(_look, watched, end)
        watched.guards.insert(0, Guard(plan["checkpoints"], tell, refused))
        atexit.register(watched.look)

    def served(module: Any) -> None:
        for name in ("start", "toTable"):
            setattr(module.DataStreamWriter, name, _telling(getattr(module.DataStreamWriter, name), tell))

    return {WRITERS: changed, QUERIES: _look_after_waits, REMOTE_WRITERS: served}


def _telling(start: Any, tell: Callable[[str, str], object]) -> Any:
    """Return a start that tells of a query in a server of Spark Connect; one of this host ends with the driver."""

    @functools.wraps(start)
    def told(self: Any, *given: Any, **named: Any) -> Any:
        query = start(self, *given, **named)
        if "SPARK_LOCAL_REMOTE" not in os.environ:  # PySpark's, of a server that it has started
            tell(query.name or "", f"{UNGUARDED}: {SERVED}")
        return query

    return told


def _look(watched: Watched, end: Callable[..., object]) -> None:
    """Report a query that has failed, or still runs: an exit code of 0, now or by ``os._exit``, is no success then."""
    if LEAD in sys.modules:  # which tells of it
        return
    said, inside, unknown = watched.refused, False, False
    for name, query in list(watched.queries.items()):
        try:
            error, active = query.exception(), query.isActive
        except Exception:  # noqa: BLE001  # py4j's: the JVM is gone
            unknown = True
            continue
        if error is not None:
            remedy = "do what its error says" if HOPELESS.search(str(error)) else ""
            said, inside = (f"{_called(name)} has failed: {str(error).splitlines()[0]}", remedy), False
            break
        if active:
            why = "was still active when its program ended: stop it before, if that is meant"
            said, inside = (f"{_called(name)} {why}", ""), True
    if said != watched.said and not (unknown and said == watched.refused):  # then what was said may be true
        watched.said = said
        end(*said, inside=inside)


def _look_after_waits(module: Any) -> None:
    """Have it looked at queries when a program has waited for one, or has stopped it."""
    query, manager = module.StreamingQuery, module.StreamingQueryManager
    for kind, name in ((query, "awaitTermination"), (query, "stop"), (manager, "awaitAnyTermination")):
        setattr(kind, name, _looking(getattr(kind, name)))


def _looking(method: Any) -> Any:
    @functools.wraps(method)
    def looked(self: Any, *given: Any, **named: Any) -> Any:
        try:
            return method(self, *given, **named)
        finally:
            if (watched := _watched()) is not None:
                watched.look()

    return looked
