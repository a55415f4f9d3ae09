"""Streaming queries are stopped in a time that is given: ``query.stop()`` waits for a batch, for ever if that hangs."""

import logging
import threading
from typing import Any

from pyspark.sql import SparkSession

_log = logging.getLogger("ha")


def stop_queries(spark: SparkSession, seconds: float) -> bool:
    """Stop every active query of a session, all at the same time; returns whether they have stopped within that time.

    Those that have not may still do so; what they write below a leader directory is refused once another leads.
    """
    all_of_them = threading.Thread(target=_stop_all, args=(spark,), name="ha-stop", daemon=True)
    all_of_them.start()
    all_of_them.join(seconds)
    return not all_of_them.is_alive()


def _stop_all(spark: SparkSession) -> None:
    try:
        stopping = [threading.Thread(target=_stop, args=(each,), daemon=True) for each in spark.streams.active]
    except Exception as error:  # noqa: BLE001  # py4j's, if the JVM is gone: then they are, too
        _log.debug("There are no queries to stop: %s", error)
        return
    for each in stopping:
        each.start()
    for each in stopping:
        each.join()


def _stop(query: Any) -> None:
    try:
        query.stop()
    except Exception as error:  # noqa: BLE001  # likewise
        _log.debug("A query could not be stopped: %s", error)
