"""What to tell Spark: where a query keeps its checkpoint, and what executors must know.

A checkpoint lies below the leader directory: a fenced driver cannot commit there any more.
"""

import os
import re
import threading
from typing import Any

from ha.leadership import Leadership
from ha.settings import Settings, load
from ha.spark.moved import bring_home
from ha.spark.task import SETTINGS
from leader.errors import InvalidName
from leader.names import SPARK, check_job

_bringing_home = threading.Lock()

_QUERY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def checkpoint_location(leadership: Leadership, query: str) -> str:
    """Return the URI to give to Spark as the query's ``checkpointLocation``; call this before the query is started.

    It has what Spark has noted about the checkpoint's place follow it: see :mod:`ha.spark.moved`. That takes a list,
    and one more for each stateful operator; for ``transformWithState``, half a second once in a leadership.

    Args:
        leadership: of the job that the query belongs to.
        query: the query's name, the same as its ``queryName``.

    Raises:
        Fenced: another leader has taken over.
        Invalid: there is metadata of an operator in a format that is not known here.
        InvalidName: the name cannot be a directory's.
        StoreError: the store did not answer.
    """
    location = leadership.path(f"{SPARK}/{check_query(query)}")
    with _bringing_home:
        bring_home(leadership.own, f"{SPARK}/{query}", location)
    return location


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


def executor_settings(job: str | None = None, **settings: Any) -> dict[str, str]:
    """Return the Spark settings with which tasks on other hosts find the stores and the job as this program does.

    Each is a ``spark.executorEnv.HA_...``, so it reaches every kind of task. In local mode tasks inherit the driver's
    environment, and need none of what stands there.

    Args:
        job: the job's name; default: ``HA_JOB`` of the environment.
        settings: as for :func:`ha.connect`; those of the environment and of ``ha.toml`` are found, too.

    Raises:
        InvalidName: that is not a job's name.
        InvalidSettings: a setting is wrong.
    """
    return told_to_executors(load(settings), job or os.environ.get("HA_JOB"))


def told_to_executors(settings: Settings, job: str | None) -> dict[str, str]:
    """Return what :func:`executor_settings` does, of these settings and no others; ``job`` is None for none.

    Raises:
        InvalidName: that is not a job's name.
    """
    usual = Settings()
    values = {name: getattr(settings, name) for name in SETTINGS if getattr(settings, name) != getattr(usual, name)}
    if job:
        values["job"] = check_job(job)
    return {f"spark.executorEnv.HA_{name.upper()}": str(value) for name, value in sorted(values.items())}
