"""The command line: ``ha``. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no leader, 4 no store answered in time."""

import io
import sys

import click

from ha.cli.verbs import Verbs
from ha.hosts import inherited
from leader.errors import InvalidName, InvalidSettings, LeaderError, NoLeader, Unreachable
from store.errors import PermissionDenied, StoreError

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (InvalidName, 2),
    (InvalidSettings, 2),
    (NoLeader, 3),
    (Unreachable, 4),
    (PermissionDenied, 1),
    (StoreError, 4),
    (LeaderError, 1),
)

MOST_SHOWN = 80  # characters of a text that is shown because it is wrong


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="hybrid-ha", prog_name="ha")
def app() -> None:
    """High availability for PySpark streaming jobs: HDFS decides, ZooKeeper accelerates.

    A setting comes from its flag, else from its variable (HA_FILES, HA_ZOOKEEPER ...), else from ha.toml.
    Without any, a directory of this host holds the jobs.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    inherited.settle()
    _show_whatever_is_said(sys.stdout)
    sys.exit(exit_code(arguments))


def _show_whatever_is_said(out: object) -> None:
    """Let a terminal that is not of UTF-8 show a sign that it does not have by its number, as standard error does."""
    if isinstance(out, io.TextIOWrapper) and out.encoding.lower().replace("-", "") != "utf8":
        out.reconfigure(errors="backslashreplace")


def exit_code(arguments: list[str] | None = None) -> int:
    """Run the command line; returns its exit code. An error becomes one sentence on standard error, not a traceback."""
    try:
        code = app.main(args=arguments, prog_name="ha", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except UnicodeEncodeError as error:  # bytes of an argument, a variable or a file's name, of which Python made text
        if error.encoding != "utf-8":
            raise  # the terminal cannot show what is printed: that is not the fault of what was given
        text = click.format_filename(str(error.object).partition("\n")[0][-MOST_SHOWN:])
        click.echo(f"ha: {text!r} is not UTF-8, and cannot be stored: write it in UTF-8.", err=True)
        return 2
    except (LeaderError, StoreError) as error:
        notes = "".join(f" {each}" for each in getattr(error, "__notes__", ()))
        said = f"{error}".removesuffix(".") + "." if notes else error
        click.echo(f"ha: {said}{notes}", err=True)
        return next(number for kind, number in _CODES if isinstance(error, kind))
    listing = sys.modules.get("ha.hook.query_rules")  # not each command has loaded it
    left_out = sorted(map(repr, listing.left_out)) if listing is not None else []
    if listing is not None and left_out:
        listing.left_out.clear()
        click.echo(f"ha: left out, because no query can have such a name: {', '.join(left_out)}", err=True)
    return code if isinstance(code, int) and code else int(bool(left_out))
