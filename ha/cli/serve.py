"""``ha run``, ``ha daemon`` and ``ha agent``: the processes that serve."""

import queue
import shutil
import signal
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ha.cli.options import endpoints, settings, stores
from ha.logs import FORMATS, configure
from leader.information import check_endpoints
from leader.names import check_job

Command = TypeVar("Command", bound=Callable[..., Any])


def _serves(command: Command) -> Command:
    for option in (
        click.option("--log-format", type=click.Choice(FORMATS), default="text", show_default=True),
        click.option("--log-level", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]), default="INFO"),
        click.option("--listen", metavar="HOST:PORT", help="Serve the HTTP API there.  [HA_LISTEN]"),
    ):
        command = option(command)
    return stores(command)


def _contends(command: Command) -> Command:
    for option in (
        click.option("--contender", metavar="NAME", help="Name of this process.  [default: host and process id]"),
        click.option(
            "--endpoint", "given", metavar="NAME=ADDRESS", multiple=True, help="Publish an address while leading."
        ),
    ):
        command = option(command)
    return _serves(command)


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("job")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--again", is_flag=True, help="Run the command even if the job has finished before.")
@click.option(
    "--spark",
    is_flag=True,
    help="COMMAND is a PySpark program that imports nothing of this package: have its queries keep their checkpoints "
    "where it leads, and publish what they complete.",
)
@click.option(
    "--standby",
    metavar="cold|warm",
    help="warm: start COMMAND while standby; it must do nothing of the job before ha.lead returns.  [HA_STANDBY]",
)
@click.option(
    "--cleanup",
    metavar="on|off",
    help="on: when the job has ended for good, move what it leaves into its trash, as `ha clean` does.  [HA_CLEANUP]",
)
@click.option(
    "--restart-strategy",
    "restart_strategy_type",
    metavar="TYPE",
    help="Start a COMMAND that failed again while leading: fixed-delay, failure-rate or exponential-delay, with their "
    "options in ha.toml or the environment.  [HA_RESTART_STRATEGY_TYPE, default: none]",
)
@_contends
def run(
    job: str,
    command: tuple[str, ...],
    again: bool,
    spark: bool,
    given: tuple[str, ...],
    log_level: str,
    log_format: str,
    **arguments: Any,
) -> None:
    """Contend for JOB and run COMMAND while leading it; put -- before COMMAND.

    COMMAND finds HA_JOB, HA_EPOCH, HA_SESSION_ID and HA_LEADER_DIRECTORY in its environment. It is asked to end (TERM)
    and then killed before the leadership is over, and dies with this process. Exit code 0 of COMMAND ends the job;
    another one gives the leadership back, so that a standby takes over, unless the restart strategy starts it again.
    A COMMAND that is started while standby finds none of these but HA_JOB, and HA_GRANT, which ha.lead waits for.
    """
    from ha.agent.alone import agent_of  # noqa: PLC0415  # only those who serve pay for the server
    from ha.agent.feed import Feed  # noqa: PLC0415
    from ha.api import Api  # noqa: PLC0415
    from ha.node import Node  # noqa: PLC0415
    from ha.presence import Presence  # noqa: PLC0415
    from ha.sidecar import Sidecar  # noqa: PLC0415

    if shutil.which(command[0]) is None:
        raise click.UsageError(f"There is no command {command[0]!r}: check its path.")
    configure(level=log_level, style=log_format)
    loaded = settings(**arguments)
    node = Node(loaded)
    try:
        # All that a person can have got wrong comes first: a sidecar holds things that only its end gives back.
        published = check_endpoints(endpoints(given))
        check_job(job)
        agent = agent_of(node.stores, node.own_reader, [], node.metrics)
        api = Api(node, loaded.listen, Feed(agent)) if loaded.listen else None
        sidecar = Sidecar(node, job, command, published, again=again, spark=spark)
        if api is not None:
            api.start()
            agent.http = api.address
        agent.start()
        presence = Presence("sidecar", node.seen)
        presence.start()
        try:
            code = sidecar.run()
        finally:
            presence.close()
            agent.close()
        if api is not None:
            api.close()
    finally:
        node.close()
    sys.exit(code)


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@_contends
def daemon(jobs: tuple[str, ...], given: tuple[str, ...], log_level: str, log_format: str, **arguments: Any) -> None:
    """Contend for each JOB without running a command; serve health, leader and metrics over HTTP."""
    from ha.agent.alone import agent_of  # noqa: PLC0415  # only those who serve pay for the server
    from ha.agent.feed import Feed  # noqa: PLC0415
    from ha.api import Api  # noqa: PLC0415
    from ha.daemon import Daemon  # noqa: PLC0415
    from ha.node import Node  # noqa: PLC0415
    from ha.presence import Presence  # noqa: PLC0415

    if twice := [job for number, job in enumerate(jobs) if job in jobs[:number]]:
        raise click.UsageError(f"Job {twice[0]!r} is given twice: name it once.")
    configure(level=log_level, style=log_format)
    loaded = settings(**arguments)
    node = Node(loaded)
    try:
        server = Daemon(node, jobs, endpoints(given))
        agent = agent_of(node.stores, node.own_reader, [], node.metrics)
        api = Api(node, loaded.listen or "127.0.0.1:0", Feed(agent))
        api.start()
        agent.http = api.address
        agent.start()
        presence = Presence("daemon", node.seen)
        presence.start()
        try:
            code = server.run()
        finally:
            presence.close()
            agent.close()
        api.close()
    finally:
        node.close()
    sys.exit(code)


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@_serves
def agent(jobs: tuple[str, ...], log_level: str, log_format: str, **arguments: Any) -> None:
    """Answer lookups for all processes of this host: each JOB, and those that they ask about.

    What it is told it writes into the directory of the setting ``snapshots``, where every process of the same user, or
    of any user if this one is root, finds it without asking a store. It contends for nothing.
    """
    from ha.agent.alone import Alone, agent_of  # noqa: PLC0415  # only those who serve pay for the server
    from ha.agent.feed import Feed  # noqa: PLC0415
    from ha.api import Api  # noqa: PLC0415
    from ha.presence import Presence  # noqa: PLC0415

    configure(level=log_level, style=log_format)
    named = [check_job(job) for job in jobs]
    loaded = settings(**arguments)
    process = Alone(loaded)
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()  # an event's lock could be held by whom a signal interrupts
    try:
        answers = agent_of(process.stores, process.own_reader, named, process.metrics)
        api = Api(process, loaded.listen or "127.0.0.1:0", Feed(answers))
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda signalled, _: ended.put(signalled))
        api.start()
        answers.http = api.address
        answers.start()
        presence = Presence("agent", list)
        presence.start()
        ended.get()
        presence.close()
        answers.close()
        api.close()
    finally:
        process.close()
