"""Spark's commit logs below a leader directory: what each query has completed."""

import re

from ha.leadership import Leadership
from ha.spark.location import check_query
from leader.errors import InvalidName
from leader.names import SPARK

_NAMELESS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What Spark calls the checkpoint of a query without a name, anew at each start: nobody could ask for it."""


def queries(leadership: Leadership) -> list[str]:
    """Return the queries that have a name and a checkpoint here, sorted: one list.

    Raises:
        Fenced: another leader has taken over.
        StoreError: the store did not answer.
    """
    return [name for name in sorted(leadership.names(SPARK)) if _is_query(name)]


def newest_commit(leadership: Leadership, query: str) -> int | None:
    """Return the newest batch in a query's commit log, None if there is none: one list.

    Raises:
        Fenced: another leader has taken over.
        InvalidName: no query with a checkpoint here can be called that.
        StoreError: the store did not answer.
    """
    return max(
        (int(name) for name in leadership.names(f"{SPARK}/{check_query(query)}/commits") if name.isdecimal()),
        default=None,
    )


def _is_query(name: str) -> bool:
    try:
        check_query(name)
    except InvalidName:  # somebody else's
        return False
    return not _NAMELESS.fullmatch(name)
