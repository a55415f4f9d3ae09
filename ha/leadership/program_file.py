"""Program file: a sidecar asks its program for something, and the program says how far that has come.

    <file>.able      the program understands
    <file>           what the sidecar asks for
    <file>.answer    how far that has come, or how it has ended

There is one of each for each run of the program and each verb: to start a query again, or to have another number of
executors. A later request replaces an earlier one.
"""

from pathlib import Path
from typing import TypeVar

import msgspec

from leader.job.requests import State

T = TypeVar("T")

ABLE, ANSWER = ".able", ".answer"


class Wanted(msgspec.Struct, frozen=True):
    """A request to the program.

    Attributes:
        id: of the operator's request.
        what: name of the query, or number of executors.
    """

    id: str
    what: str


class Answer(msgspec.Struct, frozen=True):
    """The program's answer to the request of that id."""

    id: str
    state: State
    said: str


def able(path: Path) -> bool:
    """Whether the program understands."""
    return beside(path, ABLE).exists()


def enable(path: Path) -> None:
    """Say that this program understands."""
    beside(path, ABLE).touch()


def disable(path: Path) -> None:
    """Say that it does so no more."""
    beside(path, ABLE).unlink(missing_ok=True)


def ask(path: Path, wanted: Wanted) -> None:
    """Ask the program."""
    write(path, wanted)


def asked(path: Path) -> Wanted | None:
    """Return what the sidecar asks for; None if it does not."""
    return read(path, Wanted)


def answer(path: Path, said: Answer) -> None:
    """Answer the sidecar."""
    write(beside(path, ANSWER), said)


def answered(path: Path, identity: str) -> Answer | None:
    """Return the program's newest answer to a request; None without one."""
    found = read(beside(path, ANSWER), Answer)
    return found if found is not None and found.id == identity else None


def beside(path: Path, ending: str) -> Path:
    """Return the file beside another one whose name ends so."""
    return path.with_name(f"{path.name}{ending}")


def write(path: Path, value: msgspec.Struct) -> None:
    """Write a file that is complete at once.

    Raises:
        OSError: it cannot be written.
    """
    staged = beside(path, ".staged")
    staged.write_bytes(msgspec.json.encode(value))
    staged.replace(path)


def read(path: Path, kind: type[T]) -> T | None:
    """Return what was written; None if there is nothing, or nothing of that kind."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
