"""The verbs of ``ha``, in groups: where the code of each is.

A verb's module is loaded when the verb is used. ``ha --help`` loads none, and the help of a group those of the group.
"""

from importlib import import_module

import click
from click.shell_completion import CompletionItem

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
    """A group whose commands are loaded when they are used; of each group, its name comes before those of its verbs."""

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


MOST = 1000  # letters of a short help: whole sentences
RUN = "Contend for JOB and run COMMAND while leading it."  # short help of ``ha run``, which is not loaded for it
