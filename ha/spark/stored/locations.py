"""Locations: where a query keeps its checkpoint, and where executors find the stores.

A checkpoint is below the leader directory, where a fenced driver can no longer commit.
"""

import os
import threading
from typing import Any

from ha.config.settings import Settings
from ha.config.sources import load
from ha.hook.query_rules import fault
from ha.leadership.leadership import Leadership
from ha.spark.rewind.completing import settle
from ha.spark.stored.relocate import relocate
from ha.spark.tasks.task import SETTINGS
from leader.errors import InvalidName
from leader.layout.names import SPARK, check_job

_relocating = threading.Lock()


def checkpoint_location(leadership: Leadership, query: str) -> str:
    """Return the URI to give to Spark as a query's ``checkpointLocation``; call this before the query starts.

    It also corrects the absolute paths in the checkpoint: see :mod:`ha.spark.stored.relocate`. That costs a list, one
    more for each stateful operator, and for ``transformWithState`` half a second once in a leadership.

    Args:
        leadership: of the job.
        query: name of the query, the same as its ``queryName``.

    Raises:
        Fenced: another leader has taken over.
        Invalid: this version does not know the format of an operator's metadata.
        InvalidName: a directory cannot have that name.
        StoreError: the store did not answer.
    """
    location = leadership.path(f"{SPARK}/{check_query(query)}")
    settle(leadership)
    with _relocating:
        relocate(leadership.own, f"{SPARK}/{query}", location)
    return location


def check_query(query: str) -> str:
    """Return a query's name if it can be that of a directory; Spark mangles paths with other characters."""
    if wrong := fault(query):
        raise InvalidName(wrong)
    return query


def executor_settings(job: str | None = None, **settings: Any) -> dict[str, str]:
    """Return the Spark settings by which tasks on other hosts find the same stores and job as this program.

    Each setting is a ``spark.executorEnv.HA_...``, so it reaches every kind of task. In local mode, tasks inherit the
    environment of the driver, and need no settings for what is in there.

    Args:
        job: name of the job; default: ``HA_JOB`` of the environment.
        settings: as for :func:`ha.connect`, which includes those of the environment and of ``ha.toml``.

    Raises:
        InvalidName: a job cannot have that name.
        InvalidSettings: a setting is wrong.
    """
    return told_to_executors(load(settings), job or os.environ.get("HA_JOB"))


def told_to_executors(settings: Settings, job: str | None) -> dict[str, str]:
    """Return the same as :func:`executor_settings`, from these settings alone; ``job`` is None for no job."""
    flat, usual = settings.flat(), Settings().flat()
    values = {name: flat[name] for name in SETTINGS if flat[name] != usual[name]}
    if job:
        values["job"] = check_job(job)
    return {f"spark.executorEnv.HA_{name.upper()}": str(value) for name, value in sorted(values.items())}
