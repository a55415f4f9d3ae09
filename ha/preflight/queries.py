"""The queries of a job that a program has to fit: those with a checkpoint. Costs two lists, and loads no PySpark."""

from collections.abc import Collection

from ha.config.stores import Stores
from ha.hook.query_rules import named
from leader.errors import NoLeader
from leader.job.admin import JobAdmin
from leader.layout.names import SPARK


def queries_of(stores: Stores, job: str, without: Collection[str] = ()) -> list[str]:
    """Return the queries of a job that have a checkpoint, sorted; none if there is no such job."""
    try:
        entries = JobAdmin(stores.files, None, stores.patience).directory(job).list(SPARK)
    except NoLeader:
        return []
    return named(each.name for each in entries if each.is_directory and each.name not in without)
