"""``ha move`` and ``ha balance``: take jobs from one root of a group to another."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
import msgspec

import ha
from ha.cli.adopt_export import refusals_as_errors, shown
from ha.cli.groups import group_of
from ha.cli.operate import opened_stores, operator
from ha.cli.options import Seconds, json_option, printable, stores
from ha.config.stores import Stores
from ha.groups.balancing.measuring import measured
from ha.groups.balancing.plan import GOAL, SHARE, Move, Plan, plan
from ha.leadership.leadership import Leadership
from leader.errors import LeaderError
from store.errors import StoreError

if TYPE_CHECKING:
    from ha.groups.moving.mover import Mover
    from ha.spark.checkpoint_copy.copying import Told

timeout_option = click.option(
    "--timeout",
    type=Seconds(),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Wait this long for the leader of a job to hand over, and for the next one.",
)


@click.command()
@click.argument("job")
@click.option("--to", metavar="ROOT", help="Root of the group in `files`: its URI, or the nameservice or host in it.")
@click.option("--undo", is_flag=True, help="Put back a move that was interrupted and is not decided yet.")
@timeout_option
@json_option
@stores
def move(
    job: str,
    to: str | None,
    undo: bool,
    timeout: float,
    as_json: bool,
    files: str | None,
    zookeeper: str | None,
) -> None:
    """Move JOB to another root of its group, with its checkpoints and all that it has.

    It is copied while it runs. Then its leader hands over to this command, which copies the rest, and puts the job in
    its new place: its contenders find it there, and one of them leads it. If it is interrupted, run it again, or with
    --undo. What is not below `files`, such as the files of outputs, stays where it is.

    A job that has moved stays for 30 minutes.
    """
    if (to is None) != undo:
        raise click.UsageError("Give either --to ROOT or --undo.")
    _needs_pyarrow()
    with opened_stores(files, zookeeper) as opened, refusals_as_errors(), shown(as_json) as told:
        mover = _mover(opened, job, timeout, told, str if as_json else _say)
        if to is None:
            at = mover.undo()
            click.echo(json.dumps({"job": job, "at": at}) if as_json else f"{job}: it is at {at}")
            return
        done = mover.move(_root(list(group_of(opened).roots), to))
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(done)))
        return
    if not done.source:
        click.echo(f"{job}: it is at {done.target}")
        return
    led = f"; {done.leader} leads it there after {done.pause:.1f} s" if done.leader else "; nobody leads it"
    click.echo(f"{job}: moved from {done.source} to {done.target} in {done.seconds:.1f} s{led}")


@click.command()
@click.option("--dry-run", is_flag=True, help="Only say which jobs would move, and why.")
@click.option(
    "--interval",
    type=Seconds(),
    default="30 s",
    show_default=True,
    metavar="SECONDS",
    help="Count requests and batches in this time. NameNodes refresh their figures every 10 s.",
)
@timeout_option
@json_option
@stores
def balance(
    dry_run: bool, interval: float, timeout: float, as_json: bool, files: str | None, zookeeper: str | None
) -> None:
    """Move jobs from loaded roots of a group to others, one after the other.

    The goal is that no root takes more than 1.2 times the mean of all in requests. At most 20 % of the jobs move; run
    it again for more. The share of a job in the requests of its root is estimated by the batches that it completes.
    The exit code is 1 if a job could not be moved.
    """
    if not dry_run:
        _needs_pyarrow()
    failed = list[str]()
    with opened_stores(files, zookeeper) as opened, refusals_as_errors():
        group = group_of(opened)
        settings = opened.settings
        roots, jobs = measured(group, interval, opened.timing.call_timeout, settings.webhdfs_ca)
        found = plan(roots, jobs)
        if as_json and dry_run:
            click.echo(json.dumps({"before": found.before, "after": found.after, **msgspec.to_builtins(found)}))
        elif not as_json:
            _print(found, dry_run=dry_run)
        for each in () if dry_run else found.moves:
            try:
                done = _mover(opened, each.job, timeout, None, str if as_json else _say).move(each.target)
                click.echo(json.dumps(msgspec.to_builtins(done)) if as_json else f"{each.job}: is at {each.target}")
            except (LeaderError, StoreError) as error:
                failed.append(each.job)
                click.echo(f"{each.job}: {printable(str(error))}", err=True)
    if failed:
        raise LeaderError(f"{len(failed)} of {len(found.moves)} jobs have not moved: {', '.join(failed)}.")


def _print(found: Plan, *, dry_run: bool) -> None:
    click.echo(f"The most loaded root takes {found.before:.2f} times the mean of requests; the goal is {GOAL:g}.")
    for each in found.moves:
        click.echo(_sentence(each))
    if not found.moves:
        click.echo("no job moves" + ("" if found.before <= GOAL else f": {found.why}"))
        return
    click.echo(f"Then that would be {found.after:.2f}, with {len(found.moves)} jobs moved (at most {SHARE:.0%}).")
    if dry_run:
        click.echo("nothing was changed (--dry-run)")


def _sentence(each: Move) -> str:
    return (
        f"{each.job}: from {each.source} to {each.target}: it makes some {each.rate:.1f} requests a second of the "
        f"{each.source_rate:.1f} there, and {each.target_rate:.1f} are made at the other root"
    )


def _mover(opened: Stores, job: str, timeout: float, told: "Told | None", say: Callable[[str], object]) -> "Mover":
    from ha.groups.moving.mover import Mover  # noqa: PLC0415  # loads pyarrow

    def lead(root: str, contender: str) -> AbstractContextManager[Leadership]:
        return _until_moved(ha.lead(job, timeout=timeout, files=root, contender=contender, **_others(opened)))

    return Mover(
        group_of(opened),
        job,
        lead,
        zookeeper=opened.zookeeper,
        call_timeout=opened.timing.call_timeout,
        timeout=timeout,
        by=operator(),
        say=say,
        told=told,
    )


@contextmanager
def _until_moved(leading: "ha.lead") -> Iterator[Leadership]:
    with leading as leadership:
        leading.record_end("moved")
        yield leadership


def _others(opened: Stores) -> dict[str, Any]:
    return {"zookeeper": opened.settings.zookeeper, "snapshots": "off"}


def _root(roots: list[str], wanted: str) -> str:
    """Return the root of the group that is meant.

    Raises:
        UsageError: none is, or several are.
    """
    found = [each for each in roots if wanted.rstrip("/") in (each.rstrip("/"), urlsplit(each).netloc)]
    if len(found) != 1:
        raise click.UsageError(f"--to is {wanted!r}: name one of the roots {', '.join(roots)}.")
    return found[0]


def _say(line: str) -> None:
    click.echo(printable(line))


def _needs_pyarrow() -> None:
    if find_spec("pyarrow") is None:
        raise click.UsageError("Moving needs pyarrow: pip install 'hybrid-ha[spark]'.")
