"""Failure notes: the failures that a program has seen, in files on its host until the store has them.

They lie beside the program's report on its queries. The program writes each one down before it tries the store, and
removes it afterwards. What is left when the program ends is its sidecar's to write down. A program that imports nothing
of this package leaves all to its sidecar (:mod:`ha.hook.query_watch`), which need not wait for the end then.
"""

import os
import uuid
from contextlib import suppress
from pathlib import Path

import msgspec

from ha.program.files import beside, read, write

NOTE = ".failure-"


class Note(msgspec.Struct, frozen=True):
    """A failure, as :class:`leader.job.exceptions.JobException` has it."""

    kind: str
    message: str
    query: str = ""
    trace: str = ""


def make(note: Note) -> Path | None:
    """Write a note; returns its file, or None without a sidecar or without room for it."""
    with suppress(OSError):
        if path := os.environ.get("HA_QUERIES"):
            write(file := beside(Path(path), f"{NOTE}{uuid.uuid4().hex}"), note)
            return file
    return None


def left(directory: Path) -> dict[Path, Note]:
    """Return the notes of all runs whose files are in this directory, oldest first."""
    try:
        found = sorted(directory.glob(f"*{NOTE}*[0-9a-f]"), key=_age)
    except OSError:
        return {}  # the directory goes with its sidecar, or the host lacks a descriptor: the next time
    return {file: note for file in found if (note := read(file, Note)) is not None}


def drop(file: Path | None) -> None:
    """Remove a note, because the store has it."""
    if file is not None:
        with suppress(OSError):
            file.unlink(missing_ok=True)


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0
