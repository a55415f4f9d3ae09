"""The cut: in the driver of a dry run, no query writes to its sink, and each runs one batch from a copy.

A dry run copies this file beside the entry of a hook (:mod:`ha.hook.entry`), so that every driver loads it, whatever it
is started by. So it imports nothing of this package, which the driver may not have.

- The sink of each query is replaced by Spark's ``noop`` when it starts. A function of ``foreachBatch`` is not called.
- ``cleanSource`` is off, by which Spark would delete the files that a query has read.
- Queries with a checkpoint run until the batch after the one that was copied is complete; then they lie idle. For all
  others, and for those that fail, the program gets a query that does nothing. So it notices no end to react to.
- :data:`GUARD` names :data:`NO_CUT`, a class that does not exist, without which no checkpoint is opened. The cut takes
  it away before it starts its first query. So a program that the cut does not reach starts no query at all.
"""

import json
import os
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

GUARD = "spark.sql.streaming.checkpointFileManagerClass"
NO_CUT = "ha.preflight.Cut"
LOCATION = "checkpointlocation"
WRITERS, QUERIES = "pyspark.sql.streaming.readwriter", "pyspark.sql.streaming.query"
NEVER = "1 day"  # time between two batches: the second one is not waited for
POLL_S = 0.05
AFTERWARDS_S = 5.0  # longest wait for Spark to take note of the end of a query

Plan = dict[str, Any]
"""What the dry run has written for the program's process.

- ``mark``: every path of a copy contains it.
- ``idle``: URI of a directory for the checkpoints of queries that do nothing.
- ``report``: the file that gets lines about each query.
- ``queries``: by name, the ``batch`` to complete, and the names of the ``settings`` that are frozen.
"""

_judged: set[str] = set()


def changes(plan: Plan) -> dict[str, Callable[[Any], None]]:
    """Return what is changed in PySpark; Python's workers never import that part of it. See :mod:`ha.hook.entry`."""
    return {WRITERS: partial(_cut, plan=plan), QUERIES: partial(_note_waiting, plan=plan)}


def _cut(module: Any, plan: Plan) -> None:
    _cut_writer(module.DataStreamWriter, plan)
    _cut_reader(module.DataStreamReader)


def _cut_writer(writer: Any, plan: Plan) -> None:
    begin, start, option, named = writer.__init__, writer.start, writer.option, writer.queryName

    def begin_noting(self: Any, rows: Any) -> None:
        begin(self, rows)
        self.ha_session, self.ha_name, self.ha_location = rows.sparkSession, None, None
        self.ha_rows = rows

    def option_noting(self: Any, key: str, value: Any) -> Any:
        if key.lower() == LOCATION:
            self.ha_location = str(value)
        return option(self, key, value)

    def name_noting(self: Any, queryName: str) -> Any:  # noqa: N803  # as PySpark calls it
        self.ha_name = queryName
        return named(self, queryName)

    def start_cut(
        self: Any,
        path: Any = None,
        format: Any = None,  # noqa: A002  # as PySpark calls it
        outputMode: Any = None,  # noqa: N803
        partitionBy: Any = None,  # noqa: N803
        queryName: Any = None,  # noqa: N803
        **options: Any,
    ) -> Any:
        del path, format, partitionBy  # of the sink
        self.options(**options)
        if outputMode is not None:
            self.outputMode(outputMode)
        if queryName is not None:
            self.queryName(queryName)
        return _Dry(self, plan, start).run()

    writer.__init__, writer.start, writer.toTable = begin_noting, start_cut, start_cut
    writer.option, writer.options, writer.queryName = option_noting, _options, name_noting


def _cut_reader(reader: Any) -> None:
    option = reader.option

    def option_kept(self: Any, key: str, value: Any) -> Any:
        return option(self, key, "off" if key.lower() == "cleansource" else value)

    reader.option, reader.options = option_kept, _options


def _options(self: Any, **options: Any) -> Any:
    for key, value in options.items():
        if value is not None:  # as PySpark does
            self.option(key, value)
    return self


def _note_waiting(module: Any, plan: Plan) -> None:
    """Report when the program's main thread waits for queries to end: then it has started all of them."""
    for kind, name in (
        (module.StreamingQuery, "awaitTermination"),
        (module.StreamingQueryManager, "awaitAnyTermination"),
    ):
        wait = getattr(kind, name)

        def waiting(self: Any, timeout: Any = None, wait: Any = wait) -> Any:
            if timeout is None and threading.current_thread() is threading.main_thread():
                _tell(plan, "", waiting=True)
            return wait(self, timeout)

        setattr(kind, name, waiting)


class _Dry:
    """The dry run of one query."""

    def __init__(self, writer: Any, plan: Plan, start: Callable[[Any], Any]) -> None:
        self._writer, self._plan, self._start = writer, plan, start
        self._spark = writer.ha_session
        self._elsewhere = writer.ha_location is not None and plan["mark"] not in writer.ha_location
        place = "" if self._elsewhere else (writer.ha_location or "")
        self._name: str = writer.ha_name or place.rstrip("/").rpartition("/")[2]

    def run(self) -> Any:
        """Return an idle query in place of this one, after reporting on this one."""
        known = self._plan["queries"].get(self._name)
        if self._name in _judged:
            return self._idle()
        if known is None or self._elsewhere:
            self._tell(unseen=self._writer.ha_location or "")
            return self._idle()
        _judged.add(self._name)
        settings = {each: self._spark.conf.get(each, None) for each in known["settings"]}
        self._tell(begun=True, settings={each: value for each, value in settings.items() if value is not None})
        try:
            query = self._begin(self._writer)
        except Exception as error:  # noqa: BLE001  # of Spark, or of py4j
            self._tell(error=str(error))
            return self._idle()
        while query.isActive:
            if done := [each for each in query.recentProgress if each["batchId"] >= known["batch"]]:
                sources = [each["description"] for each in done[0]["sources"]]
                self._tell(done=True, sources=sources, names=_names_of_sources(self._writer.ha_rows))
                return query
            time.sleep(POLL_S)
        with suppress(Exception):  # which it has ended with
            query.awaitTermination(AFTERWARDS_S)
        self._spark.streams.resetTerminated()  # or a program that waits for any query would end with this one
        self._tell(error=str(query.exception() or "It has ended before its batch was complete."))
        return self._idle()

    def _begin(self, writer: Any) -> Any:
        writer.format("noop").trigger(processingTime=NEVER)
        self._spark.conf.unset(GUARD)
        return self._start(writer)

    def _idle(self) -> Any:
        """Start a query that does nothing, under the same name."""
        writer = self._spark.readStream.format("rate").load().writeStream
        writer.option("checkpointLocation", f"{self._plan['idle']}/{uuid.uuid4().hex}")
        if self._name and not any(each.name == self._name for each in self._spark.streams.active):
            writer.queryName(self._name)
        return self._begin(writer)

    def _tell(self, **said: object) -> None:
        _tell(self._plan, self._name, **said)


def _names_of_sources(rows: Any) -> list[str]:
    """Return the names that the program has given to its sources, in their order; none before Spark 4.2."""
    found = []
    with suppress(Exception):  # of py4j: this Spark has no such names
        leaves = rows._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001
        for number in range(leaves.length()):
            said = leaves.apply(number).sourceIdentifyingName().toString()
            if said.startswith('name="'):
                found.append(said.removeprefix('name="').removesuffix('"'))
    return list(dict.fromkeys(found))


def _tell(plan: Plan, query: str, **said: object) -> None:
    """Append a line to the report, at once."""
    line = json.dumps({"query": query, **said}) + "\n"
    file = os.open(plan["report"], os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)
