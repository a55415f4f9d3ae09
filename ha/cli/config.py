"""``ha config show``: every setting, its value, and where that comes from."""

import json
from typing import Any

import click

from ha.cli.options import json_option, printable, stores
from ha.config.settings import reference
from ha.config.sources import DEFAULT, Gathered, gather


@click.group()
def config() -> None:
    """Show the settings."""


@config.command()
@json_option
@stores
def show(as_json: bool, files: str | None, zookeeper: str | None) -> None:
    """Print every setting: its value, and where that comes from. Settings that clash are refused, as in any command.

    A process that was started elsewhere, in another directory or with other variables, can have other settings.
    """
    rows = settings_of(gather({"files": files, "zookeeper": zookeeper}, source="the command line"))
    if as_json:
        click.echo(json.dumps(rows))
        return
    lines = [(row["setting"], _value(row), printable(row["source"])) for row in rows]
    setting, value = (max(len(line[column]) for line in lines) for column in (0, 1))
    for line in [("SETTING", "VALUE", "FROM"), *lines]:
        click.echo(f"{line[0]:{setting}}  {line[1]:{value}}  {line[2]}")


def settings_of(gathered: Gathered) -> list[dict[str, Any]]:
    """Return each setting with its variable, value, unit and source; a derived default is shown as what it comes to."""
    settings, timing = gathered.settings, gathered.settings.timing
    derived = {"call_timeout": timing.call_timeout, "stop_margin": timing.stop_margin, "snapshot_fresh": settings.fresh}
    return [
        {
            "setting": each.key,
            "variable": each.variable,
            "value": derived.get(each.name, getattr(settings, each.name)),
            "unit": each.unit,
            "source": gathered.sources[each.name],
        }
        for each in reference()
    ]


def _value(row: dict[str, Any]) -> str:
    value = row["value"]
    if value == "":
        default = next(each.default for each in reference() if each.key == row["setting"])
        return f"({default})" if row["source"] == DEFAULT else "(empty)"
    shown = printable(value) if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
    return f"{shown} s" if row["unit"] == "seconds" else shown
