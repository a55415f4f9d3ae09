"""``ha status``: asks the processes of this host what they are doing."""

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from ha.cli.options import json_option, printable
from ha.daemon.local_registry import local_processes
from leader.errors import LeaderError
from leader.layout.names import check_job

MEBIBYTE = 2**20
COLUMNS = ("JOB", "CONTENDER", "PROCESS", "ROLE", "EPOCH", "BELIEF", "SESSION", "COMMAND", "FOR", "STARTS", "MEMORY")
RIGHT = ("EPOCH", "BELIEF", "FOR", "STARTS", "MEMORY")
WIDTH = 160
"""Characters. A narrow terminal wraps the lines, so that no name is cut."""

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


@click.command()
@click.argument("job", required=False)
@json_option
def status(job: str | None, as_json: bool) -> None:
    """Show the sidecars, daemons and agents of this user on this host, or only those that contend for JOB.

    For each job: whether this host leads it, stands by, or is not eligible and why; for how many more seconds it leads
    for certain; whose ZooKeeper session attests it, its own or its host's; what the command is doing (cold, warming,
    warm, running, restarting) and since when, how often it was started, and the memory of all its processes; of a
    stored program, its version. Below: why it is not eligible, and who has paused the job. No store is asked:
    `ha list` shows the contenders of all hosts.
    """
    try:
        found = local_processes()
    except PermissionError as error:
        raise LeaderError(f"{error.filename}: {error.strerror}. Remove it, and start the processes again.") from error
    if job is not None:
        wanted = check_job(job)
        found = [{**each, "jobs": [one for one in each["jobs"] if one["job"] == wanted]} for each in found]
        found = [each for each in found if each["jobs"]]
        if not found:
            raise LeaderError(
                f"No process of this user contends for job {job!r} on this host. `ha list` shows all contenders."
            )
    if as_json:
        click.echo(json.dumps(found))
        return
    if not found:
        click.echo("No sidecar, daemon or agent of this user runs on this host.", err=True)
        return
    _print(found)


def _print(found: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in RIGHT else "left")
    for each in found:
        for row in _rows(each):
            table.add_row(*row)
    Console(width=WIDTH, soft_wrap=True).print(table)
    for each in found:
        for one in each["jobs"]:
            if one["not_eligible"]:
                click.echo(f"{one['job']}, {one['contender']}: {printable(one['not_eligible'])}")
            if one.get("paused"):  # a process of an older version says nothing of it
                waits = "it stays the leader" if one["is_leader"] else f"it waits for `ha resume {one['job']}`"
                click.echo(f"{one['job']}, {one['contender']}: {printable(one['paused'])}: {waits}")


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
        state += f" in {_duration(wait)}"
    return state, _duration(command["seconds"]), str(command["starts"]), memory


def _duration(seconds: float) -> str:
    """Write a duration in its largest unit."""
    for unit, length in UNITS:
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
