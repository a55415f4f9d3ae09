"""The checkpoint of one query, as ``ha checkpoint inspect`` and the HTTP API show it."""

from importlib.util import find_spec

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.inspection import Inspection, inspect
from ha.checkpoints.trees import Tree
from ha.spark.stored.locations import check_query
from leader.errors import NoLeader, Unreachable
from leader.job.admin import JobAdmin
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import NotFound


def inspection(admin: JobAdmin, files: BoundedFiles, job: str, query: str) -> Inspection:
    """Inspect the checkpoint of a query. Costs a list for each partition of its state, and reads small files."""
    # `admin`: of the jobs. `files`: the same file system, to read the checkpoint. `query`: name of the query.
    # NoLeader: also if there is no such checkpoint. Unreachable: this process cannot read checkpoints.
    if find_spec("pyarrow") is None:
        raise Unreachable("Reading checkpoints needs pyarrow on this host: pip install 'hybrid-ha[spark]'.")
    directory = admin.directory(job)
    try:
        return inspect(CheckpointReader(Tree(files, directory.at(f"{SPARK}/{check_query(query)}"))))
    except NotFound as error:
        directory.list()  # says so if another leader has just taken over
        raise NoLeader(f"Job {job!r} has no checkpoint of a query {query!r}.") from error
