"""The command line: ``ha``. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no leader, 4 no store answered in time."""

import io
import sys
from importlib import import_module

import click
from click.shell_completion import CompletionItem

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
MOST = 1000  # letters of a short help: whole sentences
RUN = "Contend for JOB and run COMMAND while leading it."  # short help of ``ha run``, which is not loaded for it

GROUPS = {
    "job": "Look at jobs, operate them, and store what they run.",
    "checkpoint": "Inspect, verify, copy, rewind, seek, rescale and sweep checkpoints.",
    "savepoint": "Take savepoints: all queries of a job at one consistent cut.",
    "replica": "Keep a replica of a job elsewhere, and make it the job.",
    "output": "List, verify, repair and merge what a job publishes.",
    "trash": "List, restore or delete what was cleaned up.",
    "host": "Examine this host, serve its programs, and drain hosts.",
    "lab": "Try things out: local servers, drills, recorded histories.",
}
"""Below ``ha run``: nine things on the first screen, so that it can be read at a glance."""

VERBS = {
    "run": "serve:run orders --spark -- spark-submit orders.py",
    "job list": "jobs:list_jobs --state failed",
    "job show": "jobs:show orders",
    "job leader": "read:leader orders --json",
    "job watch": "read:watch orders",
    "job queries": "jobs:queries orders",
    "job exceptions": "jobs:exceptions orders",
    "job logs": "jobs:logs orders -n 100 -f",
    "job history": "jobs:show_history orders",
    "job submit": "submit:submit orders --file orders.py -- spark-submit orders.py",
    "job preflight": "preflight:preflight orders -- spark-submit orders.py",
    "job stop": "requests:stop orders --savepoint hdfs://cluster/savepoints/orders",
    "job cancel": "requests:cancel orders",
    "job restart": "restart:restart orders --query daily",
    "job pause": "operate:pause orders --reason upgrade",
    "job resume": "operate:resume orders",
    "job handover": "operate:handover orders --to host-b",
    "job clean": "clean:clean orders",
    "job roots": "move:roots",
    "job move": "move:move orders --to hdfs://second/ha",
    "checkpoint list": "read:checkpoints orders",
    "checkpoint newest": "read:newest orders",
    "checkpoint inspect": "inspect:inspect orders",
    "checkpoint state": "state:state orders daily --key day=2026-11-26",
    "checkpoint verify": "verify:verify hdfs://cluster/checkpoints/orders",
    "checkpoint export": "copies:export orders daily hdfs://cluster/copies/daily",
    "checkpoint import": "copies:import_ orders daily hdfs://cluster/checkpoints/daily",
    "checkpoint rewind": "rewind:rewind orders daily --to 41 --outputs aside --dry-run",
    "checkpoint seek": "rewind:seek orders daily --to earliest --kafka kafka1:9092 --dry-run",
    "checkpoint rescale": "rewind:rescale orders daily --partitions 64",
    "checkpoint sweep": "clean:sweep orders --dry-run",
    "savepoint take": "requests:take orders",
    "savepoint list": "requests:list_savepoints orders",
    "savepoint dispose": "requests:dispose orders before-upgrade",
    "replica run": "replica:replicate orders --to hdfs://second/ha",
    "replica status": "replica:status orders --to hdfs://second/ha",
    "replica promote": "replica:promote orders --dry-run",
    "output list": "output:list_outputs orders --batches 40-",
    "output verify": "output_verify:verify orders",
    "output repair": "output_verify:repair orders",
    "output merge": "output:merge orders --older-than 1h --dry-run",
    "output begin-anew": "output:begin_anew orders sums",
    "trash list": "clean:list_trash orders",
    "trash restore": "clean:restore orders --query daily",
    "trash empty": "clean:empty orders --older-than 7",
    "host status": "host:status orders",
    "host doctor": "host:doctor",
    "host config": "host:config",
    "host agent": "serve:agent --listen 127.0.0.1:8300",
    "host daemon": "serve:daemon orders clicks",
    "host drain": "drain:drain host-a --reason disks --for 4h",
    "host undrain": "drain:undrain host-a",
    "lab sandbox": "sandbox:sandbox",
    "lab drill": "drill:drill",
    "lab check": "check:check_history build/history --job orders",
}
"""Each verb in the order of the help: the module and function that has its code, and the arguments of its example."""


class Verbs(click.Group):
    """A group whose commands are loaded when they are used; of each group, its name comes before those of its verbs.

    ``ha --help`` loads none, and the help of a group those of the group.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        del ctx
        if self.name in GROUPS:
            return [verb.partition(" ")[2] for verb in VERBS if verb.startswith(f"{self.name} ")]
        return list(dict.fromkeys(verb.partition(" ")[0] for verb in VERBS))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a verb, or make a group; None if there is none of that name."""
        del ctx
        if self.name not in GROUPS and cmd_name in GROUPS:
            return Verbs(cmd_name, help=GROUPS[cmd_name])
        verb = f"{self.name} {cmd_name}" if self.name in GROUPS else cmd_name
        if verb not in VERBS:
            return None
        place, _, example = VERBS[verb].partition(" ")
        module, _, function = place.partition(":")
        command: click.Command = getattr(import_module(f"ha.cli.{module}"), function)
        command.name = cmd_name
        if not isinstance(command, click.Group):  # the verbs of a group have theirs with their code
            command.epilog = f"Example: ha {verb} {example}".rstrip()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first screen without loading a verb, and a group's with the first sentence of each."""
        rows = [("run", RUN), *GROUPS.items()]
        if self.name in GROUPS:
            loaded = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
            rows = [(name, each.get_short_help_str(MOST)) for name, each in loaded if each is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb that was given; a mistake names the groups that have one of that name."""
        if args[0] in self.list_commands(ctx) or args[0].startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        meant = [f"ha {verb}" for verb in VERBS if verb.endswith(f" {args[0]}")]
        meant += [f"ha --{args[0]}"] if args[0] in ("version", "help") else []
        hint = (
            f"Did you mean `{'` or `'.join(meant)}`?" if meant else f"`{ctx.command_path} --help` lists all commands."
        )
        raise click.UsageError(f"There is no command {args[0]!r}. {hint}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a name without loading any verb."""
        found = [CompletionItem(name) for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


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
