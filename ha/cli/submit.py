"""``ha job submit``: stores what a job runs as a version that every host can run."""

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from ha.cli.context import Context, operator
from ha.cli.context import command as made
from ha.cli.options import flag_option, printable
from ha.cli.preflight import check_first, given, preflight_option, stored
from ha.config.stores import Stores
from ha.views.ages import at_time
from ha.views.leases import steady
from leader.errors import LeaderError, NoLeader
from leader.job.admin import JobAdmin
from leader.job.programs import MIB, MOST_BYTES, Program, ProgramFile, Programs, digest
from leader.layout import tree
from leader.layout.names import check_job
from store.errors import AlreadyExists

T = TypeVar("T")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@made(context_settings={"ignore_unknown_options": False})
@click.argument("job")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--file", "paths", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="Store this file as well: COMMAND finds it under its name in its working directory. May be given often.",
)  # fmt: skip
@click.option(
    "--env", "variables", multiple=True, metavar="NAME[=VALUE]",
    help="Store this variable for COMMAND, with its present value if none is given. Anybody who can read the job can "
    "read it: store no secrets. May be given several times.",
)  # fmt: skip
@click.option("--version", "number", type=click.IntRange(1), metavar="N", help="Roll back: store version N once more.")
@flag_option("--list", "Show the stored versions, oldest first; store nothing.", name="as_list")
@preflight_option
def submit(
    context: Context,
    job: str,
    command: tuple[str, ...],
    paths: tuple[Path, ...],
    variables: tuple[str, ...],
    number: int | None,
    as_list: bool,
    unchecked: bool,
) -> None:
    """Store COMMAND, its files and its environment as the newest version of what JOB runs. Put -- before COMMAND.

    `ha run JOB` without a COMMAND runs it, on any host, and each start of the command takes the newest version. So an
    upgrade is one `ha job submit` and one `ha job restart`, and a roll-back is `ha job submit --version N` and `ha job
    restart`. The last 10 versions are kept. If JOB has checkpoints of Spark, a dry run on this host shows first
    whether COMMAND fits them: see `ha job preflight`.
    """
    check_job(job)
    if sum((bool(command), number is not None, as_list)) != 1:
        raise click.UsageError("Give one of these: -- COMMAND, --version N, or --list.")
    if (paths or variables) and not command:
        raise click.UsageError("--file and --env belong to a COMMAND: put it behind --.")
    opened = context.stores
    if as_list:
        programs = _with_programs(opened, job, _versions)
        context.show(programs, _listed(programs) if programs else f"{job}: no program is stored")
        return
    if number is not None:
        fits = not unchecked and check_first(opened, job, stored(opened, job, number))
        kept = _with_programs(opened, job, lambda programs: _again(programs, job, number, fits=fits))
    else:
        kept = _store(opened, job, command, paths, variables, unchecked=unchecked)
    size = sum(file.size for file in kept.files)
    held = f" ({len(kept.files)} files, {size / MIB:.1f} MiB)" if kept.files else ""
    then = f"`ha job restart {job}` starts it, if the sidecars of {job} were started without a COMMAND of their own."
    undo = [f"`ha job submit {job} --version {kept.version - 1}` stores the former one again"] * (kept.version > 1)
    context.show(kept, [f"{job}: version {kept.version} is the newest one{held}. {then}", *undo])


def _store(
    opened: Stores,
    job: str,
    command: tuple[str, ...],
    paths: tuple[Path, ...],
    variables: tuple[str, ...],
    *,
    unchecked: bool,
) -> Program:
    contents: dict[str, bytes] = {}
    listed = [_read(path, contents) for path in paths]
    names = [each.name for each in listed]
    if twice := [name for position, name in enumerate(names) if name in names[:position]]:
        raise click.UsageError(f"Two files are called {twice[0]!r}: they would be the same file for COMMAND.")
    environment = dict(map(_variable, variables))
    fits = not unchecked and check_first(opened, job, given(command, paths, environment))
    program = Program(list(command), environment, listed, by=operator(), at=int(time.time()), checked=fits)
    _ = msgspec.json.encode(program)  # what is not UTF-8 is refused before there is a job
    with suppress(AlreadyExists):
        _create(opened, job)
    return _with_programs(opened, job, lambda programs: programs.add(program, contents))


def _create(opened: Stores, job: str) -> None:
    """Create the job's directory if there is none."""
    timeout = opened.patience
    try:
        JobAdmin(opened.files, None, timeout).directory(job)
    except NoLeader:
        opened.files.call("create_job", lambda files: tree.create(files, job), timeout)


def _again(programs: Programs, job: str, number: int, *, fits: bool) -> Program:
    found = programs.load(number)
    if found is None:
        known = ", ".join(map(str, programs.numbers())) or "none"
        raise LeaderError(f"Job {job!r} has no stored version {number}. Its versions: {known}.")
    by, at = operator(), int(time.time())
    wanted = msgspec.structs.replace(found, version=0, by=by, at=at, same_as=number, checked=fits)
    contents = {file.sha256: programs.read(found, file) for file in found.files}  # a damaged one is refused here
    return programs.add(wanted, contents)


def _versions(programs: Programs) -> list[Program]:
    return [found for number in programs.numbers() if (found := programs.load(number)) is not None]


def _listed(programs: list[Program]) -> Iterator[str]:
    for each in programs:
        files = " ".join(f"{file.name}@{file.sha256[:12]}" for file in each.files) or "-"
        same = f"(as version {each.same_as})" if each.same_as else ""
        texts = (str(each.version), at_time(each.at * 1000), each.by, " ".join(each.command), files, same)
        yield printable("  ".join(texts).rstrip())


def _read(path: Path, contents: dict[str, bytes]) -> ProgramFile:
    """Read a file, and put its content among the others."""
    if path.stat().st_size > MOST_BYTES:
        raise click.BadParameter(
            f"{path} has {path.stat().st_size / MIB:,.0f} MiB, and {MOST_BYTES // MIB} are allowed: install it on the "
            "hosts, or let Spark fetch it."
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be read: {error.strerror}.") from error
    sha256 = digest(data)
    contents[sha256] = data
    return ProgramFile(path.name, sha256, len(data), os.access(path, os.X_OK))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not _VARIABLE.fullmatch(name) or name.startswith("HA_"):
        raise click.BadParameter(f"{name!r} cannot be a variable of COMMAND: HA_... are the sidecar's own.")
    if not equals and name not in os.environ:
        raise click.BadParameter(f"The variable {name} is not set here: give its value, as {name}=VALUE.")
    return name, value if equals else os.environ[name]


def _with_programs(opened: Stores, job: str, act: Callable[[Programs], T]) -> T:
    """Act on the job's programs; once more if a leader has claimed the job meanwhile."""
    admin = JobAdmin(opened.files, None, opened.patience)
    return steady(lambda: act(Programs(admin.directory(job))))
