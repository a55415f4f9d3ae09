"""Attaching: a program of an engine uses the Spark of the program before it, and the queries that run there.

``import ha.spark`` prepares that in a program that an engine has started (ha/sidecar/command/engine.py). When the
program builds its session it gets the context and the session of the JVM, if there are some. What the dead
program has left there and would call it is removed first: Python listeners, and queries with a Python ``foreachBatch``.

That must come before the JVM can call this program. It calls Python's objects by numbers that start at zero in each
program, so a batch of a dead program's query would reach any function of this one.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ha.config.sources import load
from ha.leadership.leadership import Leadership
from ha.program.exit_codes import QUERY_STUCK
from ha.spark.session.private_names import contexts_from, ignore_accumulators, python_batches, python_listeners
from leader.errors import InvalidSettings, NotLeader
from leader.job.status import Status
from store.clock import now
from store.errors import StoreError

ENGINE = "HA_ENGINE"  # variable with the number of this start of the program; missing or empty without an engine

_log = logging.getLogger("ha")


def prepare() -> None:
    """Have this program's session be the JVM's own."""
    contexts_from(_context)


def attached() -> bool:
    """Whether another program may have used this program's JVM before."""
    return int(os.environ.get(ENGINE) or 0) > 1


def reattach_or_start(spark: SparkSession, name: str, start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Return the query of this name that runs in the session, or start it.

    Under ``ha run --engine`` the queries of a program that has died run on, and so the next program reattaches them. A
    query with a Python ``foreachBatch`` cannot run on: it is started again, and does its last batch again.

    Args:
        spark: the session.
        name: of the query.
        start: starts the query and returns it; the query must have that name.

    Raises:
        InvalidSettings: what was started has another name, so that it would be started again and again.
    """
    if (running := running_queries(spark).get(name)) is not None:
        _log.info("Query %s runs, and is reattached %.2f s after the start of the program.", name, since_start())
        return running
    started = start()
    if started.name != name:
        started.stop()
        raise InvalidSettings(f"The query {name!r} was started as {started.name!r}: use queryName({name!r}).")
    return started


def since_start() -> float:
    """Return the seconds since this process was started."""
    ticks = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
    return now() - ticks / os.sysconf("SC_CLK_TCK")


def running_queries(spark: SparkSession) -> dict[str, StreamingQuery]:
    """Return the named queries of a session that run, by name."""
    return {each.name: each for each in spark.streams.active if each.name}


def reconcile(leadership: Leadership) -> None:
    """Set the job RECONCILING, whatever the dead program has left; a failure is only logged, because the queries run.

    Other states, such as CANCELLING, stay.
    """
    _change(leadership, {Status.FAILING: Status.RESTARTING})
    _change(leadership, dict.fromkeys((Status.RUNNING, Status.RESTARTING), Status.RECONCILING))


def reconciled(leadership: Leadership) -> None:
    """Set a job that is RECONCILING to RUNNING."""
    _change(leadership, {Status.RECONCILING: Status.RUNNING})


def _change(leadership: Leadership, wanted: Mapping[Status, Status]) -> None:
    try:
        if (found := leadership.status.read()) in wanted:
            leadership.status.change(found, wanted[found])
    except (StoreError, NotLeader) as error:
        _log.warning("%s: its state is not changed: %s", leadership.job, error)


def _context(jvm: Any, configuration: Any) -> Any:
    """Return the JVM's context, or a new one."""
    context = jvm.JavaSparkContext(jvm.org.apache.spark.SparkContext.getOrCreate(configuration))
    session = jvm.SparkSession.getDefaultSession()
    if session.isDefined():
        _log.info("Spark runs already, and is used by this program, %.2f s after its start.", since_start())
        _clear(jvm, session.get())
    return context


def _clear(jvm: Any, session: Any) -> None:
    """Remove what would call the dead program; the other queries run on."""
    streams = session.streams()
    for listener in python_listeners(streams):
        streams.removeListener(listener)
    stopping = [
        threading.Thread(target=_stop, args=(each,), name="ha-stop", daemon=True) for each in python_batches(session)
    ]
    for thread in stopping:
        thread.start()
    for thread in stopping:
        thread.join(load({}).command.stop_grace)
    if any(thread.is_alive() for thread in stopping):
        _stuck("It did not stop in time.")
    ignore_accumulators(jvm)


def _stop(query: Any) -> None:
    try:
        query.stop()
    except Exception as error:  # noqa: BLE001  # of Spark, whose own limit has passed, or of py4j
        _stuck(f"{error}")


def _stuck(why: str) -> None:
    _log.error("A query whose program has died could not be stopped, so its JVM has to end. %s", why)
    logging.shutdown()
    os._exit(QUERY_STUCK)
