"""RegionLooks: asks the queries of regions whether they have nothing to do, now and then.

Spark makes no batch where there is no data. So a region without a batch is either idle, and level with all others, or
its query has failed, hangs or is being started. Its status tells them apart.
"""

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WAITING = "Waiting"  # begins what Spark says of a query between two triggers; one that was just started says otherwise

_log = logging.getLogger("ha")


class RegionLooks:
    """The queries of one session, by their names."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        self._queries: dict[str, StreamingQuery] = {}

    def look(self, names: Iterable[str]) -> Iterator[tuple[str, bool, str]]:
        """Ask these queries, and yield of each whether it has nothing to do, and the error with which it has ended."""
        # Nothing is yielded of one that was not started.
        try:
            active: dict[str, StreamingQuery] | None = None
            for name in names:
                known = self._queries.get(name)
                if known is None or not known.isActive:  # it may have been started again
                    active = self._active() if active is None else active
                    known = active.get(name, known)
                if known is not None:
                    self._queries[name] = known
                    yield name, *_asked(known)
        except Exception as error:  # noqa: BLE001  # py4j's, if the JVM is gone
            _log.debug("The queries of regions do not answer: %s", error)

    def _active(self) -> "dict[str, StreamingQuery]":
        return {each.name: each for each in self._spark.streams.active if each.name}


def _asked(query: "StreamingQuery") -> tuple[bool, str]:
    if query.isActive:
        status = query.status
        waits = str(status["message"]).startswith(WAITING)
        return waits and not status["isTriggerActive"] and not status["isDataAvailable"], ""
    error = query.exception()
    return False, str(error) if error is not None else ""
