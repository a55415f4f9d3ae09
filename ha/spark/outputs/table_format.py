"""Table format: what Delta and Iceberg have in common: which versions and places fit, and one statement of a batch."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from py4j.protocol import Py4JJavaError

from ha.spark.session.private_names import java_failures
from leader.errors import ForeignBatch, InvalidSettings
from store.errors import Unknown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAIRS: Mapping[str, Mapping[str, str]] = {
    "delta": {"3.5": "3.3", "4.1": "4.4", "4.2": "4.4"},
    "iceberg": {"3.5": "1.12", "4.1": "1.12"},
}
"""Of each format the version that was tried with a version of Spark."""

SHARED = ("hdfs", "viewfs")  # file systems whose rename is atomic between processes, which a log of commits needs

T = TypeVar("T")

_entering = threading.Lock()


@dataclass(frozen=True, slots=True)
class Attempt:
    """A try of a batch."""

    number: int  # the journal's
    plan: str  # digest of the batch's input
    id: str  # of this try alone


def check_pair(kind: str, spark: str, version: str | None) -> None:
    """Refuse a session without the format (None), or with versions that were never tried together."""
    known = ", ".join(f"{kind} {theirs} with Spark {ours}" for ours, theirs in PAIRS[kind].items())
    if version is None:
        raise InvalidSettings(f"The session has no {kind}: add its jars to spark.jars. Known to work: {known}.")
    wanted = PAIRS[kind].get(".".join(spark.split(".")[:2]))
    if wanted is None or not f"{version}.".startswith(f"{wanted}."):
        raise InvalidSettings(f"{kind} {version} was never tried with Spark {spark}. Known to work: {known}.")


def check_place(place: str, scheme: str) -> None:
    """Refuse a table whose commits are renames in a file system where two processes can both win."""
    if scheme not in SHARED:
        raise InvalidSettings(
            f"The table {place} commits by a rename on {scheme}://, where two drivers could both win: put it on HDFS, "
            "or an Iceberg table into a catalog that commits by itself (REST, JDBC, Hive)."
        )


def unknown(place: str, number: int, marker: int) -> ForeignBatch:
    """Return the error of a table that is ahead of the journal."""
    return ForeignBatch(
        f"The table {place} has batches up to {marker} of this output, and the journal does not know batch {number} as "
        "published: another program writes under this name, or the journal was lost. Nothing was written. Give the "
        "output another name, whatever comes twice then."
    )


def asked(call: Callable[[], T], place: str) -> T:
    """Call the JVM; ``Unknown`` if it fails."""
    try:
        return call()
    except Exception as error:
        if isinstance(error, Py4JJavaError) or java_failures(error):
            raise Unknown(f"The table {place} gave no answer: {'; '.join(java_failures(error))}: {error}") from error
        raise


@contextmanager
def having(session: "SparkSession", settings: Mapping[str, str]) -> Iterator[None]:
    """Have settings in the session of a query, for one statement of its batch; refuse a session that has them."""
    with _entering:
        if known := [key for key in settings if session.conf.get(key, None) is not None]:
            raise InvalidSettings(
                f"The session of the batch has {known[0]} already: leave it alone, and write the tables of one "
                "batch one after the other, not on several threads."
            )
        for key, value in settings.items():
            session.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            session.conf.unset(key)
