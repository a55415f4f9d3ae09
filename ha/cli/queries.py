"""``ha job queries``: the declared queries of a job, their states and their regions, from any host."""

from collections.abc import Iterator

import click

from ha.cli.context import Context, command, table
from ha.views import queries as views

_COLUMNS = ("query", "state", "region", "restarts", "reads", "writes", "run_id", "error")
_TITLES = ("QUERY", "STATE", "REGION", "RESTARTS", "READS", "WRITES", "RUN ID", "LAST ERROR")


@command()
@click.argument("job")
def queries(context: Context, job: str) -> None:
    """Show the queries that JOB has declared with ha.spark.Job: state, region, restarts, last error.

    Exit with 3 if there is no such job.
    """
    found = views.queries(context.admin, job, context.leases)
    context.show(found, _lines(job, found))


def _lines(job: str, found: views.Queries) -> Iterator[str]:
    if not found.queries:
        now = "" if found.led else ", and nobody leads it now"
        yield f"{job}: no program of it has declared queries with ha.spark.Job so far{now}."
        return
    if not found.led or found.states_of_epoch != found.epoch:
        now = f"epoch {found.epoch} has not shown any yet" if found.led else "there is no leader now"
        yield f"{job}: these are the last states of epoch {found.states_of_epoch or '-'}; {now}."
    rows = [[getattr(row, name) for name in _COLUMNS] for row in found.queries]
    yield from table(_TITLES, rows, right=("REGION", "RESTARTS"))
