"""End note: why an end of the program now would be a failure. The sidecar reads it: ``ha/program/end_file.py``."""

from __future__ import annotations

import json
import os
from contextlib import suppress


def write(file: str, said: str, remedy: str = "", *, inside: bool = False) -> None:
    """Replace the note; an empty one says that an end is as it was meant. Skip it if it cannot be written."""
    # inside: nothing is wrong but that the program was at work.
    told = {"said": said, "remedy": remedy, "inside": inside} if said else {}
    with suppress(OSError):
        with open(f"{file}.staged", "w", encoding="utf-8") as new:  # noqa: PTH123  # shorter than the import
            json.dump(told, new)
        os.replace(f"{file}.staged", file)  # noqa: PTH105


def read(file: str) -> tuple[str, bool]:
    """Return what is said, and whether nothing is wrong but that the program was at work."""
    try:
        with open(file, encoding="utf-8") as noted:  # noqa: PTH123
            told = json.load(noted)
    except (OSError, ValueError):
        return "", False
    return str(told.get("said", "")), bool(told.get("inside"))
