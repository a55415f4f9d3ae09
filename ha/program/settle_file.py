"""Settle file: a sidecar asks its program to end its queries in order, and then itself.

    <file>.able        the program understands
    <file>             what the sidecar asks for
    <file>.settling    the program begins no batch any more
    <file>.drained     it has processed all that there was

There is one of each for each run of the program.
"""

from pathlib import Path

import msgspec

from ha.program.files import beside, read, write

SETTLING, DRAINED = ".settling", ".drained"


class Settle(msgspec.Struct, frozen=True):
    """A request to settle: within how many seconds, and whether all that there is has to be processed."""

    seconds: float
    drain: bool = False


def ask(path: Path, wanted: Settle) -> None:
    """Ask the program."""
    write(path, wanted)


def asked(path: Path) -> Settle | None:
    """Return what the sidecar asks for; None if it does not."""
    return read(path, Settle)


def begin(path: Path) -> None:
    """Say, also to other processes of the program, that no further batch begins."""
    beside(path, SETTLING).touch()


def begun(path: Path) -> bool:
    """Whether no further batch begins."""
    return beside(path, SETTLING).exists()


def note_drained(path: Path) -> None:
    """Say that all that there was has been processed."""
    beside(path, DRAINED).touch()


def drained(path: Path) -> bool:
    """Whether all that there was has been processed."""
    return beside(path, DRAINED).exists()
