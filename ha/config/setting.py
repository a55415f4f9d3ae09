"""One setting: its documentation, its names, and its value in an error message.

A setting is a field of a struct: ``name: type = setting(default, text, unit)``.
"""

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from leader.errors import InvalidSettings
from leader.timing import LONGEST

T = TypeVar("T", str, float, int, bool)

MAX_SHOWN_CHARACTERS = 100  # characters of a wrong value that an error message shows


class SettingReference(msgspec.Struct, frozen=True):
    """The documentation of one setting."""

    name: str  # of the field, of the argument, and in ``ha.toml``: ``stop_grace``
    kind: type[str | float | int | bool]
    unit: str  # ``seconds`` for example; empty if it has none
    default: str  # as text for people
    text: str  # complete sentences

    @property
    def variable(self) -> str:
        """Its name in the environment: ``HA_STOP_GRACE``."""
        return f"HA_{self.name.upper()}"


class Default(msgspec.Struct, frozen=True):
    """The default of a field, and its documentation, where msgspec keeps what makes a default."""

    value: Any
    text: str
    unit: str
    shown: str

    def __call__(self) -> Any:
        """Return the value."""
        return self.value


def setting(value: T, text: str, unit: str = "", shown: str = "") -> T:
    """Return a field with a default; ``shown`` describes that for people, if the value does not."""
    field: T = msgspec.field(default_factory=Default(value, text, unit, shown))
    return field


def seconds(value: float, text: str, shown: str = "") -> float:
    """Return a field with a duration."""
    return setting(value, text, "seconds", shown)


def reference_of(field: msgspec.structs.FieldInfo) -> SettingReference:
    """Read the documentation of a setting from its field."""
    default = field.default_factory
    assert isinstance(default, Default), "a setting is made by the functions above"
    value = default.value
    as_text = f"{value:g}" if field.type is float else str(value).lower() if field.type is bool else str(value)
    return SettingReference(field.name, field.type, default.unit, default.shown or as_text, default.text)


def shown(value: object) -> str:
    """Write a wrong value for an error message; a long one is cut."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits; a table in a table in a table ...
        return "too long to show"
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."


def nearest(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Return the known names that were probably meant by an unknown one."""
    import difflib  # noqa: PLC0415  # only mistakes need it

    return difflib.get_close_matches(name, sorted(known), most)


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Check a setting that has a few values."""
    if value not in allowed:
        raise InvalidSettings(f"{name} is {shown(value)}: it must be {' or '.join(map(repr, allowed))}.")


def check_number(name: str, value: int, least: int, most: int | None = None) -> None:
    """Check a whole number."""
    if value < least or (most is not None and value > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {most:,}"
        raise InvalidSettings(f"{name} is {value}: it must be {allowed}.")


def check_seconds(name: str, value: float, least: float) -> None:
    """Check a duration."""
    if not value >= least:
        raise InvalidSettings(f"{name} is {value:g} s: it must be at least {least:g}.")
    if value > LONGEST:  # a thread can wait for 292 years at most
        raise InvalidSettings(f"{name} is {value:g} s: it must be at most {LONGEST:,}.")


_UNITS = {
    name: seconds
    for seconds, names in (
        (0.001, "ms milli millis millisecond milliseconds"),
        (1.0, "s sec secs second seconds"),
        (60.0, "m min mins minute minutes"),
        (3600.0, "h hour hours"),
        (86_400.0, "d day days"),
    )
    for name in names.split()
}
"""Seconds in each unit. Flink and Spark agree on all of these."""

_DURATION = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) *([a-z]+)", re.ASCII)
MAX_CHARACTERS = 40  # no duration is longer than this as text


def seconds_of(text: str) -> float | None:
    """Return the seconds that a text with a unit means; None if it is not a duration with a unit."""
    match = _DURATION.fullmatch(text.strip().lower()) if len(text) <= MAX_CHARACTERS else None
    unit = _UNITS.get(match[2]) if match else None
    if match is None or unit is None:
        return None
    # Thousandths and whole units are divided and multiplied so that 1500 ms is 1.5 s exactly.
    return float(match[1]) / 1000 if unit < 1 else float(match[1]) * unit
