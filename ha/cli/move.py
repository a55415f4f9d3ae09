"""``ha job move``: takes a job from one root of a group to another."""

from urllib.parse import urlsplit

import click

from ha.cli.context import Context, command, needs, operator, refusals_as_errors
from ha.cli.groups import group_of
from ha.cli.options import printable, seconds_option
from ha.cli.progress import copying
from ha.verbs.table import VERBS


@command()
@click.argument("job")
@click.option("--to", metavar="ROOT", help="Root of the group in `files`: its URI, or the nameservice or host in it.")
@click.option("--undo", is_flag=True, help="Put back a move that was interrupted and is not decided yet.")
@seconds_option(60.0, "Wait this long for the leader of a job to hand over, and for the next one.")
def move(context: Context, job: str, to: str | None, undo: bool, timeout: float) -> None:
    """Move JOB to another root of its group, with its checkpoints and all that it has.

    It is copied while it runs. Then its leader hands over to this command, which copies the rest, and puts the job in
    its new place: its contenders find it there, and one of them leads it. If it is interrupted, run it again, or with
    --undo. What is not below `files`, such as the files of outputs, stays where it is.

    A job that has moved stays for 30 minutes.
    """
    if (to is None) != undo:
        raise click.UsageError("Give either --to ROOT or --undo.")
    needs("Moving", "pyarrow")
    from ha.groups.moving.mover import mover_of  # noqa: PLC0415  # loads pyarrow

    group, quiet = group_of(context.stores), context.as_json
    with refusals_as_errors(), copying(quiet) as told:
        mover = mover_of(
            context.stores, group, job, timeout, operator(), told, lambda line: context.tell(printable(line))
        )
        if to is None:
            at = mover.undo()
            context.show({"job": job, "at": at}, f"{job}: it is at {at}")
            return
        done = mover.move(_root(list(group.roots), to))
    led = f"; {done.leader} leads it there after {done.pause:.1f} s" if done.leader else "; it has no leader"
    back = VERBS["move"].undo.format(job=job, before=done.source)
    moved = f"{job}: moved from {done.source} to {done.target} in {done.seconds:.1f} s{led}\n{back}"
    context.show(done, moved if done.source else f"{job}: it is at {done.target}")


def _root(roots: list[str], wanted: str) -> str:
    """Return the root of the group that is meant. UsageError: none is, or several are."""
    found = [each for each in roots if wanted.rstrip("/") in (each.rstrip("/"), urlsplit(each).netloc)]
    if len(found) != 1:
        raise click.UsageError(f"--to is {wanted!r}: name one of the roots {', '.join(roots)}.")
    return found[0]
