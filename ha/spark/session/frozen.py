"""Frozen settings: those that a query's checkpoint keeps as it was begun, and how they are made for each query.

Spark takes some settings from a query's checkpoint, the number of state partitions for instance. What the session says
otherwise has no effect on that query, and of that there is one line of Spark's, deep in its log: here it is told.

New queries keep their state in RocksDB, with changelogs, and with an id in the name of each version. What a program or
its configuration says otherwise counts. A checkpoint that exists keeps what it has: Spark pins the format of versions
(``checkpointFormatVersion``) with the first batch, and HDFSBackedStateStore refuses ids. So the settings are made only
for queries that are new, or were begun with ids; those need the same settings again.

With names a query's sources can be added, removed and moved. Spark 4.2 and newer note what was read by them if one
setting is on when the sources are read: then all of them need names, and else none may have one. So that one is made
for each query, as its checkpoint has it, and :func:`named_source` gives a name where one is wanted.
"""

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from ha.checkpoints import contents
from ha.leadership.leadership import Leadership
from ha.spark.session.private_names import numbers_of
from ha.spark.session.spark_session import configured
from ha.spark.session.spark_settings import advise
from ha.spark.stored.commit_log import newest_commit, newest_offsets, queries
from ha.spark.stored.stored_state import CHANGELOG, FORMAT, PROVIDER, ROCKSDB
from leader.errors import InvalidSettings, NotLeader
from leader.layout.names import SPARK
from store.errors import Invalid, NotFound, StoreError

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamReader

DEFAULTS = {PROVIDER: ROCKSDB, CHANGELOG: "true", FORMAT: "2"}

_TRIED = (4, 3)
"""Oldest Spark that gets them. It pins the format by the checkpoint itself, also of a query that is elsewhere."""

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
OFFSETS = "spark.sql.streaming.offsetLog.formatVersion"

NAMED = {EVOLUTION: "true", OFFSETS: "2"}
"""Spark 4.2 writes offsets without names unless it is told the format too; 4.3 does by itself."""

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
            advise_names(spark, leadership.job)
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


@contextmanager
def for_query(spark: SparkSession, leadership: Leadership, query: str, *, wanted: bool = False) -> Iterator[None]:
    """Make the settings for a query whose sources are read, and which is started, in the block."""
    # It costs two or three lists, and two reads. `wanted` says whether its sources get names if its checkpoint is new;
    # if they do not, that is logged.
    state, known = defaults(spark), have_names(leadership, query) if _supported(spark) else False
    if known is None and not wanted:
        advise_names(spark, f"{leadership.job}: query {query!r}")
    chosen = dict(NAMED) if (wanted if known is None else known) else {}
    with configured(spark, {**(state if state and fits(leadership, query) else {}), **chosen}):
        yield


# --- the state


def defaults(spark: SparkSession) -> dict[str, str]:
    """Return the settings to make for a new query: none if the session says otherwise of any, or Spark is too old."""
    if numbers_of(spark.version) < _TRIED or any(spark.conf.get(name, None) is not None for name in DEFAULTS):
        return {}
    return dict(DEFAULTS)


def for_session(spark: SparkSession, leadership: Leadership) -> dict[str, str]:
    """Return the settings for all queries of a session: none if they do not fit a checkpoint of the job."""
    wanted = defaults(spark)
    for query in queries(leadership) if wanted else ():
        if not fits(leadership, query):
            _log.info("%s: query %r keeps the format of its state, and new queries get Spark's.", leadership.job, query)
            return {}
    return wanted


def fits(leadership: Leadership, query: str) -> bool:
    """Whether a query can run with the settings: it is new, has no state, or was begun with them. Costs two lists."""
    place = f"{SPARK}/{query}"
    if "state" not in leadership.names(place):
        return True
    if (committed := newest_commit(leadership, query)) is not None:
        with suppress(Invalid, NotFound, contents.Unreadable):
            return bool(contents.state_ids(leadership.own.read(f"{place}/commits/{committed}")))
        return False
    begun, found = newest_offsets(leadership, query)
    return begun is None or (found is not None and found.settings.get(PROVIDER) == ROCKSDB)


# --- the names of sources


def named_source(spark: SparkSession, name: str) -> "DataStreamReader":
    """Return ``spark.readStream``, with a name for the source if the sources of this query have names.

    So one program goes on from checkpoints of both kinds: see ``named_sources`` of :class:`ha.spark.Job`.

    Args:
        spark: the session.
        name: of the source, unique in its query, and the same for ever: letters, digits and underscores.
    """
    reader: Any = spark.readStream
    return reader.name(name) if _on(spark) else reader  # type: ignore[no-any-return]


def check_supported(spark: SparkSession) -> None:
    """Refuse a Spark whose sources cannot have names."""
    if not _supported(spark):
        raise InvalidSettings(
            f"PySpark {spark.version} has no names for sources: install 4.2 or newer, or leave named_sources out."
        )


def have_names(leadership: Leadership, query: str) -> bool | None:
    """Whether the sources of a query's checkpoint have names; None if it is new."""
    newest, found = newest_offsets(leadership, query)
    return None if newest is None else found is not None and found.named


def advise_names(spark: SparkSession, what: str) -> None:
    """Log that the sources of new queries have no names, if they could have some."""
    if _supported(spark) and not _on(spark):
        _log.warning(
            "%s begins with sources that have no names, so none of them can be added, removed or moved later. Only a "
            "new checkpoint can get names: say ha.spark.Job(..., named_sources=True), and read each source by "
            "ha.spark.named_source(spark, NAME).",
            what,
        )


def _supported(spark: SparkSession) -> bool:
    return hasattr(getattr(spark, "readStream", None), "name")


def _on(spark: SparkSession) -> bool:
    return _supported(spark) and spark.conf.get(EVOLUTION, "false") == "true"
