"""Checkpoints that a command is given: all queries of a job, one of them, or a directory by its URI."""

import contextlib
from collections.abc import Iterator

from ha.config.stores import Stores
from leader.errors import NoLeader
from leader.job.admin import JobAdmin
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import NotFound

READERS = 32
"""Calls at once: listing and reading many small files is waiting for the most part."""


@contextlib.contextmanager
def checkpoints(opened: Stores, target: str, query: str | None) -> Iterator[dict[str, tuple[BoundedFiles, str]]]:
    """Return the store and the path of each checkpoint, by the name that it is shown with.

    Args:
        opened: the stores of the settings.
        target: a job, or the URI of a directory.
        query: the only one of the job; None for all.

    Raises:
        NoLeader: there is no such job, or it has no checkpoint of that query.
        StoreError: the store did not answer.
    """
    if "://" in target:
        parent, _, name = target.rstrip("/").rpartition("/")
        with opened.open(parent, workers=READERS) as outside:
            yield {target: (outside, name)}
        return
    directory = JobAdmin(opened.files, None, opened.timing.call_timeout).directory(target)
    try:
        queries = sorted(entry.name for entry in directory.list(SPARK) if entry.is_directory)
    except NotFound:
        queries = []
    if query is not None and query not in queries:
        raise NoLeader(f"Job {target!r} has no checkpoint of a query {query!r}: it has {', '.join(queries) or 'none'}.")
    with opened.open(opened.files.uri, workers=READERS) as outside:
        yield {each: (outside, directory.at(f"{SPARK}/{each}")) for each in queries if query is None or each == query}
