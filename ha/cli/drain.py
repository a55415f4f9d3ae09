"""``ha host drain`` and ``ha host undrain``: take all leaderships off a host for a while."""

import sys

import click
import msgspec

from ha.cli.context import Context, command, operator
from ha.cli.options import Seconds, flag_option, printable, seconds_option, value_option
from ha.drain.drain import Drained, HostDrain, for_all_users
from ha.drain.executors import Master, Worker
from ha.drain.undrain import Undrained, known_as
from ha.drain.undrain import undrain as put_back
from leader.layout.bar import Bar
from leader.layout.lease import check_contender
from store.clock import now, wall
from store.errors import StoreError

LONGEST_S = 90 * 86_400  # the longest drain: a host that is away for longer should have no contenders


@command()
@click.option("--reason", default="", metavar="TEXT", help="Say why, in one line: `ha job list` shows it.")
@value_option(
    "--for",
    Seconds(LONGEST_S),
    "DURATION",
    "After this time, by its own clock, the host may lead again even without `ha host undrain`.",
    name="lasts",
    default="1 d",
)
@seconds_option("5 min", "Give up after this time.")
@value_option("--concurrency", click.IntRange(1, 100), None, "This many leaderships move at the same time.", default=8)
@click.option(
    "--master-ui",
    metavar="URL",
    help="Web interface of the master of a standalone cluster of Spark, such as http://master:8080: its workers on "
    "HOST are decommissioned, too.",
)
@flag_option("--unseen", "Bar HOST even if no process is known to contend under that name.")
@click.option("--worker-host", metavar="NAME", help="HOST as that cluster names it.  [default: HOST]")
def drain(
    context: Context,
    host: str,
    reason: str,
    lasts: float,
    timeout: float,
    concurrency: int,
    master_ui: str | None,
    worker_host: str | None,
    unseen: bool,
) -> None:
    """Move all leaderships off HOST, and keep it from leading until `ha host undrain HOST`.

    HOST is the name under which its processes contend (see `ha job list`), in full or without its domain; of those
    that have named themselves (HOST-PID-LETTERS) the host's. Each job is handed to another contender, and has moved
    when that one has completed a batch. A job without another contender stays where it is.

    The exit code is 1 if HOST still leads a job at the end, or one of its executors still runs: then run it again.
    """
    order = Bar(check_contender(host), int(wall() + lasts), operator(), reason)
    _ = order.name  # a reason that is too long is refused before anything is done
    master, there, deadline = Master(master_ui) if master_ui else None, worker_host or host, now() + timeout
    if master is not None:
        master.check_known(there)  # a master that does not answer, or knows no such host, is told before anything moves
    if not unseen:
        known = known_as(
            context.admin, host, "If the name is right, and its processes are not there yet, add --unseen."
        )
        order = msgspec.structs.replace(order, contender=known)
    told = HostDrain(
        context.admin, for_all_users(context.stores), order, wall(), lambda line: click.echo(line, err=True)
    )
    done = told.run(timeout, concurrency)
    workers, refused = [], ""
    try:
        workers = master.decommission(there, deadline - now()) if master is not None else []
    except StoreError as error:
        refused = f"{error}"
    context.show(
        {**msgspec.to_builtins(done), "workers": msgspec.to_builtins(workers), "refused": refused or None},
        _said(done, workers, decommissioned=master is not None and not refused),
    )
    if refused:
        click.echo(f"ha: {printable(refused)} The jobs have moved as told above; give the command again.", err=True)
    sys.exit(1 if done.left or workers or refused else 0)


@command()
def undrain(context: Context, host: str) -> None:
    """Let HOST lead again. Nothing moves by itself; no error if it is known, and not drained."""
    done = put_back(context.admin, check_contender(host))
    if not done.drained and not done.jobs and (name := known_as(context.admin, host, "Nothing is changed.")) != host:
        done = put_back(context.admin, name)
    context.show(msgspec.to_builtins(done), _put_back(done))


def _put_back(done: Undrained) -> list[str]:
    host, jobs = done.host, done.jobs
    said = f"{host} may lead again. It was barred from {len(jobs)} jobs. `ha host drain {host}` drains it."
    lines = [said if done.drained or jobs else f"{host} was not drained."]
    if done.not_yours:
        theirs = ", ".join(done.not_yours)
        lines.append(f"Not known, because they are other users' jobs: whether {theirs} still bar it.")
    return lines


def _said(done: Drained, workers: list[Worker], *, decommissioned: bool) -> str:
    if done.left and not done.barred:
        said = [f"{done.host} is not drained, and nothing has moved:"]
    elif done.left:
        said = [f"{done.host} is barred from {done.barred} jobs, {len(done.moved)} have moved, and this is left:"]
    else:
        said = [f"{done.host} leads nothing: it is barred from {done.barred} jobs, and {len(done.moved)} have moved."]
    said += [f"  {each.job}: {printable(each.why)}" for each in done.left]
    said += [f"  {printable(each.id)} is {printable(each.state)} and uses {each.cores} cores" for each in workers]
    if decommissioned and not workers:
        said.append("No executor of the cluster runs there.")
    said += [] if done.left and not done.barred else [f"`ha host undrain {done.host}` lets it lead again."]
    return "\n".join(said)
