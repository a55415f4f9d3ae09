"""``ha run``, ``ha host daemon`` and ``ha host agent``: the processes that serve."""

import os
import queue
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ha.cli.context import Context
from ha.cli.options import endpoints, flag_option, setting_option, stores
from ha.config.log import FORMATS, announce, configure
from ha.config.settings import Settings
from ha.config.sources import gather
from leader.errors import NoLeader
from leader.layout.information import check_endpoints
from leader.layout.names import check_job

if TYPE_CHECKING:
    from ha.agent.standalone import StandaloneAgent
    from ha.daemon.process import ContendingProcess

ANY_PORT = "127.0.0.1:0"

Command = TypeVar("Command", bound=Callable[..., Any])


_log_format = click.option(
    "--log-format",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Write the log as text for people, or as one JSON object a line.",
)
_log_level = click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]),
    default="INFO",
    show_default=True,
    help="Log messages of this level and above.",
)
_endpoint = click.option(
    "--endpoint",
    "given",
    metavar="NAME=ADDRESS",
    multiple=True,
    help="Publish this address under this name while leading. May be given several times.",
)


def _serves(command: Command) -> Command:
    return stores(setting_option("listen", metavar="HOST:PORT")(_log_level(_log_format(command))))


def _contends(command: Command) -> Command:
    return _serves(_endpoint(setting_option("contender", metavar="NAME")(command)))


def _announced(arguments: dict[str, Any]) -> Settings:
    """Begin to log, and gather the settings of a process that serves; its first line names the stores."""
    configure(level=arguments.pop("log_level"), style=arguments.pop("log_format"))
    gathered = gather(arguments, source="the command line")
    announce(gathered)
    return gathered.settings


class _LocalServices:
    """The services of a process on its host: the HTTP API, the agent, and an entry in the local registry."""

    def __init__(
        self, process: "ContendingProcess | StandaloneAgent", kind: str, listen: str | None, *, jobs: Iterable[str] = ()
    ) -> None:
        """Prepare; only the API's port is taken."""
        # `process`: the services show this one. `kind`: what the registry calls it: ``sidecar``, ``daemon`` or
        # ``agent``. `listen`: address of the HTTP API; None for no API. `jobs`: the agent keeps their leaders at hand
        # even if no process asks.
        # InvalidSettings: the API's address is not one, or is in use.
        from ha.agent.standalone import agent_of  # noqa: PLC0415  # only processes that serve load the HTTP server
        from ha.api.http_api import HttpApi  # noqa: PLC0415
        from ha.api.leaders import Leaders  # noqa: PLC0415
        from ha.config.server_access import access_of  # noqa: PLC0415
        from ha.daemon.health import StoreOutages, Systemd, told  # noqa: PLC0415
        from ha.daemon.local_registry import LocalRegistry  # noqa: PLC0415

        self._agent = agent_of(process.stores, process.reader, jobs, process.metrics)
        self._api: HttpApi | None = None
        if listen:
            self._api = HttpApi(process, listen, Leaders(self._agent), access_of(process.stores.settings))
        self._registry = LocalRegistry(kind, lambda: list(process.statuses().values()))
        self._systemd = Systemd(process.statuses, told())
        self._outages = StoreOutages(process.stores)

    def __enter__(self) -> None:
        if self._api is not None:
            self._api.start()
            self._agent.http = self._api.address
        self._outages.start()
        self._agent.start()
        self._registry.start()
        self._systemd.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._outages.close()
        self._systemd.close()
        self._registry.close()
        self._agent.close()
        if self._api is not None:
            self._api.close()


@click.command()
@click.argument("job")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@flag_option("--again", "Run COMMAND even if the job had ended before this process began.")
@flag_option(
    "--stay",
    "Do not exit when the job has ended, and contend for nothing until it runs again: for a supervisor that "
    "starts again whatever ends.",
)
@flag_option(
    "--spark",
    "COMMAND is a PySpark program that does not import this package: store the checkpoints of its queries in the "
    "leader's directory, and publish each completed batch.",
)
@flag_option(
    "--engine",
    "COMMAND is a PySpark program that uses ha.spark.Job or ha.spark.lead: keep its JVM and its queries running "
    "when it dies, and start only the program again.",
)
@click.option(
    "--from",
    "savepoint",
    metavar="URI|NAME",
    help="Begin from this savepoint, once: a job that was started from it before goes on from where it is.",
)
@flag_option("--discard-newer", "With --from: even if JOB has done more since. That goes to its trash.")
@setting_option("standby", metavar="cold|warm")
@setting_option("cleanup")
@setting_option("rerun")
@setting_option("class_data")
@setting_option("adopt_within", metavar="SECONDS")
@setting_option("restart_strategy", metavar="TYPE")
@setting_option("liveness_probe", metavar="PROBE")
@setting_option("liveness_period", metavar="SECONDS")
@setting_option("liveness_failure_threshold", metavar="NUMBER")
@setting_option("liveness_initial_delay", metavar="SECONDS")
@_contends
def run(
    job: str,
    command: tuple[str, ...],
    again: bool,
    stay: bool,
    spark: bool,
    engine: bool,
    savepoint: str | None,
    discard_newer: bool,
    given: tuple[str, ...],
    **arguments: Any,
) -> None:
    """Contend for JOB and run COMMAND while leading it. Put -- before COMMAND.

    Without COMMAND it runs the newest program that `ha job submit` has stored, and takes a newer one with each start.

    COMMAND finds HA_JOB, HA_EPOCH, HA_SESSION_ID and HA_LEADER_DIRECTORY in its environment. Before the leadership
    ends, COMMAND is asked to end (TERM) and then killed. It also dies with this process, unless another `ha run` with
    the same COMMAND takes it up on this host within --adopt-within seconds.

    If COMMAND exits with 0, the job has FINISHED, or is CANCELED or FAILED if the program has announced that. With any
    other exit code the leadership is given back, so that a standby takes over, unless the restart strategy starts
    COMMAND again.

    The exit code is 0 when the job has FINISHED, 1 when it has FAILED, 5 when it had FAILED before and so is not run,
    6 when it is CANCELED, and 128 + N after signal N.

    A warm COMMAND is started before this process leads. Of these variables it finds only HA_JOB, and HA_GRANT, which
    ha.lead waits for. It must do nothing of the job's work before ha.lead returns.
    """
    from ha.daemon.process import ContendingProcess  # noqa: PLC0415
    from ha.sidecar.command.newest_program import StoredProgram  # noqa: PLC0415
    from ha.sidecar.command.succession import Succession  # noqa: PLC0415
    from ha.sidecar.savepoint_work import Restore  # noqa: PLC0415
    from ha.sidecar.sidecar import Sidecar  # noqa: PLC0415
    from ha.verbs.places import check_where  # noqa: PLC0415

    _check_choices(spark=spark, engine=engine, savepoint=savepoint, discard_newer=discard_newer)
    restore = Restore(check_where(savepoint), discard_newer, once=True) if savepoint is not None else None
    _check_executable(command)
    loaded = _announced(arguments)
    code: int | None = None
    while code is None:
        succession = Succession(job, command, spark=spark, engine=engine, savepoint=savepoint or "")
        process = ContendingProcess(loaded, succession.liveness_socket)
        try:
            # Every mistake of a person's is found before the sidecar is made: it holds things that only its end gives
            # back.
            published = check_endpoints(endpoints(given))
            services = _LocalServices(process, "sidecar", loaded.http.listen or None)
            stored = None if command else StoredProgram(process.stores, job)
            sidecar = Sidecar(
                process, job, command, published,
                again=again, stay=stay, spark=spark, engine=engine, stored=stored, restore=restore,
                succession=succession,
            )  # fmt: skip
            with services:
                code = sidecar.run()
        except NoLeader as error:  # without a COMMAND there has to be a job that has one
            with Context(False, arguments["files"], arguments["zookeeper"]) as context:
                error.add_note(context.where(job))
            raise
        finally:
            again = False
            process.close()
            succession.close()
    sys.exit(code)


def _check_choices(*, spark: bool, engine: bool, savepoint: str | None, discard_newer: bool) -> None:
    if discard_newer and savepoint is None:
        raise click.UsageError("--discard-newer says what happens with --from: give that as well.")
    if spark and engine:
        raise click.UsageError(
            "--engine is for a program that uses ha.spark.Job or ha.spark.lead, and --spark for one that does not: "
            "leave one of them out."
        )


def _check_executable(command: tuple[str, ...]) -> None:
    if command and shutil.which(command[0]) is None:
        if os.sep in command[0] and Path(command[0]).is_file():
            raise click.UsageError(f"{command[0]!r} may not be executed: `chmod +x` it, or put its interpreter first.")
        raise click.UsageError(f"There is no command {command[0]!r}: check its path.")


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@_contends
def daemon(jobs: tuple[str, ...], given: tuple[str, ...], **arguments: Any) -> None:
    """Contend for each JOB without running a command. Serve health, leader and metrics over HTTP."""
    from ha.daemon.daemon import Daemon  # noqa: PLC0415
    from ha.daemon.process import ContendingProcess  # noqa: PLC0415

    named = [check_job(job) for job in jobs]
    if twice := [job for number, job in enumerate(named) if job in named[:number]]:
        raise click.UsageError(f"Job {twice[0]!r} is given twice: name it once.")
    loaded = _announced(arguments)
    process = ContendingProcess(loaded)
    try:
        server = Daemon(process, named, endpoints(given))
        with _LocalServices(process, "daemon", loaded.http.listen or ANY_PORT):
            code = server.run()
    finally:
        process.close()
    sys.exit(code)


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@_serves
def agent(jobs: tuple[str, ...], **arguments: Any) -> None:
    """Answer lookups for all processes of this host: for each JOB, and for every job that they ask about.

    The agent writes each answer into the directory of the setting `snapshots`, for the processes of the same user; if
    the agent runs as root, for those of all users. It contends for no job.
    """
    from ha.agent.standalone import StandaloneAgent  # noqa: PLC0415
    from ha.leadership.signals import end_in_order  # noqa: PLC0415

    named = [check_job(job) for job in jobs]
    loaded = _announced(arguments)
    process = StandaloneAgent(loaded)
    # Not an event: a signal may interrupt the thread while it holds the event's lock.
    ended: queue.SimpleQueue[int] = queue.SimpleQueue()
    try:
        services = _LocalServices(process, "agent", loaded.http.listen or ANY_PORT, jobs=named)
        end_in_order(lambda signalled, _: ended.put(signalled))
        with services:
            ended.get()
    finally:
        process.close()
