"""Where settings come from, besides arguments: ``ha.toml`` and the environment. What is none is refused."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from leader.errors import InvalidSettings

CONFIG_FILE = "ha.toml"

MAX_FILE_BYTES = 1_000_000
"""A longer file has no settings in it."""

KINDS = {str: "a text", float: "a number", int: "a whole number"}
"""What an error calls the type of a setting."""

SHOWN = 100
"""Characters of a wrong value that an error shows."""

Known = Mapping[str, type]
"""The settings there are: their names in ``ha.toml``, and their types."""


def check(values: Mapping[str, Any], where: str, known: Known) -> None:
    """Refuse what is no setting, or of the wrong kind.

    Raises:
        InvalidSettings: the sentence says which, and ``where`` it was found.
    """
    for key, value in values.items():
        if key not in known:
            import difflib  # noqa: PLC0415  # only mistakes need it

            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the settings are {', '.join(known)}."
            raise InvalidSettings(f"{shown(key)} in {where} is not a setting: {hint}")
        try:
            msgspec.convert(value, known[key], strict=False)
        except (msgspec.ValidationError, UnicodeEncodeError):  # the latter for bytes that are not UTF-8
            raise InvalidSettings(f"{key} in {where} is {shown(value)}: it must be {KINDS[known[key]]}.") from None


def shown(value: object) -> str:
    """Write a wrong value as an error shows it: not all of it, if it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits; a table in a table in a table ...
        return "more than can be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def config_path(environment: Mapping[str, str]) -> Path:
    """Return where ``ha.toml`` is looked for."""
    return Path(environment.get("HA_CONFIG") or CONFIG_FILE)


def from_file(environment: Mapping[str, str], known: Known) -> dict[str, Any]:
    """Return what ``ha.toml`` says, by the names there; nothing if it is not there, and nobody said that it is.

    Raises:
        InvalidSettings: it cannot be read, or is no TOML.
    """
    path = config_path(environment)
    where = printable(path)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        if environment.get("HA_CONFIG"):
            raise InvalidSettings(f"HA_CONFIG names {where}, and there is no such file.") from None
        return {}
    except OSError as error:
        raise InvalidSettings(f"{where} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # a zero character, or one that the locale cannot encode
        raise InvalidSettings(f"HA_CONFIG names {where}, which cannot be a path ({error}).") from error
    if len(data) > MAX_FILE_BYTES:
        raise InvalidSettings(f"{where} is too long for settings: it has more than {MAX_FILE_BYTES:,} bytes.")
    import tomllib  # noqa: PLC0415  # Python workers have no such file

    try:
        return dict(_flat(tomllib.loads(data.decode()), known))
    except ValueError as error:  # tomllib's own, or of text that is not UTF-8, or of an integer too long for Python
        raise InvalidSettings(f"{where} is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise InvalidSettings(f"{where} is not valid TOML: its values are nested too deeply.") from error


def _flat(table: Mapping[str, Any], known: Known, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Give what is in the tables that names with dots stand for under these names."""
    for key, value in table.items():
        name = prefix + key
        if isinstance(value, dict) and any(each.startswith(f"{name}.") for each in known):
            yield from _flat(value, known, f"{name}.")
        else:
            yield name, value


def printable(path: Path) -> str:
    """Return a path as an error shows it: one that would break the line or command a terminal only in quotes."""
    text = str(path)
    return text if text.isprintable() else repr(text)
