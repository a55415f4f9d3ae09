"""The command line: ``ha``. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no leader, 4 no store answered in time."""

import sys

import click

from ha.cli.bulk import adopt, export
from ha.cli.check import check_history
from ha.cli.checkpoints import checkpoint, checkpoints
from ha.cli.clean import clean, trash
from ha.cli.drill import drill
from ha.cli.operate import list_jobs, resign, show_history, switchover
from ha.cli.read import leader, watch
from ha.cli.sandbox import sandbox
from ha.cli.serve import agent, daemon, run
from ha.cli.status import status
from leader.errors import InvalidName, InvalidSettings, LeaderError, NoLeader, Unreachable
from store.errors import StoreError

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (InvalidName, 2),
    (InvalidSettings, 2),
    (NoLeader, 3),
    (Unreachable, 4),
    (StoreError, 4),
    (LeaderError, 1),
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hybrid-ha", prog_name="ha")
def app() -> None:
    """High availability for PySpark streaming jobs: HDFS decides, ZooKeeper accelerates.

    Settings come from flags, then HA_FILES, HA_ZOOKEEPER and their like in the environment, then ha.toml. With nothing
    set, a directory of this host holds the jobs.
    """


_COMMANDS = (
    run,
    daemon,
    agent,
    leader,
    watch,
    status,
    list_jobs,
    show_history,
    resign,
    switchover,
    checkpoint,
    checkpoints,
    adopt,
    export,
    clean,
    trash,
    check_history,
    sandbox,
    drill,
)

for command in _COMMANDS:
    app.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str] | None = None) -> int:
    """Run the command line; a mistake or trouble becomes one sentence on standard error, never a traceback."""
    try:
        code = app.main(args=arguments, prog_name="ha", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except (LeaderError, StoreError) as error:
        click.echo(f"ha: {error}", err=True)
        return next(number for kind, number in _CODES if isinstance(error, kind))
    return code if isinstance(code, int) else 0
