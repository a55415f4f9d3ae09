"""What Spark tells a Python worker: which job its task belongs to, and where that job's stores are.

Local properties and, for SQL, the session's settings reach a task: those that begin with ``spark.ha.`` are ours. They
count before the environment, which ``spark.executorEnv.HA_...`` sets for all tasks of an application.
"""

import dataclasses
import os
import sys
from typing import Any

from leader.errors import InvalidSettings
from leader.timing import Timing

PREFIX = "spark.ha."
JOB_PROPERTY = f"{PREFIX}job"

SETTINGS = (
    "files",
    "zookeeper",
    "audit",
    "snapshots",
    "history",
    *(field.name for field in dataclasses.fields(Timing)),
)
"""Those that whoever only looks something up has a use for, with all durations: some of these could clash alone."""

Told = tuple[tuple[str, str], ...]
"""Settings by name, as a task was told them."""


def current_task() -> Any:
    """Return PySpark's context of the task that this worker executes; None outside of tasks."""
    # Inside a task PySpark has imported this module already; outside of Spark it must not be imported for our sake.
    taskcontext = sys.modules.get("pyspark.taskcontext")
    return taskcontext.TaskContext.get() if taskcontext is not None else None


def settings_of(task: Any) -> Told:
    """Return what a task was told about the stores; nothing outside of tasks."""
    if task is None:
        return ()
    found = ((name, task.getLocalProperty(PREFIX + name)) for name in SETTINGS)
    return tuple((name, value) for name, value in found if value)


def job_of(task: Any) -> str:
    """Return the job that a task was told, else that of the environment.

    Raises:
        InvalidSettings: neither names one.
    """
    job = (task.getLocalProperty(JOB_PROPERTY) if task is not None else None) or os.environ.get("HA_JOB")
    if not job:
        raise InvalidSettings(
            f"No job is named: give it as an argument, set spark.conf.set('{JOB_PROPERTY}', ...) before the query "
            "starts, or set HA_JOB in the workers' environment (spark.executorEnv.HA_JOB)."
        )
    return str(job)
