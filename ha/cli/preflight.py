"""``ha job preflight``: checks that a changed program can restart from a job's checkpoints, before the old one ends."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ha.cli.context import Context, needs, refusals_as_errors
from ha.cli.context import command as made
from ha.cli.options import flag_option, printable, seconds_option
from ha.cli.progress import copying
from ha.config.stores import Stores
from ha.hosts.working_directory import working_directory
from leader.errors import LeaderError
from leader.layout.names import check_job

if TYPE_CHECKING:
    from ha.preflight.check import Preflight

preflight_option = flag_option(
    "--no-preflight",
    "Do not check first whether the program fits the checkpoints of JOB.",
    name="unchecked",
)


@made(context_settings={"ignore_unknown_options": False})
@click.argument("job")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--file", "paths", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help="COMMAND finds this file under its name in its working directory, as after `ha job submit`. May "
    "be given often.",
)  # fmt: skip
@click.option("--without", multiple=True, metavar="QUERY", help="The program has dropped QUERY on purpose.")
@seconds_option(300.0, "End the dry run after this time. Copying takes what it takes.")
def preflight(
    context: Context,
    job: str,
    command: tuple[str, ...],
    paths: tuple[Path, ...],
    without: tuple[str, ...],
    timeout: float,
) -> None:
    """Check that COMMAND can restart from the checkpoints of JOB. Put -- before COMMAND; default: the stored one.

    JOB may be running, and nothing of it is changed. COMMAND is run on this host over copies of the checkpoints, in a
    throw-away job: each query does one batch, whose rows go nowhere. What the program does outside its queries, it
    does. The exit code is 0 if every query fits, and 1 if one does not.
    """
    check_job(job)
    if paths and not command:
        raise click.UsageError("--file belongs to a COMMAND: put it behind --.")
    opened = context.stores
    context.admin.directory(job)  # a job that is not there has no checkpoint that fits
    with given(command, paths, {}) if command else stored(opened, job) as known:
        found = checked(opened, job, known, timeout, without, as_json=context.as_json)
    context.show(found, _lines(found))
    if not found.fits:
        raise click.exceptions.Exit(1)


Prepared = tuple[Sequence[str], Mapping[str, str], Path]  # command, environment and working directory


@contextlib.contextmanager
def given(command: Sequence[str], paths: Sequence[Path], variables: Mapping[str, str]) -> Iterator[Prepared]:
    """Lay out a program that was given: with its files in a working directory, if it has any, else in this one."""
    with tempfile.TemporaryDirectory(prefix="ha-program-") as folder:
        for path in paths:
            shutil.copy(path, Path(folder) / path.name)
        yield command, {**os.environ, **variables}, Path(folder) if paths else working_directory()


@contextlib.contextmanager
def stored(opened: Stores, job: str, version: int = 0) -> Iterator[Prepared]:
    """Lay out a stored program as a sidecar does, by default the newest version."""
    # InvalidSettings: none is stored, or its command is not on this host. NoLeader: there is no such job.
    from ha.sidecar.command.newest_program import StoredProgram  # noqa: PLC0415  # only for this

    programs = StoredProgram(opened, job)
    program = programs.version(version) if version else programs.newest()
    with tempfile.TemporaryDirectory(prefix="ha-program-") as folder:
        place = Path(folder) / "files"
        programs.unpack(program, place)
        yield program.command, {**os.environ, **program.environment}, place


def checked(
    opened: Stores,
    job: str,
    program: Prepared,
    timeout: float = 300.0,
    without: Sequence[str] = (),
    *,
    as_json: bool = False,
) -> "Preflight":
    """Check a program against a job's checkpoints, if it has any."""
    # LeaderError: the program cannot be started here, or a store refuses something.
    needs("A dry run", "pyspark", "pyarrow")
    from ha.preflight.check import preflight as check  # noqa: PLC0415  # loads PySpark

    command, environment, directory = program
    with refusals_as_errors(changes=False), copying(as_json) as told:
        return check(opened, job, command, environment, directory, timeout=timeout, without=without, copying=told)


def check_first(opened: Stores, job: str, program: "contextlib.AbstractContextManager[Prepared]") -> bool:
    """Check a program before something is done with it; returns whether the job has checkpoints that it could be."""
    # LeaderError: it does not fit; why is printed.
    from ha.preflight.queries import queries_of  # noqa: PLC0415  # most jobs have none

    if not (names := queries_of(opened, job)):
        return False
    click.echo(
        f"{job}: checking the program against the checkpoints of {', '.join(names)}; --no-preflight leaves that out",
        err=True,
    )
    with program as known:
        found = checked(opened, job, known, as_json=True)
    if not found.fits:
        for line in _lines(found):
            click.echo(line, err=True)
        raise LeaderError(
            f"The program does not fit the checkpoints of job {job!r}, so nothing was changed: correct it, or add "
            "--no-preflight."
        )
    return True


def _lines(found: "Preflight") -> Iterator[str]:
    if not found.queries:
        yield f"{found.job}: no query has a checkpoint, so there is nothing to check"
    for each in found.queries:
        batch = "" if each.batch is None else f" (batch {each.batch})"
        yield f"{found.job}: {each.query} {'fits' if each.fits else 'DOES NOT FIT'}{batch}"
        for problem in each.problems:
            silent = " Spark would not notice." if problem.silent else ""
            lines = [printable(line) for line in problem.text.splitlines()]
            yield "\n".join([f"  {lines[0]}{silent}", *lines[1:]])
            if problem.remedy:
                yield f"    -> {problem.remedy}"
        for note in each.notes:
            yield f"  note: {printable(note)}"
