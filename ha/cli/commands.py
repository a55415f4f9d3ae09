"""The command line: ``ha``. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no leader, 4 no store answered in time."""

import sys

import click

from ha.cli.verbs import Verbs
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


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hybrid-ha", prog_name="ha")
def app() -> None:
    """High availability for PySpark streaming jobs: HDFS decides, ZooKeeper accelerates.

    A setting comes from its flag, else from its environment variable (HA_FILES, HA_ZOOKEEPER ...), else from ha.toml.
    Without any setting, a directory on this host holds the jobs.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str] | None = None) -> int:
    """Run the command line; returns its exit code. An error becomes one sentence on standard error, not a traceback."""
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
