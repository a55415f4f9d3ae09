"""What Python workers ask: where is the job master, what is the newest checkpoint. Cached, and told of changes.

Where an agent runs on the worker's host (``ha agent``, or any ``ha run`` or ``ha daemon``), a worker reads what that
was told, in microseconds, and opens no connection for it. Elsewhere it asks once and then answers from memory until
ZooKeeper's watch goes off or the connection changes; after a tenth of the audit interval it asks again in any case, and
after 1 s while ZooKeeper is away. Checkpoints are always asked for like that.

What it does NOT promise: that a cached address is still the leader's. A leader that is gone refuses or does not
answer, and the epoch in the answer lets the other side refuse what comes from the past.
"""

from typing import TYPE_CHECKING

from ha.jobmaster.master import JobMaster, master_of
from ha.spark.lookups import TIMEOUT, lookups_of
from ha.spark.task import current_task, job_of

if TYPE_CHECKING:
    from leader.checkpoint_state import CheckpointState


def job_master(job: str | None = None, endpoint: str = "jobmaster") -> JobMaster:
    """Return where the job's leader can be reached, from memory if possible, else within 2 s after the first imports.

    Args:
        job: the job's name; default: Spark's property ``spark.ha.job`` within a task, else ``HA_JOB``.
        endpoint: which of its addresses.

    Raises:
        InvalidName: that is not a job's name.
        InvalidSettings: no job is named, or a setting of the task or the environment is wrong.
        NoEndpoint: the leader publishes no such endpoint.
        NoLeader: the job has no leader now.
        Unreachable: no store answered in time.
    """
    task = current_task()
    return master_of(lookups_of(task).leader(job or job_of(task)), endpoint)


def report(master: JobMaster, timeout: float = TIMEOUT) -> JobMaster:
    """Say that this job master refused or did not answer, and return who it is now, asked of HDFS unless that is known.

    Args:
        master: as :func:`job_master` returned it.
        timeout: seconds.

    Raises:
        InvalidSettings, NoEndpoint, NoLeader, Unreachable: as in :func:`job_master`.
    """
    return master_of(lookups_of(current_task()).report(master.job, master.session_id, timeout), master.endpoint)


def checkpoint(job: str | None = None) -> "CheckpointState":
    """Return the job's next checkpoint id and each query's newest completed checkpoint; as :func:`job_master` does.

    Raises:
        InvalidName, InvalidSettings, NoLeader, Unreachable: as in :func:`job_master`.
    """
    task = current_task()
    return lookups_of(task).checkpoint(job or job_of(task))
