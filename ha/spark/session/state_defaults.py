"""State defaults: new queries keep their state in RocksDB, with changelogs, and with an id in the name of each version.

What a program or its configuration says otherwise counts. A checkpoint that exists keeps what it has: Spark pins the
format of versions (``checkpointFormatVersion``) with the first batch, and HDFSBackedStateStore refuses ids. So the
settings are made only for queries that are new, or were begun with ids; those need the same settings again.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from ha.checkpoints import contents
from ha.checkpoints.contents import Unreadable
from ha.leadership.leadership import Leadership
from ha.spark.session.private_names import numbers_of
from ha.spark.session.spark_session import configured
from ha.spark.stored.commit_log import newest_commit, newest_offsets, queries
from ha.spark.stored.stored_state import CHANGELOG, FORMAT, PROVIDER, ROCKSDB
from leader.layout.names import SPARK
from store.errors import Invalid, NotFound

DEFAULTS = {PROVIDER: ROCKSDB, CHANGELOG: "true", FORMAT: "2"}

_log = logging.getLogger("ha")

_TRIED = (4, 3)
"""Oldest Spark that gets them. It pins the format by the checkpoint itself, also of a query that is elsewhere."""


def defaults(spark: SparkSession) -> dict[str, str]:
    """Return the settings to make for a new query: none if the session says otherwise of any, or Spark is too old."""
    if numbers_of(spark.version) < _TRIED or any(spark.conf.get(name, None) is not None for name in DEFAULTS):
        return {}
    return dict(DEFAULTS)


@contextmanager
def for_query(spark: SparkSession, leadership: Leadership, query: str) -> Iterator[None]:
    """Make the settings for a query that is started in the block, if they fit its checkpoint."""
    wanted = defaults(spark)
    with configured(spark, wanted if wanted and fits(leadership, query) else {}):
        yield


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
        with suppress(Invalid, NotFound, Unreadable):
            return bool(contents.state_ids(leadership.own.read(f"{place}/commits/{committed}")))
        return False
    begun, found = newest_offsets(leadership, query)
    return begun is None or (found is not None and found.settings.get(PROVIDER) == ROCKSDB)
