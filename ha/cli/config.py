"""``ha host config``: every setting, its value, and where that comes from."""

from collections.abc import Iterator
from typing import Any

from ha.cli.context import Context, command, table
from ha.cli.options import printable
from ha.config.settings import reference
from ha.config.sources import DEFAULT, Gathered


@command()
def config(context: Context) -> None:
    """Print every setting: its value, and where that comes from. Settings that clash are refused, as in any command.

    A process that was started elsewhere, in another directory or with other variables, can have other settings.
    """
    rows = settings_of(context.gathered)
    context.show(rows, _lines(rows))


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    return table(("SETTING", "VALUE", "FROM"), [(row["setting"], _value(row), row["source"]) for row in rows])


def settings_of(gathered: Gathered) -> list[dict[str, Any]]:
    """Return each setting with its variable, value, unit and source; a derived default is shown as what it comes to."""
    values = {**gathered.settings.flat(), "call_timeout": gathered.settings.leadership.timing.call_timeout}
    return [
        {
            "setting": each.name,
            "variable": each.variable,
            "value": values[each.name],
            "unit": each.unit,
            "source": gathered.sources[each.name],
        }
        for each in reference()
    ]


def _value(row: dict[str, Any]) -> str:
    value = row["value"]
    if value == "":
        default = next(each.default for each in reference() if each.name == row["setting"])
        return f"({default})" if row["source"] == DEFAULT else "(empty)"
    shown = (
        printable(value) if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value).lower()
    )
    return f"{shown} s" if row["unit"] == "seconds" else shown
