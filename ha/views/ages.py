"""Times for people: a moment by the clock of a file system, how long ago it was, and lengths of time."""

import time
from datetime import UTC, datetime

UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def at_time(at_ms: int) -> str:
    """Write a time of the file system, in milliseconds since 1970, as text."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):  # anybody can set a file's time, to the year 300,000 for example
        return "unknown"


def ago(at: str) -> str:
    """Write how long ago a time of :func:`at_time` was, by this host's clock, after that time."""
    try:
        seconds = time.time() - datetime.fromisoformat(at).timestamp()
    except ValueError:
        return at
    return f"{at} ({duration(max(0.0, seconds))} ago)"


def duration(seconds: float) -> str:
    """Write a length of time in its largest unit."""
    for unit, length in UNITS:
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
