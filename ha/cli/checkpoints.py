"""Checkpoints that a command is given: all queries of a job, one of them, or a directory by its URI."""

import contextlib
from collections.abc import Iterator
from contextlib import suppress

import click

from ha.cli.context import Context
from leader.errors import NoLeader
from leader.layout.names import SPARK
from store.bounded import BoundedFiles
from store.errors import NotFound

READERS = 32  # calls at once: listing and reading many small files is waiting for the most part


@contextlib.contextmanager
def checkpoints(context: Context, target: str, query: str | None) -> Iterator[dict[str, tuple[BoundedFiles, str]]]:
    """Return the store and the path of each checkpoint, by the name that it is shown with."""
    # `target`: a job, or the URI of a directory. `query`: the only one of the job; None for all.
    # NoLeader: there is no such job, or it has no checkpoint of that query, or of any. UsageError: there is no
    # checkpoint at the URI.
    if "://" in target:
        parent, _, name = target.rstrip("/").rpartition("/")
        with context.stores.open_root(parent, workers=READERS) as outside:
            there: set[str] = set()
            with suppress(NotFound):
                found = outside.call("list", lambda files: files.list(name), context.stores.patience)
                there = {each.name for each in found} & {"metadata", "offsets", "commits"}
            if not there:
                raise click.UsageError(f"There is no checkpoint at {target}: give the checkpointLocation of a query.")
            yield {target: (outside, name)}
        return
    opened, directory = context.stores, context.directory(target)
    try:
        queries = sorted(entry.name for entry in directory.list(SPARK) if entry.is_directory)
    except NotFound:
        queries = []
    if query is None and not queries:
        raise NoLeader(f"Job {target!r} has no checkpoint of a query yet.")
    if query is not None and query not in queries:
        raise NoLeader(f"Job {target!r} has no checkpoint of a query {query!r}: it has {', '.join(queries) or 'none'}.")
    with opened.open(opened.files.uri, workers=READERS) as outside:
        yield {each: (outside, directory.at(f"{SPARK}/{each}")) for each in queries if query is None or each == query}
