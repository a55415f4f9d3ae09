"""What to tell Spark: where a query keeps its checkpoint, and what executors must know.

A checkpoint lies below the leader directory: a fenced driver cannot commit there any more.
"""

import os
import re
from collections.abc import Mapping

import msgspec

from ha.leadership import Leadership
from ha.settings import Settings
from leader.errors import InvalidName
from leader.names import SPARK

_QUERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def checkpoint_location(leadership: Leadership, query: str) -> str:
    """Return the URI to give to Spark as the query's ``checkpointLocation``.

    Args:
        leadership: of the job that the query belongs to.
        query: the query's name, the same as its ``queryName``.

    Raises:
        InvalidName: the name cannot be a directory's.
    """
    return leadership.path(f"{SPARK}/{check_query(query)}")


def check_query(query: str) -> str:
    """Return a query's name if it can be a directory's as it is: Spark mangles paths that hold anything else.

    Raises:
        InvalidName: it cannot.
    """
    if not _QUERY.fullmatch(query):
        raise InvalidName(
            f"{query!r} cannot be the name of a query with a checkpoint here: use 1 to 128 letters, digits, dots, "
            "underscores and hyphens, starting with a letter or a digit."
        )
    return query


def executor_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the Spark settings with which executors on other hosts find the stores and the job as this driver does.

    In local mode they inherit the driver's environment, and need none of them.

    Args:
        environment: the driver's.
    """
    known = {f"HA_{field.name.upper()}" for field in msgspec.structs.fields(Settings)} - {"HA_CONTENDER", "HA_LISTEN"}
    names = sorted(known | {"HA_JOB"})
    return {f"spark.executorEnv.{name}": environment[name] for name in names if environment.get(name)}
