"""The context of a command: what its flags say, the stores that it opens, and how it prints its result."""

import contextlib
import functools
import getpass
import inspect
import json
import os
import re
import socket
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Self

import click
import msgspec

from ha.cli.options import json_option, printable, stores
from ha.config.setting import nearest
from ha.config.settings import Settings
from ha.config.sources import DEFAULT, Gathered, gather
from ha.config.stores import Stores
from ha.doctor.finding import DATANODES, remedy
from ha.placement.place import roots_of
from ha.views.leases import Leases
from leader.errors import LeaderError, NoLeader, Unreachable
from leader.job.admin import JobAdmin
from store.errors import AlreadyExists, Conflict, Invalid, NotFound, NotSent, StoreError, Unknown
from store.outcome import doubts
from store.traits import traits

LOOK_S = 1.0  # seconds for another look at a file system that has not answered

SHOWN = {"target": "JOB|URI", "name": "OUTPUT", "where": "URI|NAME"}  # how the help calls an argument

COMMON = ("dry_run", "yes", "timeout")  # options that are the context's, unless a command takes them itself


class Context:
    """One run of a command. The stores are opened when they are asked for, and closed when the command ends."""

    def __init__(
        self,
        as_json: bool,
        files: str | None,
        zookeeper: str | None,
        *,
        dry_run: bool = False,  # only say what would be done
        yes: bool = False,  # do not ask
        timeout: float = 0.0,  # seconds
    ) -> None:
        """Open nothing yet; a flag that was not given does not count."""
        self.as_json, self.dry_run, self.yes, self.timeout = as_json, dry_run, yes, timeout
        self.flags = {"files": files, "zookeeper": zookeeper}
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._opened.close()

    @cached_property
    def gathered(self) -> Gathered:
        """All settings, and where each came from."""
        return gather(self.flags, source="the command line")

    @property
    def settings(self) -> Settings:
        """All of them."""
        return self.gathered.settings

    @cached_property
    def stores(self) -> Stores:
        """The stores that they name."""
        return self._opened.enter_context(contextlib.closing(Stores(self.settings)))

    @cached_property
    def admin(self) -> JobAdmin:
        """The jobs, as an operator sees them."""
        return JobAdmin(self.stores.files, self.stores.zookeeper, self.stores.patience)

    @cached_property
    def leases(self) -> Leases:
        """Whether jobs are led, as one look finds it."""
        return Leases(self.stores)

    def where(self, job: str | None = None) -> str:
        """Return a sentence for what is not there: which setting says where to look, and the nearest names of jobs."""
        source = self.gathered.sources["files"]
        said = f"`files` comes from {source}."
        if source == DEFAULT:
            said = "`files` was not given, so this is the default: set HA_FILES, or `files` in ha.toml."
        with contextlib.suppress(StoreError):
            known = self.admin.jobs()
            if job in known:
                return ""
            if job is not None and (close := nearest(job, known, 3)):
                said = f"Did you mean {' or '.join(map(repr, close))}? {said}"
        return said

    def advice(self, error: Exception) -> str:
        """Return the next step after an error of a store, and which store that was."""
        ours, (failed, root), step = self.stores.files.uri, self.stores.failed, remedy(error)
        if failed is error and not root.startswith(tuple(roots_of(ours))):
            return f"{step[:-1]}: that is {root}."
        if isinstance(error, (NotSent, Unknown)) and not traits(ours).local:
            now = self.stores.files.outcome("list", lambda files: files.list(""), LOOK_S).error
            step = (
                step if isinstance(now, (NotSent, Unknown)) else f"Its NameNode answers now: try again, or {DATANODES}"
            )
        return f"{step[:-1]}: `files` is {root if failed is error else ours} ({self.gathered.sources['files']})."

    def show(self, result: object, text: str | Iterable[str] = ()) -> None:
        """Print a result as JSON if that was asked for, else its text; lines are made only then."""
        if self.as_json:
            click.echo(json.dumps(msgspec.to_builtins(result)))
            return
        for line in [text] if isinstance(text, str) else text:
            click.echo(line)

    def tell(self, line: str) -> None:
        """Print a line of what is going on, unless the result is JSON."""
        if not self.as_json:
            click.echo(line)


def command(name: str | None = None, **more: Any) -> Callable[[Callable[..., object]], click.Command]:
    """Make a command of a function whose first parameter is its context; it gets the options that all have.

    A text without an option of its own is an argument, and may be left out if it may be None.
    """

    def decorate(function: Callable[..., object]) -> click.Command:
        parameters = inspect.signature(function).parameters

        @functools.wraps(function)
        def run(as_json: bool, files: str | None, zookeeper: str | None, **given: Any) -> None:
            common = {each: given.pop(each) for each in COMMON if each in given and each not in parameters}
            with Context(as_json, files, zookeeper, **common) as context:
                try:
                    function(context, **given)
                except NoLeader as error:
                    job = given.get("job", given.get("target"))
                    if type(error) is not NoLeader or job is None or not (where := context.where(job)):
                        raise
                    raise NoLeader(f"{error} {where}") from error
                except (StoreError, Unreachable) as error:
                    error.add_note(context.advice(error))
                    raise

        own = getattr(function, "__click_params__", [])
        vars(run).pop("__click_params__", None)
        plain: Callable[..., Any] = run
        made: click.Command = click.command(name, **more)(json_option(stores(plain)))  # type: ignore[no-untyped-call]
        options = {each.name for each in own}
        arguments = [_argument(name, parameters[name].annotation) for name in parameters if name not in options]
        made.params = [*filter(None, arguments), *reversed(own), *made.params]
        return made

    return decorate


def _argument(name: str, kind: object) -> click.Argument | None:
    shown = SHOWN.get(name, name.upper())
    if kind is str:
        return click.Argument([name], metavar=shown)
    return click.Argument([name], metavar=f"[{shown}]", required=False) if kind == str | None else None


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], right: Container[str] = ()) -> Iterator[str]:
    """Yield the lines of a table in its natural width: a column that was cut could not be read."""
    cells = [list(columns), *([cell(each) for each in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        padded = zip(columns, line, widths, strict=True)
        yield "  ".join(
            text.rjust(width) if column in right else text.ljust(width) for column, text, width in padded
        ).rstrip()


def cell(value: object) -> str:
    """Write a value as people read it; what is not known is a dash."""
    if value is None or value in ("", [], ()):
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return printable(" ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))


def needs(what: str, *packages: str) -> None:
    """Refuse a command without its packages; ``what`` is what it does. UsageError: one of them is not installed."""
    if missing := [each for each in packages if find_spec(each) is None]:
        name = {"pyspark": "Spark", "confluent_kafka": "Kafka's client"}.get(missing[0], missing[0])
        extra = "kafka" if missing[0] == "confluent_kafka" else "spark"
        raise click.UsageError(f"{what} needs {name}: pip install 'hybrid-ha[{extra}]'.")


@contextlib.contextmanager
def refusals_as_errors(*, changes: bool = True) -> Iterator[None]:
    """Report a refusal, such as a path that exists already, as a failed command (1), not as a store that fails (4)."""
    # Only for commands that can be run again: if they change anything, an outcome that stays unknown says so.
    again = doubts("the last change was made", "run the command again, which looks first and continues")
    try:
        with again if changes else contextlib.nullcontext():
            yield
    except (AlreadyExists, Conflict, Invalid, NotFound) as error:
        raise LeaderError(f"{error}") from error


def consent(*, yes: bool) -> None:
    """Ask, unless the answer was given. Abort: the answer is no. UsageError: there is no terminal to ask at."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("This command asks before it changes anything: without a terminal give --yes.")
    click.confirm("Shall it be done?", abort=True, err=True)


def agreement(
    context: Context, lines: Callable[[Any], Iterable[str]], check: Callable[[Any], None]
) -> Callable[..., bool]:
    """Return what is asked before a checkpoint is changed: it tells the outlook, and refuses, or asks, once."""

    def agree(outlook: Any, *, again: bool) -> bool:
        for line in lines(outlook) if not again else ():
            context.tell(line)
        if context.dry_run or outlook.is_there:
            return False
        check(outlook)
        if not again:
            consent(yes=context.yes)
        return True

    return agree


def operator() -> str:
    """Return who runs this command, for the history: user and host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        user = str(os.geteuid())
    return re.sub(r"[^A-Za-z0-9.-]", "-", f"{user}-on-{socket.gethostname()}")[:64]
