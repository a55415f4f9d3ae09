"""``ha host status``, ``doctor`` and ``config``: what the processes of this host do, need, and were told."""

import sys
from collections.abc import Iterator
from typing import Any

import click

from ha.cli.context import Context, command, table
from ha.cli.options import flag_option, printable
from ha.config.setting import nearest
from ha.config.settings import reference
from ha.config.sources import DEFAULT, Gathered
from ha.daemon.local_registry import local_processes
from ha.doctor.finding import Finding, Level
from ha.views.ages import duration
from leader.errors import LeaderError
from leader.layout.names import check_job

MEBIBYTE = 2**20
COLUMNS = ("JOB", "CONTENDER", "PROCESS", "ROLE", "EPOCH", "BELIEF", "SESSION", "COMMAND", "FOR", "STARTS", "MEMORY")
RIGHT = ("EPOCH", "BELIEF", "FOR", "STARTS", "MEMORY")


@command()
def status(context: Context, job: str | None) -> None:
    """Show the sidecars, daemons and agents of this user on this host, or only those that contend for JOB.

    For each job: its role here, for how many more seconds it leads for certain, whose ZooKeeper session attests it, and
    what its command is doing. Below: why it is not eligible, and who has paused the job. No store is asked:
    `ha job list` shows the contenders of all hosts.
    """
    try:
        found = local_processes()
    except PermissionError as error:
        raise LeaderError(f"{error.filename}: {error.strerror}. Remove it, and start the processes again.") from error
    if job is not None:
        wanted, here = check_job(job), {one["job"] for each in found for one in each["jobs"]}
        found = [{**each, "jobs": [one for one in each["jobs"] if one["job"] == wanted]} for each in found]
        found = [each for each in found if each["jobs"]]
        if not found:
            raise LeaderError(
                f"No process of this user contends for job {job!r} on this host: they do for "
                f"{', '.join(nearest(job, here, 3) or sorted(here)) or 'none'}. `ha job list` shows all contenders."
            )
    if not found and not context.as_json:
        click.echo("No sidecar, daemon or agent of this user runs on this host.", err=True)
        return
    context.show(found, _processes(found))


def _processes(found: list[dict[str, Any]]) -> Iterator[str]:
    yield from table(COLUMNS, (row for each in found for row in _rows(each)), RIGHT)
    for each in found:
        for one in each["jobs"]:
            if one["not_eligible"]:
                yield f"{one['job']}, {one['contender']}: {printable(one['not_eligible'])}"
            if one.get("paused"):  # a process of an older version says nothing of it
                waits = "it stays the leader" if one["is_leader"] else f"it waits for `ha job resume {one['job']}`"
                yield f"{one['job']}, {one['contender']}: {printable(one['paused'])}: {waits}"


def _rows(process: dict[str, Any]) -> list[tuple[str, ...]]:
    name = f"{process['process']} {process['pid']}"
    if process["error"] or not process["jobs"]:
        return [("-", "-", name, process["error"] or "-", *["-"] * (len(COLUMNS) - 4))]
    return [
        (
            one["job"],
            one["contender"],
            name,
            "leader" if one["is_leader"] else "not eligible" if one["not_eligible"] else "standby",
            "-" if one["epoch"] is None else str(one["epoch"]),
            f"{one['belief_seconds']:.1f} s" if one["is_leader"] else "-",
            one.get("attested_by") or "-",  # a process of an older version does not say it
            *_command(one["command"]),
        )
        for one in process["jobs"]
    ]


def _command(command: dict[str, Any] | None) -> tuple[str, str, str, str]:
    if command is None:
        return "-", "-", "-", "-"
    memory = f"{command['memory_bytes'] / MEBIBYTE:,.0f} MiB" if command["processes"] else "-"
    state = command["state"] + (f" v{version}" if (version := command.get("version")) else "")
    if (wait := command.get("next_start_seconds")) is not None:
        state += f" in {duration(wait)}"
    return state, duration(command["seconds"]), str(command["starts"]), memory


WIDTH = 16  # characters of the longest name of a check


@command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@flag_option(
    "--mend", "Remove empty names in each JOB that no leader made, and put a lease where there is none; asks first."
)
@flag_option("--yes", "With --mend: do not ask.")
def doctor(context: Context, jobs: tuple[str, ...], mend: bool, yes: bool) -> None:
    """Examine what contenders of this host need: settings, stores, permissions, clock, Java, and the directory of JOB.

    Each line says ok, warning or failed, and what to do. Exits with 0 if nothing has failed, else with 1. A directory
    and a file are made in the file system, as contenders do, and removed again.
    """
    from ha.doctor.examination import examine  # noqa: PLC0415  # loads all that it examines

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


@command()
def config(context: Context) -> None:
    """Print every setting: its value, and where that comes from. Settings that clash are refused, as in any command.

    A process that was started elsewhere, in another directory or with other variables, can have other settings.
    """
    rows = settings_of(context.gathered)
    context.show(
        rows, table(("SETTING", "VALUE", "FROM"), ((row["setting"], _shown(row), row["source"]) for row in rows))
    )


def settings_of(gathered: Gathered) -> list[dict[str, Any]]:
    """Return each setting with its variable, value, unit and source; a derived default is shown as what it comes to."""
    values = {**gathered.settings.flat(), "call_timeout": gathered.settings.leadership.timing.call_timeout}
    return [
        {
            "setting": each.name,
            "variable": each.variable,
            "value": values[each.name],
            "unit": each.unit,
            "source": gathered.sources[each.name],
        }
        for each in reference()
    ]


def _shown(row: dict[str, Any]) -> str:
    value = row["value"]
    if value == "":
        default = next(each.default for each in reference() if each.name == row["setting"])
        return f"({default})" if row["source"] == DEFAULT else "(empty)"
    shown = (
        printable(value) if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value).lower()
    )
    return f"{shown} s" if row["unit"] == "seconds" else shown
