"""Options and helpers that several commands share."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from ha.config.setting import seconds_of
from ha.config.settings import reference

Command = TypeVar("Command", bound=Callable[..., Any])

POSITIVE = click.FloatRange(min=0, min_open=True)

LONGEST_S = 86_400  # the longest timeout: a day, more than anybody needs


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


def value_option(
    flag: str, kind: Any, metavar: str | None, text: str, *, name: str | None = None, **more: Any
) -> Callable[[Command], Command]:
    """Return an option that takes a value of a kind; its help is ``text``, and shows the default if there is one."""
    # `name`: of the command's parameter, if it is not the flag's. `more`: passed on to ``click.option``.
    names = (flag,) if name is None else (flag, name)
    return click.option(*names, type=kind, metavar=metavar, help=text, show_default="default" in more, **more)


def flag_option(flag: str, text: str, *, name: str | None = None) -> Callable[[Command], Command]:
    """Return an option without a value."""
    return click.option(*((flag,) if name is None else (flag, name)), is_flag=True, help=text)


def seconds_option(default: float | str, text: str, flag: str = "--timeout") -> Callable[[Command], Command]:
    """Return an option that takes a duration; ``text`` is its help."""
    return value_option(flag, Seconds(), "SECONDS", text, default=default)


json_option = flag_option("--json", "Print JSON instead of text.", name="as_json")
timeout_option = seconds_option(2.0, "Wait this long for an answer.")
yes_option = flag_option("--yes", "Do not ask.")
lead_option = seconds_option(10.0, "Wait this long for the job's lease.")


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
