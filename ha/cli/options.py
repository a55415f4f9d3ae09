"""Options and helpers that several commands share."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ha.config.setting import seconds_of
from ha.config.settings import reference

Command = TypeVar("Command", bound=Callable[..., Any])

LONGEST_S = 86_400  # the longest timeout: a day, more than anybody needs

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


class Seconds(click.FloatRange):
    """A duration, such as ``10``, ``10 s`` or ``1 min``: greater than 0 and at most a day, if nothing else is said."""

    def __init__(self, longest: int = LONGEST_S) -> None:
        super().__init__(min=0, max=longest, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the text; "nan" is refused too, although no comparison with a bound does so."""
        known = seconds_of(value) if isinstance(value, str) else None
        seconds: float = super().convert(value if known is None else known, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{seconds} is not in the range 0<x<={self.max:.0f}.", param, ctx)
        return seconds


def seconds_option(default: float | str, text: str, flag: str = "--timeout") -> Callable[[Command], Command]:
    """Return an option that takes a duration; ``text`` is its help."""
    return click.option(flag, type=Seconds(), default=default, show_default=True, metavar="SECONDS", help=text)


timeout_option = seconds_option(2.0, "Wait this long for an answer, in seconds.")
yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
lead_option = seconds_option(10.0, "Wait this long for the job's lease, in seconds.")


def setting_option(name: str, **more: Any) -> Callable[[Command], Command]:
    """Return the option for a setting; its help is the setting's documentation."""
    # `name`: the setting's, which is also the name of the command's parameter. `more`: passed on to
    # ``click.option``.
    documented = next(each for each in reference() if each.name == name)
    text = f"{documented.text}  [env: {documented.variable}; default: {documented.default}]"
    flag = f"--{name.replace('_', '-')}"
    if documented.kind is bool:
        flag, more = f"{flag}/--no-{flag[2:]}", {"default": None, **more}
    return click.option(flag, name, help=text, **more)


def stores(command: Command) -> Command:
    """Add the options that say where the stores are."""
    return setting_option("files", metavar="URI")(setting_option("zookeeper", metavar="ADDRESS")(command))


def printable(text: str) -> str:
    """Escape what would break a line or command a terminal: addresses and names of queries can be any text."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def endpoints(given: tuple[str, ...]) -> dict[str, str]:
    """Read ``NAME=ADDRESS`` options. click.BadParameter: one of them has another form, or a name is given twice."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, address = text.partition("=")
        if not equals:
            raise click.BadParameter(f"{text!r} is not NAME=ADDRESS, such as jobmaster=host:6123.")
        if name in found:
            raise click.BadParameter(f"endpoint {name!r} is given twice.")
        found[name] = address
    return found
