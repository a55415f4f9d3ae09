"""Durations as people write them: ``10 s``, ``1 min`` or ``500 ms``, as in Flink and Spark, or a number of seconds."""

import re

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
