"""``ha rewind``: puts a query back to an earlier batch, with its outputs, and undoes that."""

import contextlib
import json
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

import click
import msgspec

from ha.cli.adopt_export import lead_option, led, refusals_as_errors, shown
from ha.cli.options import Command, json_option, printable, settings, stores
from ha.config.stores import Stores
from ha.leadership.leadership import Leadership

if TYPE_CHECKING:
    from ha.rewind.published import Concerned
    from ha.spark.checkpoint_copy.rewinding import Outlook


def outputs_option(command: Command) -> Command:
    """Add the options that say which outputs of a job are a query's: ``names`` and ``no_output``."""
    named = click.option(
        "--output",
        "names",
        multiple=True,
        metavar="NAME",
        help="An output that QUERY publishes; may be repeated. Say it if JOB has several queries.",
    )
    return named(click.option("--no-output", is_flag=True, help="None of the outputs of JOB is of QUERY.")(command))


@click.command()
@click.argument("job")
@click.argument("query")
@click.option("--to", type=click.IntRange(min=0), metavar="BATCH", help="The newest batch that QUERY has done then.")
@click.option(
    "--outputs",
    "choice",
    type=click.Choice(["aside", "keep"]),
    help="What becomes of the batches that were published after it: they go into the trash, and their numbers are used "
    "again; or they stay, and their rows are published once more, under numbers after them.",
)
@outputs_option
@click.option("--undo", is_flag=True, help="Undo the last rewind; what QUERY has done since goes into the trash.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done; JOB may be running.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@lead_option
@json_option
@stores
def rewind(
    job: str,
    query: str,
    to: int | None,
    choice: str | None,
    names: tuple[str, ...],
    no_output: bool,
    undo: bool,
    dry_run: bool,
    yes: bool,
    timeout: float,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Put QUERY of JOB back to an earlier batch that Spark retains: it goes on with the next one.

    Stop all processes that contend for JOB first: this command leads JOB meanwhile. The present checkpoint goes into
    the trash of JOB; --undo brings it back. Batches that were published later go there as well, or stay: say which.

    If it is interrupted, the query is as before, or put back as soon as anybody leads JOB; run the command again.
    """
    if find_spec("pyarrow") is None:
        raise click.UsageError("A rewind copies files, which needs pyarrow: pip install 'hybrid-ha[spark]'.")
    if undo == (to is not None):
        raise click.UsageError("Say where the query goes: --to BATCH, or --undo.")
    if undo and (choice or names or no_output):
        raise click.UsageError("--undo knows the outputs: what they have published since goes into the trash.")
    if names and no_output:
        raise click.UsageError("Choose one of --output and --no-output.")
    asked = _Asked(job, query, to, choice, names or (() if no_output else None), dry_run, yes, as_json)
    opening = contextlib.closing(Stores(settings(files=files, zookeeper=zookeeper)))
    with refusals_as_errors(changes=not dry_run), opening as opened:
        outlook, trash = _done(asked, opened, led(job, timeout, files, zookeeper, "rewound"))
    if as_json:
        said = {**msgspec.to_builtins(outlook), "choice": choice, "undo": undo, "dry_run": dry_run, "trash": trash}
        click.echo(json.dumps({"job": job, **said}))
    elif dry_run:
        click.echo("nothing was changed (--dry-run)")
    elif trash:
        click.echo(f"{job}: {query} is put back ({trash}); `ha rewind {job} {query} --undo` undoes it")


class _Asked(NamedTuple):
    """A request to rewind; without a batch it is an undo."""

    job: str
    query: str
    to: int | None
    choice: str | None
    names: tuple[str, ...] | None
    dry_run: bool
    yes: bool
    quiet: bool


def _done(
    asked: _Asked, opened: Stores, leading: contextlib.AbstractContextManager[Leadership]
) -> "tuple[Outlook, str]":
    """Do it, and return what was done, with the name of what is in the trash then; empty if nothing was done."""
    from ha.spark.checkpoint_copy.rewinding import Rewinding  # noqa: PLC0415  # loads pyarrow

    def look(rewinding: Rewinding) -> "Outlook":
        return rewinding.look_back() if asked.to is None else rewinding.look(asked.to, asked.names)

    outlook = look(Rewinding(opened.files, asked.job, asked.query))  # what can be refused without the lease is
    if not asked.quiet:
        _tell(asked, outlook)
    if asked.dry_run or _is_there(outlook):
        return outlook, ""
    _check(asked, outlook)
    consent(yes=asked.yes)
    with leading as leadership, shown(asked.quiet) as told:
        rewinding = Rewinding(opened.files, asked.job, asked.query, leadership.own.leader)
        outlook = look(rewinding)  # perhaps it has gone on meanwhile
        _check(asked, outlook)
        if asked.to is None:
            return outlook, rewinding.undo(leadership).trash
        return outlook, rewinding.rewind(leadership, asked.to, asked.choice or "aside", asked.names, told).trash


def _is_there(outlook: "Outlook") -> bool:
    """Whether there is nothing to do."""
    return outlook.newest == outlook.batch and not outlook.begun and not outlook.outputs


def _check(asked: _Asked, outlook: "Outlook") -> None:
    """Refuse what the user has to say first."""
    if asked.to is None or not outlook.outputs:
        return
    if outlook.unclear:
        raise click.UsageError(
            f"The job has several queries, so say which outputs are those of {outlook.query}, with --output NAME or "
            f"--no-output. Later batches have been published by {_listed(outlook.outputs)}."
        )
    if asked.choice is None:
        raise click.UsageError(
            f"After batch {outlook.batch} these were published: {_listed(outlook.outputs)}. Say what becomes of them. "
            "With --outputs aside they go into the trash, and the replay is published under their numbers; with "
            "--outputs keep they stay, and the replay is published as well, under numbers after them."
        )


def consent(*, yes: bool) -> None:
    """Ask, unless the answer was given.

    Raises:
        Abort: the answer is no.
        UsageError: nobody can answer.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("This command asks before it changes anything: give --yes where nobody can answer.")
    click.confirm("Shall it be done?", abort=True, err=True)


def _tell(asked: _Asked, outlook: "Outlook") -> None:
    if _is_there(outlook):
        click.echo(f"{asked.job}: {outlook.query} has come to batch {outlook.batch}: there is nothing to do")
        return
    now, then = ("no batch" if each is None else f"batch {each}" for each in (outlook.newest, outlook.batch))
    copied = "" if asked.to is None else f"; {outlook.files} files, {outlook.bytes:,} bytes are copied"
    click.echo(f"{asked.job}: {outlook.query} goes from {now} to {then}{copied}")
    for each in outlook.outputs:
        size = f"{each.files} files, {each.bytes:,} bytes at {printable(each.target)}"
        click.echo(f"{each.output}: {_batches(each)}, {size}{_meaning(asked, each)}")
    if outlook.readers and outlook.outputs:
        click.echo(
            f"{', '.join(map(printable, outlook.readers))}: reads what {outlook.query} writes, and will get rows once "
            "more, unless it is put back to before it has read them"
        )


def _meaning(asked: _Asked, each: "Concerned") -> str:
    if asked.to is None:
        return ": published since, so they go into the trash"
    if asked.choice is None:
        return ""
    if asked.choice == "aside":
        return ": they go into the trash, and the replay is published under their numbers"
    return f": they stay, and the replay is published as well, from number {each.last + 1} on"


def _batches(each: "Concerned") -> str:
    return f"batch {each.first}" if each.first == each.last else f"batches {each.first} to {each.last}"


def _listed(outputs: "list[Concerned]") -> str:
    return "; ".join(f"{each.output}, {_batches(each)}" for each in outputs)
