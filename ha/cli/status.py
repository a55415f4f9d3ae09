"""``ha host status``: asks the processes of this host what they are doing."""

from collections.abc import Iterator
from typing import Any

import click

from ha.cli.context import Context, command, table
from ha.cli.options import printable
from ha.config.setting import nearest
from ha.daemon.local_registry import local_processes
from ha.views.ages import duration
from leader.errors import LeaderError
from leader.layout.names import check_job

MEBIBYTE = 2**20
COLUMNS = ("JOB", "CONTENDER", "PROCESS", "ROLE", "EPOCH", "BELIEF", "SESSION", "COMMAND", "FOR", "STARTS", "MEMORY")
RIGHT = ("EPOCH", "BELIEF", "FOR", "STARTS", "MEMORY")


@command()
@click.argument("job", required=False)
def status(context: Context, job: str | None) -> None:
    """Show the sidecars, daemons and agents of this user on this host, or only those that contend for JOB.

    For each job: whether this host leads it, stands by, or is not eligible and why; for how many more seconds it leads
    for certain; whose ZooKeeper session attests it, its own or its host's; what the command is doing (cold, warming,
    warm, running, restarting) and since when, how often it was started, and the memory of all its processes; of a
    stored program, its version. Below: why it is not eligible, and who has paused the job. No store is asked:
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
    context.show(found, _lines(found))


def _lines(found: list[dict[str, Any]]) -> Iterator[str]:
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
