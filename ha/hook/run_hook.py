"""Run hook: what ``ha run`` changes in its program: queries are guarded, and it says how they stand at its end."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .guarding import WRITERS, Guard, Refused, Watched, change, watched_of
from .hidden_end import note_end
from .query_rules import EXACT, HOPELESS, UNGUARDED, called, note, noted
from .query_watch import QueryWatch, line_of

QUERIES, REMOTE_WRITERS = "pyspark.sql.streaming.query", "pyspark.sql.connect.streaming.readwriter"
DSTREAMS, PIPELINES = "pyspark.streaming.context", "pyspark.pipelines.spark_connect_pipeline"
LEAD = "ha.spark.driver.lead_session"  # tells of the end itself

SERVED = (
    "it runs in a server of Spark Connect, which goes on with it when its driver has ended, beside that of the next "
    "leader: use a classic session."
)
OLD = (
    "it is of Spark's older streaming, whose offsets are in no leader directory: rows are lost, or come twice, at each "
    "takeover. Write it as a query, with spark.readStream."
)
OWN_STORAGE = (
    "its checkpoints are in the storage of the pipeline, so no takeover fences it: a driver that was replaced, and "
    "wakes up, can go on writing."
)


def changes(plan: Mapping[str, str]) -> Mapping[str, Callable[[Any], None]]:
    """Return what is changed in a program of ``ha run``."""
    # plan: the URI of `checkpoints`, the `file` for `note`, and the one for `note_end`. With the name of a `report`,
    # queries are watched while they run; without it, only copies of their checkpoints are used.
    file, end = Path(plan["file"]), functools.partial(note_end, plan["end"])

    def tell(query: str, why: str) -> None:
        if why or query in noted(file):
            sys.stderr.write(f"WARNING: {called(query)} is {why or EXACT}\n")
            note(file, query, why)

    def changed(module: Any) -> None:
        watched = change(module)

        def refused(said: str) -> Exception:
            watched.refused = watched.said = (said, said.rstrip("."))
            end(*watched.refused)
            return Refused(said)

        watched.look = functools.partial(_look, watched, end)
        watched.guards.insert(0, Guard(plan["checkpoints"], tell, refused, copies="report" not in plan))
        if "report" in plan:
            watch = QueryWatch(plan["report"], watched.queries, lambda: LEAD in sys.modules)
            watched.started = watch.begin
        atexit.register(watched.look)

    def served(module: Any) -> None:
        for name in ("start", "toTable"):
            setattr(module.DataStreamWriter, name, _telling(getattr(module.DataStreamWriter, name), tell))

    def of_dstreams(module: Any) -> None:
        kind = module.StreamingContext
        kind.start = _told_first(kind.start, functools.partial(tell, "DStreams", f"{UNGUARDED}: {OLD}"))

    def of_pipelines(module: Any) -> None:
        module.start_run = _told_first(
            module.start_run, functools.partial(tell, "spark-pipelines", f"{UNGUARDED}: {OWN_STORAGE}")
        )

    return {
        WRITERS: changed,
        QUERIES: _look_after_waits,
        REMOTE_WRITERS: served,
        DSTREAMS: of_dstreams,
        PIPELINES: of_pipelines,
    }


def _told_first(start: Any, tell: Callable[[], object]) -> Any:
    """Return a start of what is no query, which is told before."""

    @functools.wraps(start)
    def told(*given: Any, **named: Any) -> Any:
        tell()
        return start(*given, **named)

    return told


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
            said, inside = (f"{called(name)} has failed: {line_of(str(error))}", remedy), False
            break
        if active:
            why = "was still active when its program ended: stop it before, if that is meant"
            said, inside = (f"{called(name)} {why}", ""), True
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
            if (watched := watched_of()) is not None:
                watched.look()

    return looked
