"""This installation, whose files may be replaced while processes run that have loaded them."""

from pathlib import Path

HOME = Path(__file__).parents[2]
NEEDED = tuple(HOME / each for each in ("ha/sidecar/command/guard.py", "ha/program/deadline_file.py", "store/clock.py"))
"""Of what a sidecar has not loaded and needs when it starts its command."""


def gone() -> str:
    """Return a sentence if a file is gone that the next command needs; empty if all are there."""
    missing = next((each for each in NEEDED if not each.exists()), None)
    if missing is None:
        return ""
    return f"{missing} is gone: this installation was replaced while its processes ran. Start the sidecar anew."
