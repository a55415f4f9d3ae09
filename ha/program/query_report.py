"""Query report: what a driver knows of its queries, in a small file that its sidecar reads when Prometheus asks.

The driver replaces the file (:mod:`ha.spark.queries.query_reports`); the sidecar shows it
(:mod:`ha.metrics.reports`). No store is asked. The driver does not load Prometheus for it.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from ha.program import files

MOST_QUERIES = 256  # queries of one job in a report, as many as a job has checkpoints of: each has some twenty series

STARTING, RUNNING, RESTARTING, FINISHED, FAILED = STATES = "STARTING", "RUNNING", "RESTARTING", "FINISHED", "FAILED"
"""The states of a query; see ``docs/jobs.md``."""


class QueryReport(msgspec.Struct, omit_defaults=True):
    """One query of one run of the program. Counters count from the start of that run."""

    name: str  # of the query
    state: str = STARTING  # one of :data:`STATES`
    # when its newest batch was completed, or Spark said that there was nothing to do, or it first started: seconds of
    # the boot clock
    fresh_at: float = 0.0
    starts: int = 0  # how often it has started
    failures: int = 0  # how often it has ended with an error
    batches: int = 0  # completed ones
    input_rows: int = 0  # of all of them
    skipped: int = 0  # offsets of topics that they passed over without a row
    repaired: int = 0  # state snapshots that Spark has repaired for them
    batch_rows: int | None = None  # of the newest one; None, here and below, if that is not known
    batch_seconds: float | None = None  # what it took
    state_rows: int | None = None  # rows in all states
    state_bytes: int | None = None  # memory that the states take
    checkpoint_bytes: int | None = None  # of the files of the states; RocksDB alone tells
    backlog: int | None = None  # latest offsets of the sources, less those that were processed
    watermark_lag: float | None = None  # seconds from the watermark to the start of the newest batch


GAUGES: dict[str, tuple[str, Callable[[QueryReport], float | None]]] = {
    "ha_checkpoint_duration_seconds": ("Time that the newest batch of a query took.", lambda each: each.batch_seconds),
    "ha_checkpoint_rows": ("Input rows of that batch.", lambda each: each.batch_rows),
    "ha_checkpoint_size_bytes": (
        "Size of the files of a query's states; absent if they are not in RocksDB.",
        lambda each: each.checkpoint_bytes,
    ),
    "ha_query_state_rows": ("Rows in all states of a query; absent without state.", lambda each: each.state_rows),
    "ha_query_state_bytes": ("Memory of all states of a query.", lambda each: each.state_bytes),
    "ha_query_backlog": (
        "Latest offsets of a query's sources less the processed ones, when its newest batch began; absent for files.",
        lambda each: each.backlog,
    ),
    "ha_query_watermark_lag_seconds": (
        "Time from the watermark of a query to the start of its newest batch; absent without a watermark.",
        lambda each: each.watermark_lag,
    ),
}
"""The metrics that a report becomes, by name: meaning, and value of one query."""

COUNTERS: dict[str, tuple[str, Callable[[QueryReport], int]]] = {
    "ha_checkpoints": ("Batches that a query has completed, and Spark's checkpoints with them.", lambda q: q.batches),
    "ha_query_input_rows": ("Input rows of the completed batches of a query.", lambda q: q.input_rows),
    "ha_query_skipped_offsets": (
        "Offsets of topics that a query passed over without a row: deleted before they were read, compacted, or marks.",
        lambda q: q.skipped,
    ),
    "ha_query_repaired_snapshots": (
        "State snapshots of a query that Spark has repaired as it loaded them.",
        lambda q: q.repaired,
    ),
    "ha_query_failures": ("How often a query has ended with an error.", lambda q: q.failures),
    "ha_query_restarts": ("How often a query was started again by its program.", lambda q: max(0, q.starts - 1)),
}
"""The metrics that only grow, in the same form."""


def read(path: Path) -> list[QueryReport]:
    """Return the queries in a report; none if there is no report, or it is damaged."""
    return (files.read(path, list[QueryReport]) or [])[:MOST_QUERIES]
