"""``ha job exceptions``: the newest failures of a job, with their traces."""

from collections.abc import Iterable, Iterator

import click

from ha.cli.context import Context, cell, command
from ha.cli.options import printable
from ha.views.records import FailureRow, failures


@command()
@click.argument("job")
def exceptions(context: Context, job: str) -> None:
    """Print the newest failures of JOB, oldest first: time, host, epoch, query, class and message.

    Below each are its trace and, of a program that did not answer, the stacks of its threads. A job's failures stay
    when its leader changes; the last 20 are kept.
    """
    found = failures(context.admin, job)
    context.show(found, _lines(found) if found else f"{job}: no failure is known")


def _lines(found: Iterable[FailureRow]) -> Iterator[str]:
    for each in found:
        yield "  ".join(map(cell, (each.at, each.host, each.epoch, each.query, each.kind)))
        for text in filter(None, (each.message, each.trace, each.dump)):
            yield from (f"    {printable(line)}".rstrip() for line in text.splitlines())
