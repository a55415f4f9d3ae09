"""The settings of a task, as Spark tells them to a Python worker: the job, and where the job's stores are.

Local properties and, for SQL, the session's settings reach a task. Those that begin with ``spark.ha.`` are ours. They
count before the environment, which ``spark.executorEnv.HA_...`` sets for all tasks of an application.
"""

import os
import sys
from typing import Any

from leader.errors import InvalidSettings

SETTING_PREFIX = "spark.ha."
JOB_PROPERTY = f"{SETTING_PREFIX}job"

SETTINGS = (
    "files", "webhdfs_ca", "zookeeper", "zookeeper_auth", "zookeeper_credentials", "zookeeper_tls_ca",
    "zookeeper_tls_certificate", "zookeeper_tls_key", "audit", "snapshots", "history", "jobmaster_ca",
    "jobmaster_token", "jobmaster_certificate", "jobmaster_key", "short_ttl", "long_ttl", "session_timeout",
    "call_timeout", "hand_over",
)  # fmt: skip
"""The settings that a lookup or a call needs, with all durations, since some of these could clash alone."""

Told = tuple[tuple[str, str], ...]  # names and values of the settings that a task was given


def current_task() -> Any:
    """Return PySpark's context of the task that this worker executes; None outside of tasks."""
    # Inside a task PySpark has imported this module already. Outside of Spark its import would cost for nothing.
    taskcontext = sys.modules.get("pyspark.taskcontext")
    return taskcontext.TaskContext.get() if taskcontext is not None else None


def settings_of(task: Any) -> Told:
    """Return the settings that a task was given; none outside of tasks."""
    if task is None:
        return ()
    found = ((name, task.getLocalProperty(SETTING_PREFIX + name)) for name in SETTINGS)
    return tuple((name, value) for name, value in found if value)


def job_of(task: Any) -> str:
    """Return the job that a task was given, or else the job of the environment."""
    job = (task.getLocalProperty(JOB_PROPERTY) if task is not None else None) or os.environ.get("HA_JOB")
    if not job:
        raise InvalidSettings(
            f"No job is named: give it as an argument, set spark.conf.set('{JOB_PROPERTY}', ...) before the query "
            "starts, or set HA_JOB in the workers' environment (spark.executorEnv.HA_JOB)."
        )
    return str(job)
