"""``ha host doctor``: checks what a contender needs on this host, line by line, and names a remedy for each gap."""

import sys

import click

from ha.cli.context import Context, command
from ha.cli.options import printable
from ha.doctor.examination import examine
from ha.doctor.finding import Finding, Level
from leader.layout.names import check_job

WIDTH = 16  # characters of the longest name of a check


@command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option(
    "--mend",
    is_flag=True,
    help="Remove empty names in each JOB that no leader made, and put a lease where there is none; asks first.",
)
@click.option("--yes", is_flag=True, help="With --mend: do not ask.")
def doctor(context: Context, jobs: tuple[str, ...], mend: bool, yes: bool) -> None:
    """Examine what contenders of this host need: settings, stores, permissions, clock, Java, and the directory of JOB.

    Each line says ok, warning or failed, and what to do. Exits with 0 if nothing has failed, else with 1. A directory
    and a file are made in the file system, as contenders do, and removed again.
    """
    if mend and not jobs:
        raise click.UsageError("--mend needs the JOB whose directory is to be mended.")
    if mend and not yes and not sys.stdin.isatty():
        raise click.UsageError("--mend asks before it changes anything: without a terminal give --yes.")

    def consent(question: str) -> bool:
        return yes or click.confirm(printable(question), err=True)

    named = [check_job(job) for job in jobs]
    found: list[Finding] = []
    for finding in examine(context.gathered, named, consent if mend else None):
        found.append(finding)
        context.tell(_line(finding))
    context.show(found)
    click.get_current_context().exit(1 if any(each.level is Level.FAILED for each in found) else 0)


def _line(finding: Finding) -> str:
    said = f"{finding.level.value:7}  {finding.check:{WIDTH}}  {printable(finding.found)}"
    remedy = f"\n{'':7}  {'':{WIDTH}}  -> {printable(finding.remedy)}"
    return said + remedy if finding.remedy else said
