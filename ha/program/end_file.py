"""End file: a program says in it why an end now would be a failure, and what mends that failure.

It lies beside the program's report on its queries, one for each run. A program makes it when it enters its block of
``ha.lead``, and empties it when it leaves the block as it was meant to. While it says something, an exit code of 0 is a
failure: a shell can hide the code of a program, and ``os._exit(0)`` leaves no block. If there is none, the program has
said nothing of its end, and the guard may (:mod:`ha.sidecar.command.offspring`).
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from ha.program.files import beside, read, write

LONGEST = 1000  # characters of each text that are read


class End(msgspec.Struct, frozen=True):
    """How a program ends."""

    said: str = ""  # why that is no success; empty if it is
    remedy: str = ""  # what to do, because no restart mends its failure; empty if one may
    inside: bool = False  # nothing is wrong but that it was at work: of another exit code than 0 that says nothing


INSIDE = End("it was inside its block of ha.lead.", inside=True)


def tell(end: End) -> None:
    """Notify the sidecar, if the program runs under one; if that fails, a restart follows, as it would anyway."""
    if path := os.environ.get("HA_QUERIES"):
        with suppress(OSError):
            write(of(Path(path)), end)


def told(report: Path) -> End:
    """Return what a run has said, given the path of its report."""
    found = read(of(report), End) or End()
    return End(found.said[:LONGEST], found.remedy[:LONGEST], found.inside)


def of(report: Path) -> Path:
    """Return the end file of a run, given the path of its report."""
    return beside(report, ".end")
