"""Frozen settings: says which settings of the session a checkpoint overrules.

Spark takes some settings from a query's checkpoint, the number of state partitions for instance. What the session says
otherwise has no effect on that query, and of that there is one line of Spark's, deep in its log.
"""

import logging
import threading
from collections.abc import Iterable, Mapping

from pyspark.sql import SparkSession

from ha.leadership.leadership import Leadership
from ha.spark.session import source_names
from ha.spark.session.spark_settings import advise
from ha.spark.stored.commit_log import newest_offsets, queries
from leader.errors import NotLeader
from leader.layout.names import SPARK
from store.errors import StoreError

_log = logging.getLogger("ha")


def differing(frozen: Mapping[str, str], session: Mapping[str, str]) -> list[str]:
    """Return what a checkpoint overrules, as ``name=value here, value there``, sorted by name."""
    return [
        f"{name}={frozen[name]} ({session[name]} in the session)"
        for name in sorted(frozen.keys() & session.keys())
        if frozen[name] != session[name]
    ]


def warn_of_frozen(spark: SparkSession, leadership: Leadership, *, each_query: bool = False) -> threading.Thread:
    """Log, for each query with state, which settings of the session have no effect on it."""
    # The checkpoints are read on a thread, which is returned: three requests for each query, and no query waits for
    # them. Of a job without queries it logs at once what Spark is going to freeze, if that looks wrong. `each_query`
    # says that the names of sources are looked at for each query when it starts.
    session = getattr(spark.conf, "getAll", {})  # what was set, without defaults; Spark 4 and newer
    known = queries(leadership) if session else []
    if session and not known:
        advise(spark, leadership.job)
        if not each_query:
            source_names.advise(spark, leadership.job)
    reading = threading.Thread(target=_compare, args=(leadership, known, session), name="ha-frozen", daemon=True)
    reading.start()
    return reading


def _compare(leadership: Leadership, known: Iterable[str], session: Mapping[str, str]) -> None:
    for query in known:
        try:
            found = differing(_frozen(leadership, query), session)
        except (StoreError, NotLeader) as unknown:
            said = "%s: it is not known what the checkpoint of query %r overrules: %s"
            _log.info(said, leadership.job, query, unknown)
            return
        if found:
            _log.warning(
                "%s: query %r keeps the settings of its checkpoint: %s. `ha checkpoint rescale` changes the number of "
                "state partitions. For the others give the query another name to start it from scratch.",
                leadership.job, query, ", ".join(found),
            )  # fmt: skip


def _frozen(leadership: Leadership, query: str) -> dict[str, str]:
    if "state" not in leadership.names(f"{SPARK}/{query}"):
        return {}
    _, found = newest_offsets(leadership, query)
    return found.settings if found is not None else {}
