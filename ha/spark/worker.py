"""Functions for user code in Spark's Python workers: find the job master and its checkpoints, and call it.

Where an agent runs on the worker's host (``ha host agent``, or any ``ha run`` or ``ha host daemon``), a worker reads
the agent's snapshots, within microseconds, and opens no connection. Elsewhere it asks the stores once and then answers
from memory until ZooKeeper's watch tells of a change or the connection changes. It asks again after a tenth of the
audit interval in any case, and after 1 s while ZooKeeper is away. Checkpoints are always asked for in this way.

This module does NOT promise that a cached address is still the leader's. A leader that is gone refuses or does not
answer, and the epoch in the answer lets the other side refuse requests from the past.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ha.jobmaster.master import MASTER_TIMEOUT_S, JobMaster, master_of
from ha.spark.tasks.lookups import LOOKUP_TIMEOUT_S, client_of
from ha.spark.tasks.task import current_task, job_of

if TYPE_CHECKING:
    from ha.jobmaster.exchange import Reply
    from leader.layout.checkpoint_state import CheckpointState

__all__ = ["call", "checkpoint", "job_master", "report"]


def job_master(job: str | None = None, endpoint: str = "jobmaster") -> JobMaster:
    """Return the address of the job's leader, from memory if possible, else within 2 s after the first imports.

    Args:
        job: the job's name; default: Spark's property ``spark.ha.job`` within a task, else ``HA_JOB``.
        endpoint: which of the leader's addresses.

    Raises:
        InvalidName: the argument is not a job's name.
        InvalidSettings: no job is named, or a setting of the task or the environment is wrong.
        NoEndpoint: the leader publishes no such endpoint.
        NoLeader: the job has no leader now.
        Unreachable: no store answered in time.
    """
    task = current_task()
    return master_of(client_of(task).leader(job or job_of(task)), endpoint)


def report(master: JobMaster, timeout: float = LOOKUP_TIMEOUT_S) -> JobMaster:
    """Report that a job master refused or did not answer, and return the present one; asks HDFS if necessary.

    Args:
        master: as :func:`job_master` returned it.
        timeout: seconds.

    Raises:
        InvalidSettings, NoEndpoint, NoLeader, Unreachable: as in :func:`job_master`.
    """
    return master_of(client_of(current_task()).report(master.job, master.session_id, timeout), master.endpoint)


def checkpoint(job: str | None = None) -> "CheckpointState":
    """Return the job's next checkpoint id and each query's newest completed checkpoint; as :func:`job_master` does.

    Raises:
        InvalidName, InvalidSettings, NoLeader, Unreachable: as in :func:`job_master`.
    """
    task = current_task()
    return client_of(task).checkpoint(job or job_of(task))


def call(
    method: str,
    path: str,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
    *,
    job: str | None = None,
    endpoint: str = "jobmaster",
    timeout: float = MASTER_TIMEOUT_S,
    idempotent: bool = False,
) -> "Reply":
    """Send an HTTP request to the job's master; see :meth:`ha.jobmaster.Caller.http`.

    Args:
        method: such as ``POST``.
        path: with the query, escaped as in a URL.
        body: empty for none.
        headers: further ones.
        job: the job's name; default: as in :func:`ha.spark.worker.job_master`.
        endpoint: which of the leader's addresses.
        timeout: seconds for the whole call.
        idempotent: whether executing it twice does no harm: then it is sent again when an answer was lost.

    Raises:
        CallRefused: no master has executed the request, and none will.
        CallUnknown: a master may have executed the request.
        InvalidName: the job or the leader's address is not one.
        InvalidSettings: no job is named, or a setting is wrong.
        ValueError: the method, path or a header cannot be sent.
    """
    from ha.jobmaster.caller import Caller  # noqa: PLC0415  # a worker that only looks up never pays for http.client

    task = current_task()
    caller = Caller(client_of(task), job or job_of(task), endpoint)
    return caller.http(method, path, body, headers, timeout=timeout, idempotent=idempotent)
