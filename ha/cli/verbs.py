"""The verbs of ``ha``: what each does, where its code is, and whether it changes anything.

A verb's module is loaded when the verb is used: ``ha --help`` and the shell's completion load none.
"""

from importlib import import_module
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem


class Verb(NamedTuple):
    """One verb.

    Attributes:
        module: in which it is.
        name: of its function there.
        short: the first sentence of its help.
        changes: whether it changes a job, a store or servers, or contends; such a verb is never suggested.
    """

    module: str
    name: str
    short: str
    changes: bool = False


VERBS = {
    "run": Verb("ha.cli.serve", "run", "Contend for JOB and run COMMAND while leading it.", changes=True),
    "daemon": Verb("ha.cli.serve", "daemon", "Contend for each JOB without running a command.", changes=True),
    "agent": Verb(
        "ha.cli.serve",
        "agent",
        "Answer lookups for all processes of this host: for each JOB, and for every job that they ask about.",
        changes=True,
    ),
    "leader": Verb("ha.cli.read", "leader", "Print the leader of JOB."),
    "watch": Verb("ha.cli.read", "watch", "Print the leader of JOB, then one line for each change, until interrupted."),
    "status": Verb(
        "ha.cli.status",
        "status",
        "Show the sidecars, daemons and agents of this user on this host, or only those that contend for JOB.",
    ),
    "list": Verb(
        "ha.cli.operate",
        "list_jobs",
        "List all jobs: state, epoch, mode and holder of the lease, and all contenders.",
    ),
    "history": Verb(
        "ha.cli.operate",
        "show_history",
        "Print the grants of JOB, oldest first: time, epoch, contender, why it got the lease, and how it ended.",
    ),
    "exceptions": Verb(
        "ha.cli.exceptions",
        "exceptions",
        "Print the newest failures of JOB, oldest first: time, host, epoch, query, class and message.",
    ),
    "resign": Verb(
        "ha.cli.operate",
        "resign",
        "Ask the leader of JOB to give up the leadership, and wait until another contender leads.",
        changes=True,
    ),
    "switchover": Verb(
        "ha.cli.operate",
        "switchover",
        "Move the leadership of JOB to another contender, and wait until that one leads.",
        changes=True,
    ),
    "stop": Verb(
        "ha.cli.requests",
        "stop",
        "Stop JOB in an orderly way: its command gets SIGTERM and time to end, and the job has FINISHED.",
        changes=True,
    ),
    "cancel": Verb(
        "ha.cli.requests",
        "cancel",
        "Cancel JOB: its command is stopped, and the job is CANCELED, also if its leader ends meanwhile.",
        changes=True,
    ),
    "restart": Verb(
        "ha.cli.requests",
        "restart",
        "Start the command of JOB again, on the same host and in the same epoch.",
        changes=True,
    ),
    "submit": Verb(
        "ha.cli.submit",
        "submit",
        "Store COMMAND, its files and its environment as the newest version of what JOB runs.",
        changes=True,
    ),
    "pause": Verb(
        "ha.cli.pausing",
        "pause",
        "Pause JOB: its leader stays, and nobody takes over, whatever happens to it.",
        changes=True,
    ),
    "resume": Verb(
        "ha.cli.pausing", "resume", "End the pause of JOB: standbys take over again when they must.", changes=True
    ),
    "drain": Verb(
        "ha.cli.drain",
        "drain",
        "Move all leaderships off HOST, and keep it from leading until `ha undrain HOST`.",
        changes=True,
    ),
    "undrain": Verb("ha.cli.drain", "undrain", "Let HOST lead again.", changes=True),
    "groups": Verb(
        "ha.cli.groups",
        "groups",
        "Show the roots of the group in `files`: the jobs that lie there, and the load of their NameNodes.",
    ),
    "move": Verb(
        "ha.cli.move",
        "move",
        "Move JOB to another root of its group, with its checkpoints and all that it has.",
        changes=True,
    ),
    "balance": Verb(
        "ha.cli.move", "balance", "Move jobs from loaded roots of a group to others, one after the other.", changes=True
    ),
    "savepoint": Verb(
        "ha.cli.savepoint",
        "savepoint",
        "Take a savepoint of JOB: all its queries at a consistent cut, at URI or among its own.",
        changes=True,
    ),
    "checkpoint": Verb(
        "ha.cli.read",
        "checkpoint",
        "Print the next checkpoint id of JOB and the newest completed checkpoint of each of its queries.",
    ),
    "checkpoints": Verb(
        "ha.cli.read", "checkpoints", "List the completed checkpoints of JOB that are kept, newest last."
    ),
    "queries": Verb(
        "ha.cli.queries",
        "queries",
        "Show the queries that JOB has declared with ha.spark.Job: state, region, restarts, last error.",
    ),
    "adopt": Verb(
        "ha.cli.adopt_export",
        "adopt",
        "Copy the checkpoint directory at URI into JOB, as the checkpoint of QUERY.",
        changes=True,
    ),
    "preflight": Verb(
        "ha.cli.preflight",
        "preflight",
        "Tell whether COMMAND would restart from the checkpoints of JOB.",
        changes=True,  # of the program's own doing
    ),
    "export": Verb(
        "ha.cli.adopt_export",
        "export",
        "Copy the checkpoint of QUERY in JOB to URI: what a restart after one batch needs.",
        changes=True,
    ),
    "rewind": Verb(
        "ha.cli.rewind",
        "rewind",
        "Put QUERY of JOB back to an earlier batch that Spark retains: it goes on with the next one.",
        changes=True,
    ),
    "rescale": Verb(
        "ha.cli.rescale",
        "rescale",
        "Give the state of QUERY in JOB another number of partitions, or the running JOB another number of executors.",
        changes=True,
    ),
    "verify": Verb(
        "ha.cli.verify",
        "verify",
        "Verify each batch that Spark retains of the queries of JOB, or of the checkpoint directory at URI.",
    ),
    "inspect": Verb(
        "ha.cli.inspect",
        "inspect",
        "Show what the checkpoints of JOB, or the checkpoint directory at URI, say: batches, state, sources, settings.",
    ),
    "output": Verb(
        "ha.cli.output",
        "output",
        "List, verify, repair or merge what a job publishes with ha.spark.Output.",
        changes=True,
    ),
    "state": Verb(
        "ha.cli.state",
        "state",
        "Show keys and values in the state of QUERY in JOB, or in the checkpoint directory at URI.",
    ),
    "sweep": Verb(
        "ha.cli.sweep",
        "sweep",
        "Move what no retained batch can refer to into the trash: of the queries of JOB, or of the checkpoint at URI.",
        changes=True,
    ),
    "replicate": Verb(
        "ha.cli.replicate",
        "replicate",
        "Keep a replica of the checkpoints of JOB below URI, on another file system; `ha promote` there makes it the "
        "job.",
        changes=True,
    ),
    "promote": Verb(
        "ha.cli.promote",
        "promote",
        "Make the replica of JOB, below this root, the job: it goes on here from its newest complete batch.",
        changes=True,
    ),
    "clean": Verb(
        "ha.cli.clean",
        "clean",
        "Move the leftovers of JOB into its trash: graph, blobs and Spark's checkpoints.",
        changes=True,
    ),
    "trash": Verb("ha.cli.clean", "trash", "List, restore or delete what was cleaned up.", changes=True),
    "check": Verb(
        "ha.cli.check",
        "check_history",
        "Check the history that processes with the setting `history` have written into DIR.",
    ),
    "doctor": Verb(
        "ha.cli.doctor",
        "doctor",
        "Examine what contenders of this host need: settings, stores, permissions, clock, Java, and the directory of "
        "JOB.",
        changes=True,
    ),
    "config": Verb("ha.cli.config", "config", "Show the settings."),
    "sandbox": Verb(
        "ha.cli.sandbox",
        "sandbox",
        "Run a real ZooKeeper and a real HDFS on this machine, to try things out.",
        changes=True,
    ),
    "drill": Verb(
        "ha.cli.drill",
        "drill",
        "Break the stores, networks and hosts of a real streaming job, and check that it survives.",
        changes=True,
    ),
}


SECTIONS = {
    "Run a job": ("run", "submit", "daemon", "agent"),
    "Look": ("list", "status", "leader", "watch", "queries", "exceptions", "history"),
    "Operate a job": ("stop", "cancel", "restart", "pause", "resume", "resign", "switchover", "clean", "trash"),
    "Operate a host": ("drain", "undrain"),
    "Operate a group of NameNodes": ("groups", "move", "balance"),
    "Checkpoints and outputs": (
        *("checkpoints", "checkpoint", "inspect", "state", "verify"),
        *("savepoint", "rewind", "rescale", "export", "adopt", "replicate", "promote", "sweep", "output"),
        "preflight",
    ),
    "Set up and test": ("doctor", "config", "sandbox", "drill", "check"),
}
"""The lists of ``ha --help``, in the order in which somebody who is new meets them."""

WIDEST_NAME = 14


class Verbs(click.Group):
    """A group whose commands are loaded when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs, sorted."""
        del ctx
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a verb; None if there is none of that name."""
        del ctx
        if cmd_name not in VERBS:
            return None
        verb = VERBS[cmd_name]
        command: click.Command = getattr(import_module(verb.module), verb.name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the lists of verbs without loading them."""
        del ctx
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, VERBS[name].short) for name in names], col_max=WIDEST_NAME)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb that was given; a mistake names similar verbs, but only those that change nothing."""
        if args[0] in VERBS or args[0].startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"There is no command {args[0]!r}. {_meant(args[0])}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a verb without loading any."""
        found = [CompletionItem(name, help=verb.short) for name, verb in sorted(VERBS.items())]
        return [
            *(each for each in found if str(each.value).startswith(incomplete)),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]


def _meant(given: str) -> str:
    """Say what was probably meant, among all that changes nothing."""
    import difflib  # noqa: PLC0415  # only mistakes need it

    harmless = {name: f"ha {name}" for name, verb in VERBS.items() if not verb.changes}
    harmless |= {"version": "ha --version", "help": "ha --help"}
    close = difflib.get_close_matches(given, harmless, n=1)
    return f"Did you mean `{harmless[close[0]]}`?" if close else "`ha --help` lists all commands."
