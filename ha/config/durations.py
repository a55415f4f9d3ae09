"""Durations as people write them: ``10 s``, ``1 min`` or ``500 ms``, as in Flink and Spark, or a number of seconds."""

import re

_UNITS = {
    "ms": 0.001,
    "milli": 0.001,
    "millis": 0.001,
    "millisecond": 0.001,
    "milliseconds": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "min": 60.0,
    "mins": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86_400.0,
    "day": 86_400.0,
    "days": 86_400.0,
}
"""Seconds in each unit. Flink and Spark agree on all of these."""

_DURATION = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) *([a-z]+)", re.ASCII)
MAX_CHARACTERS = 40
"""No duration is longer than this as text."""


def seconds_of(text: str) -> float | None:
    """Return the seconds that a text with a unit means; None if it is not a duration with a unit."""
    match = _DURATION.fullmatch(text.strip().lower()) if len(text) <= MAX_CHARACTERS else None
    unit = _UNITS.get(match[2]) if match else None
    if match is None or unit is None:
        return None
    # Thousandths and whole units are divided and multiplied so that 1500 ms is 1.5 s exactly.
    return float(match[1]) / 1000 if unit < 1 else float(match[1]) * unit
