"""Query report: what a driver knows of its queries, in a small file that its sidecar reads when Prometheus asks.

The driver replaces the file (:mod:`ha.spark.query_reports`); the sidecar shows it (:mod:`ha.metrics.queries`). No store
is asked. The driver does not load Prometheus for it.
"""

from pathlib import Path

import msgspec

MOST_QUERIES = 256
"""Queries of one job in a report, as many as a job has checkpoints of: each has some twenty series."""

STARTING, RUNNING, RESTARTING, FINISHED, FAILED = STATES = "STARTING", "RUNNING", "RESTARTING", "FINISHED", "FAILED"
"""The states of a query; see ``docs/jobs.md``."""


class QueryReport(msgspec.Struct, omit_defaults=True):
    """One query of one run of the program. Counters count from the start of that run.

    Attributes:
        name: of the query.
        state: one of :data:`STATES`.
        fresh_at: when its newest batch was completed, or Spark said that there was nothing to do, or it first started:
            seconds of the boot clock.
        starts: how often it has started.
        failures: how often it has ended with an error.
        batches: completed ones.
        input_rows: of all of them.
        skipped: offsets of topics that they passed over without a row.
        repaired: state snapshots that Spark has repaired for them.
        batch_rows: of the newest one; None, here and below, if that is not known.
        batch_seconds: what it took.
        state_rows: rows in all states.
        state_bytes: memory that the states take.
        checkpoint_bytes: of the files of the states; RocksDB alone tells.
        backlog: latest offsets of the sources, less those that were processed.
        watermark_lag: seconds from the watermark to the start of the newest batch.
    """

    name: str
    state: str = STARTING
    fresh_at: float = 0.0
    starts: int = 0
    failures: int = 0
    batches: int = 0
    input_rows: int = 0
    skipped: int = 0
    repaired: int = 0
    batch_rows: int | None = None
    batch_seconds: float | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    checkpoint_bytes: int | None = None
    backlog: int | None = None
    watermark_lag: float | None = None


_decoder = msgspec.json.Decoder(list[QueryReport])


def read(path: Path) -> list[QueryReport]:
    """Return the queries in a report; none if there is no report, or it is damaged."""
    try:
        return _decoder.decode(path.read_bytes())[:MOST_QUERIES]
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []


def write(path: Path, queries: list[QueryReport]) -> None:
    """Replace the report.

    Raises:
        OSError: it cannot be written.
    """
    staged = path.with_name(f"{path.name}.staged")
    staged.write_bytes(msgspec.json.encode(queries))
    staged.replace(path)
