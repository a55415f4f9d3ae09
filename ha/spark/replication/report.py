"""Report: the state of a replica, in one small file of its leader directory; for people and for a promotion."""

import time

import msgspec

from store.errors import Invalid

REPORT = "replica.json"

SUFFIX = ".replica"  # ends the name of the job, at the other side, whose leader is the replicator


class ReplicatedQuery(msgspec.Struct, frozen=True):
    """One query, as the newest round has seen it."""

    name: str  # of the query
    batch: int | None = None  # the newest batch from which it can resume; None if there is none
    newest: int | None = None  # the newest batch that the source had committed
    # The newest batch that the source had begun; its rows, and those of batches in between, may be published.
    begun: int | None = None
    level_at: float = 0.0  # when the replica had all that the source had committed, in seconds since 1970; 0 if never
    problem: str = ""  # why the newest round moved nothing of it; empty if that is not so

    @property
    def behind(self) -> int:
        """Number of batches that the source had committed and the replica has not."""
        if self.newest is None:
            return 0
        return max(0, self.newest - (-1 if self.batch is None else self.batch))


class ReplicaReport(msgspec.Struct, frozen=True):
    """One replica: of which URI and line (:mod:`ha.spark.replication.marks`), as of the seconds since 1970."""

    source: str
    at: float
    queries: list[ReplicatedQuery]
    line: str = "first"


def today() -> float:
    """Return the seconds since 1970 by this host's wall clock, for display."""
    return time.time()


def replica_of(job: str) -> str:
    """Return the name of the job that a replicator leads at the other side."""
    return f"{job}{SUFFIX}"


def encoded(report: ReplicaReport) -> bytes:
    """Return the file."""
    return msgspec.json.format(msgspec.json.encode(report)) + b"\n"


def decoded(data: bytes) -> ReplicaReport:
    """Read the file."""
    try:
        return msgspec.json.decode(data, type=ReplicaReport)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Invalid(f"The replica's {REPORT} says something else ({error}).") from error
