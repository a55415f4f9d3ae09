"""One setting: its documentation, its names, and its value in an error message.

A setting is a field of a struct: ``name: Annotated[type, setting(text, unit, default)] = value``.
"""

import re
from typing import get_args

import msgspec

from leader.errors import InvalidSettings
from leader.timing import LONGEST

MAX_SHOWN_CHARACTERS = 100
"""Characters of a wrong value that an error message shows."""


class SettingReference(msgspec.Struct, frozen=True):
    """The documentation of one setting.

    Attributes:
        name: of the field, and of the argument: ``stop_grace``.
        key: its name in ``ha.toml``: the same, except that restart strategies have Flink's names.
        variable: its name in the environment: ``HA_STOP_GRACE``.
        kind: the type of its value.
        unit: of its value, ``seconds`` for example; empty if it has none.
        default: the default, as text for people.
        text: complete sentences.
    """

    name: str
    key: str
    variable: str
    kind: type[str | float | int]
    unit: str
    default: str
    text: str


def setting(text: str, unit: str = "", default: str = "") -> msgspec.Meta:
    """Document a field.

    Args:
        text: complete sentences.
        unit: of the value; empty if it has none.
        default: describes the default if the value does not; empty to show the value.
    """
    return msgspec.Meta(description=text, extra={"unit": unit, "default": default})


def key_of(field: str) -> str:
    """Return the name of a setting in ``ha.toml``: the field's name, or Flink's name for an option of Flink's."""
    flink = re.fullmatch(r"restart_strategy_(?:(fixed_delay|failure_rate|exponential_delay)_)?(\w+)", field)
    return (
        ".".join(part.replace("_", "-") for part in ("restart_strategy", *flink.groups()) if part) if flink else field
    )


def reference_of(field: msgspec.structs.FieldInfo) -> SettingReference:
    """Read the documentation of a setting from its field."""
    kind, meta = get_args(field.type)
    shown_default = field.default if isinstance(field.default, str) else f"{field.default:g}"
    return SettingReference(
        name=field.name,
        key=field.encode_name,
        variable=f"HA_{field.name.upper()}",
        kind=kind,
        unit=meta.extra["unit"],
        default=meta.extra["default"] or shown_default,
        text=meta.description,
    )


def shown(value: object) -> str:
    """Write a wrong value for an error message; a long one is cut."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits; a table in a table in a table ...
        return "too long to show"
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Check a setting that has a few values.

    Raises:
        InvalidSettings: it has another.
    """
    if value not in allowed:
        raise InvalidSettings(f"{name} is {shown(value)}: it must be {' or '.join(map(repr, allowed))}.")


def check_seconds(name: str, value: float, least: float) -> None:
    """Check a duration.

    Raises:
        InvalidSettings: it is out of range.
    """
    if not value >= least:
        raise InvalidSettings(f"{name} is {value:g} s: it must be at least {least:g}.")
    if value > LONGEST:  # a thread can wait for no more than 292 years
        raise InvalidSettings(f"{name} is {value:g} s: it must be at most {LONGEST:,}.")
