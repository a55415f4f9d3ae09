"""Options that several commands share."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ha.settings import Settings, load

Command = TypeVar("Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

A_DAY = 86_400


class Seconds(click.FloatRange):
    """A time to wait: more than nothing, and at most a day, which is more than anybody means."""

    def __init__(self) -> None:
        super().__init__(min=0, max=A_DAY, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the text; what is not a number is in no range either, though no comparison says so."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{seconds} is not in the range 0<x<={A_DAY}.", param, ctx)
        return seconds


timeout_option = click.option("--timeout", type=Seconds(), default=2.0, show_default=True, help="Seconds in all.")


def stores(command: Command) -> Command:
    """Add the options that say where the stores are."""
    for option in (
        click.option("--zookeeper", help="host:port,host:port/chroot.  [HA_ZOOKEEPER]"),
        click.option("--files", help="hdfs://..., webhdfs://... or file://... that holds the jobs.  [HA_FILES]"),
    ):
        command = option(command)
    return command


def settings(**arguments: Any) -> Settings:
    """Gather the settings; flags that were not given count for nothing."""
    return load(arguments)


def printable(text: str) -> str:
    """Escape what would break a line or command a terminal; addresses and names of queries can be any text."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def endpoints(given: tuple[str, ...]) -> dict[str, str]:
    """Read ``NAME=ADDRESS`` options.

    Raises:
        click.BadParameter: one of them is something else, or given twice.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, address = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not NAME=ADDRESS, such as jobmaster=host:6123.")
        if name in found:
            raise click.BadParameter(f"endpoint {name!r} is given twice.")
        found[name] = address
    return found
