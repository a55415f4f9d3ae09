"""Combine the events of users into sessions, with ``transformWithState``, and survive the loss of the driver.

    ha run JOB --endpoint jobmaster=HOST:PORT -- python examples/sessions.py --input URI --output URI

Input: files of JSON lines, ``{"user": "ann", "at": "2026-01-01T10:00:00Z"}``. A session ends when its user has done
nothing for ``--gap`` seconds; it is in OUTPUT/batch=<id> once the watermark says so, and nowhere else. What is open is
in RocksDB, and its checkpoints are under the leader directory: a successor goes on with what the last one had open.
It ends, and with it the job, when a file called ``_STOP`` lies in the input directory.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.sql import DataFrame, GroupedData, Row, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from running import Idle, parser, run_until_over, session

import ha
import ha.spark
from ha.leadership.leadership import Leadership

if not hasattr(GroupedData, "transformWithState"):
    sys.exit("This example uses transformWithState, which PySpark has since 4.1: install a newer one.")

from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

QUERY = "sessions"
EVENT = "user string, at timestamp"
SESSION = "user string, first long, last long, events long"
STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}

Open = tuple[int, int, int]
"""An open session: times of the first and the last event in milliseconds since 1970, and number of events."""


def joined(sessions: Iterable[Open], gap_ms: int) -> list[Open]:
    """Combine sessions that are less than ``gap_ms`` apart."""
    found: list[Open] = []
    for first, last, events in sorted(sessions):
        if found and first - found[-1][1] < gap_ms:
            before = found.pop()
            found.append((before[0], max(before[1], last), before[2] + events))
        else:
            found.append((first, last, events))
    return found


class Sessions(StatefulProcessor):
    """The state of one user. A late event can join two sessions, so several open ones are kept."""

    def __init__(self, gap_ms: int) -> None:
        self._gap_ms = gap_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take the state that Spark has opened."""
        self._handle = handle
        self._open = handle.getListState("open", "first long, last long, events long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Take new events of a user."""
        del key, timerValues
        new = [(row["ms"], row["ms"], 1) for row in rows]
        sessions = joined([*self._sessions(), *new], self._gap_ms)
        self._open.put(sessions)
        for _, last, _ in sessions:
            self._handle.registerTimer(last + self._gap_ms)
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Return the sessions whose end the watermark has passed."""
        del expiredTimerInfo
        ended = timerValues.getCurrentWatermarkInMs() - self._gap_ms
        sessions = self._sessions()
        if left := [each for each in sessions if each[1] > ended]:
            self._open.put(left)
        else:
            self._open.clear()
        for first, last, events in sessions:
            if last <= ended:
                yield Row(user=key[0], first=first, last=last, events=events)

    def close(self) -> None:
        """Do nothing: Spark closes the state."""

    def _sessions(self) -> list[Open]:
        return [(first, last, events) for first, last, events in self._open.get()]


def sessions(events: DataFrame, gap_ms: int, late: str) -> DataFrame:
    """Return the stream of closed sessions."""
    users = events.withColumn("ms", sql.unix_millis("at")).withWatermark("at", late).groupBy("user")
    over = users.transformWithState(Sessions(gap_ms), SESSION, "append", "EventTime")
    return over.select(
        "user", sql.timestamp_millis("first").alias("first"), sql.timestamp_millis("last").alias("last"), "events"
    )


def start(
    spark: SparkSession, leadership: Leadership, options: argparse.Namespace, done: Callable[[], None]
) -> StreamingQuery:
    """Start the query, and return it."""
    output = ha.spark.Output(leadership, options.output, QUERY)

    def publish(batch: DataFrame, batch_id: int) -> None:
        output.write(batch, batch_id)
        done()

    events = spark.readStream.schema(EVENT).option("maxFilesPerTrigger", options.max_files).json(options.input)
    return (
        sessions(events, int(options.gap * 1000), f"{options.late} seconds")
        .writeStream.queryName(QUERY)
        .outputMode("append")
        .trigger(processingTime=f"{options.interval} seconds")
        .foreachBatch(publish)
        .start()
    )


def main() -> None:
    """Run until the end of the input."""
    known = parser("Put the events of users together to sessions.", "directory that files of events are moved into")
    known.add_argument(
        "--gap", type=float, default=1800.0, metavar="S", help="seconds that end a session (%(default)s)"
    )
    known.add_argument("--late", type=int, default=600, metavar="S", help="seconds an event may be late (%(default)s)")
    options = known.parse_args()
    job = os.environ["HA_JOB"]
    spark = session(job, **STORE)
    with ha.spark.lead(job, spark) as leadership:
        idle = Idle(options.input)
        run_until_over(start(spark, leadership, options, idle.busy), idle)
    spark.stop()


if __name__ == "__main__":
    main()
