"""``ha lab sandbox``: a real ZooKeeper and a real HDFS on this machine."""

import functools
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ha.cli.options import flag_option, json_option, value_option
from ha.hosts.host_error import HostError
from ha.sandbox import Sandbox, ServerStatus

_COLOURS = {"up": "green", "paused": "yellow", "down": "red"}


def _common(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all commands of the group have, and report the sandbox's errors as the command's."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        try:
            command(**given)
        except HostError as error:
            raise click.ClickException(str(error)) from error

    directory = click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory of the sandbox.  [default: hybrid-ha/sandbox in the user's state directory]",
    )
    return directory(json_option(run))


@click.group()
def sandbox() -> None:
    """Run a real ZooKeeper and a real HDFS on this machine, to try things out."""


@sandbox.command(epilog="Example: ha lab sandbox up --kafka")
@_common
@value_option("--zookeepers", click.Choice(["1", "3"]), None, "ZooKeeper servers to run.  [default: as before, or 1]")
@value_option("--namenodes", click.Choice(["1", "2"]), None, "NameNodes to run.  [default: as before, or 1]")
@click.option("--secure", is_flag=True, default=None, help="With Kerberos and TLS, as clusters of companies have them.")
@click.option(
    "--ticket-life",
    type=click.IntRange(1),
    metavar="MINUTES",
    help="With --secure: how long each Kerberos ticket lasts.  [default: a day]",
)
@flag_option("--kafka", "With a Kafka broker, and Spark's connector for it.")
def up(
    directory: Path | None,
    as_json: bool,
    zookeepers: str | None,
    namenodes: str | None,
    secure: bool | None,
    ticket_life: int | None,
    kafka: bool,
) -> None:
    """Start all servers that are not running, and wait until all of them serve."""
    box = Sandbox(directory)
    console = Console(stderr=True, highlight=False)
    started = time.monotonic()

    def say(step: str) -> None:
        console.print(f"[dim]{time.monotonic() - started:5.1f} s[/dim]  {escape(step)}")

    with console.status("Looking at the servers"):
        zookeeper_servers, namenode_servers = _number(zookeepers), _number(namenodes)
        changed = box.up(
            zookeeper_servers, namenode_servers, progress=say, secure=secure, ticket_life=ticket_life, kafka=kafka
        )
    if as_json:
        _print_json({"changed": changed, "servers": box.status(), "environment": box.environment()})
    elif changed:
        click.echo(
            f"The sandbox is up after {time.monotonic() - started:.1f} s. Use it with: {_env_command(directory)}"
        )
    else:
        click.echo(f"The sandbox is up already. Use it with: {_env_command(directory)}")


@sandbox.command(epilog="Example: ha lab sandbox down")
@_common
@flag_option("--wipe", "Also delete the sandbox's data.")
def down(directory: Path | None, as_json: bool, wipe: bool) -> None:
    """Stop all servers. Their data are kept unless --wipe is given."""
    box = Sandbox(directory)
    stopped = box.down(wipe=wipe)
    if as_json:
        _print_json({"changed": stopped, "wiped": wipe})
    else:
        click.echo("The sandbox is down." if stopped else "The sandbox was down already.")


@sandbox.command(epilog="Example: ha lab sandbox status")
@_common
@click.pass_context
def status(context: click.Context, directory: Path | None, as_json: bool) -> None:
    """Show each server. Exit with 0 if all are up, else with 1."""
    box = Sandbox(directory)
    servers = box.status()
    if as_json:
        _print_json({"directory": str(box.directory), "servers": servers})
    elif servers:
        Console(highlight=False).print(_table(servers))
    else:
        click.echo(f"There is no sandbox in {box.directory}.")
    if not servers or any(server.state != "up" for server in servers):
        context.exit(1)


@sandbox.command(epilog='Example: eval "$(ha lab sandbox env)"')
@_common
def env(directory: Path | None, as_json: bool) -> None:
    """Print the environment variables that make programs use the sandbox: eval "$(ha lab sandbox env)"."""
    variables = Sandbox(directory).environment()
    if as_json:
        _print_json(variables)
    else:
        for name, value in variables.items():
            click.echo(f"export {name}={shlex.quote(value)}")


def _number(text: str | None) -> int | None:
    return int(text) if text is not None else None


def _print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _env_command(directory: Path | None) -> str:
    chosen = f" --dir {shlex.quote(str(directory))}" if directory is not None else ""
    return f'eval "$(ha lab sandbox env{chosen})"'


def _table(servers: list[ServerStatus]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "kind", "pid", "port", "state", "role"):
        table.add_column(column, justify="right" if column in {"pid", "port"} else "left")
    for server in servers:
        table.add_row(
            server.name,
            server.kind,
            str(server.pid or "-"),
            str(server.port),
            f"[{_COLOURS[server.state]}]{server.state}[/]",
            server.role or "-",
        )
    return table
