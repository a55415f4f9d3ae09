"""``ha doctor``: what a contender needs on this host, line by line, and what to do about what is missing."""

import json
import sys

import click

from ha.cli.options import json_option, printable, stores
from ha.config.sources import gather
from ha.doctor.examination import examine
from ha.doctor.finding import Finding, Level
from leader.layout.names import check_job

WIDTH = 13
"""Characters of the longest name of a check."""


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option(
    "--mend",
    is_flag=True,
    help="Remove empty names in each JOB that no leader made, and put a lease where there is none; asks first.",
)
@click.option("--yes", is_flag=True, help="With --mend: do not ask.")
@json_option
@stores
@click.pass_context
def doctor(
    context: click.Context,
    jobs: tuple[str, ...],
    mend: bool,
    yes: bool,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Examine what contenders of this host need: settings, stores, permissions, clock, Java, and the directory of JOB.

    Each line says ok, warning or failed, and what to do. Exits with 0 if nothing has failed, else with 1. A directory
    is made in the file system, renamed and removed again, as contenders do.
    """
    if mend and not jobs:
        raise click.UsageError("--mend needs the JOB whose directory is to be mended.")
    if mend and not yes and not sys.stdin.isatty():
        raise click.UsageError("--mend asks before it changes anything: give --yes where nobody can answer.")

    def consent(question: str) -> bool:
        return yes or click.confirm(printable(question), err=True)

    named = [check_job(job) for job in jobs]
    gathered = gather({"files": files, "zookeeper": zookeeper}, source="the command line")
    found: list[Finding] = []
    for finding in examine(gathered, named, consent if mend else None):
        found.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        click.echo(json.dumps([_fields(each) for each in found]))
    context.exit(1 if any(each.level is Level.FAILED for each in found) else 0)


def _print(finding: Finding) -> None:
    click.echo(f"{finding.level.value:7}  {finding.check:{WIDTH}}  {printable(finding.found)}")
    if finding.remedy:
        click.echo(f"{'':7}  {'':{WIDTH}}  -> {printable(finding.remedy)}")


def _fields(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "level": finding.level.value,
        "found": finding.found,
        "remedy": finding.remedy,
    }
