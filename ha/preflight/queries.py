"""The queries of a job that a program has to fit: those with a checkpoint. Costs two lists, and loads no PySpark."""

from collections.abc import Collection

from ha.config.stores import Stores
from ha.spark.commit_log import is_query
from leader.errors import NoLeader
from leader.job.admin import JobAdmin
from leader.layout.names import SPARK


def queries_of(stores: Stores, job: str, without: Collection[str] = ()) -> list[str]:
    """Return the queries of a job that have a checkpoint, sorted; none if there is no such job.

    Raises:
        Fenced: another leader has taken over meanwhile.
        InvalidName: the job cannot have that name.
        StoreError: the store did not answer.
    """
    try:
        entries = JobAdmin(stores.files, None, stores.timing.call_timeout).directory(job).list(SPARK)
    except NoLeader:
        return []
    return sorted(
        each.name for each in entries if each.is_directory and is_query(each.name) and each.name not in without
    )
