"""Source names: with them a query's sources can be added, removed and moved; only a new checkpoint can get them.

Spark 4.2 and newer note what was read by the names of sources if one setting is on when the sources are read: then all
of them need names, and else none may have one. A checkpoint stays as it was begun. So the setting is made for each
query, as its checkpoint has it, and :func:`named_source` gives a name where one is wanted.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from ha.leadership.leadership import Leadership
from ha.spark.session.spark_session import configured
from ha.spark.stored.commit_log import newest_offsets
from leader.errors import InvalidSettings

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamReader

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
OFFSETS = "spark.sql.streaming.offsetLog.formatVersion"

NAMED = {EVOLUTION: "true", OFFSETS: "2"}
"""Spark 4.2 writes offsets without names unless it is told the format too; 4.3 does by itself."""

_log = logging.getLogger("ha")


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


@contextmanager
def for_query(spark: SparkSession, leadership: Leadership, query: str, *, wanted: bool) -> Iterator[None]:
    """Make the setting for a query whose sources are read, and which is started, in the block. Costs a list and a read.

    ``wanted`` says whether its sources get names if its checkpoint is new; if they do not, that is logged.
    """
    known = have_names(leadership, query) if _supported(spark) else False
    if known is None and not wanted:
        advise(spark, f"{leadership.job}: query {query!r}")
    with configured(spark, NAMED if (wanted if known is None else known) else {}):
        yield


def have_names(leadership: Leadership, query: str) -> bool | None:
    """Whether the sources of a query's checkpoint have names; None if it is new."""
    newest, found = newest_offsets(leadership, query)
    return None if newest is None else found is not None and found.named


def advise(spark: SparkSession, what: str) -> None:
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
