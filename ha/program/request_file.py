"""Request file: a sidecar asks its program for something, and the program says how far that has come.

    <file>.able      the program understands
    <file>           what the sidecar asks for
    <file>.answer    how far that has come, or how it has ended

There is one of each for each run of the program, to start a query again. A later request replaces an earlier one.
A thread of the program looks for them: :func:`asked_watch`.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import msgspec

from ha.program.files import beside, read, write
from leader.job.request_folder import State

ABLE, ANSWER = ".able", ".answer"

LOOK_S = 0.25  # between two looks for the file; each is one call of the kernel
Tell = Callable[[State, str], object]  # called with how far it has come, in one sentence

_log = logging.getLogger("ha")


class Wanted(msgspec.Struct, frozen=True):
    """A request to the program: the id of the operator's request, and the name of the query."""

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


@contextmanager
def asked_watch(path: Path, look: Callable[[], bool], thread: str) -> Iterator[None]:
    """Look on a thread while the block lasts; so long the sidecar knows that the program understands."""
    # ``look`` does what is asked, and returns whether nothing else can be asked later.
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_S):
            if look():
                return

    enable(path)
    threading.Thread(target=watch, name=thread, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        with suppress(OSError):  # the sidecar has gone, and its files with it
            beside(path, ABLE).unlink(missing_ok=True)


def program_watch(path: Path, do: Callable[[str, Tell], object]) -> AbstractContextManager[None]:
    """Have the query restarted, by its name, that the sidecar asks for, while the block lasts."""
    last = ""

    def look() -> bool:
        nonlocal last
        wanted = asked(path)
        if wanted is not None and wanted.id != last:
            last = wanted.id
            before = answered(path, wanted.id)
            if before is None or not before.state.final:  # else an earlier program of the same engine has done it
                _do(path, wanted, do)
        return False

    return asked_watch(path, look, "ha-asked")


def _do(path: Path, wanted: Wanted, do: Callable[[str, Tell], object]) -> None:
    def tell(state: State, said: str) -> None:
        with suppress(OSError):
            answer(path, Answer(wanted.id, state, said))

    try:
        do(wanted.what, tell)
    except Exception as error:  # noqa: BLE001  # of Spark or py4j; the next request is heeded all the same
        _log.exception("What an operator asks for has failed.")
        tell(State.FAILED, f"Its program has failed to do it, as its log says: {type(error).__name__}.")
