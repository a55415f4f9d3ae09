"""Grant file: appears when a sidecar was granted the job, to tell a warm command that waits for it.

Its first line is the name of the leader directory: epoch and session id. Its second line is the URI of that directory.
The waiting program leaves a mark beside it, so the sidecar knows that the program is warm. When it takes the grant it
leaves a second mark. Without the second mark an exit code of 0 does not mean that the job has finished, because a
program may end before its grant.
"""

import threading
from contextlib import suppress
from pathlib import Path

from ha.program.files import beside, replace
from leader.errors import NotLeader
from leader.layout.names import LeaderDirectory
from store.clock import now

POLL_S = 0.02  # pause between two looks for the file


def grant(path: Path, directory: LeaderDirectory, uri: str) -> None:
    """Create the file, complete at once; ``uri`` is that of the leader directory."""
    replace(path, f"{directory.name}\n{uri}\n".encode())


def granted(path: Path) -> tuple[LeaderDirectory, str] | None:
    """Return the leader directory that was granted, and its URI; None if nothing was granted yet."""
    try:
        name, uri = path.read_text().splitlines()
    except (OSError, ValueError):
        return None
    directory = LeaderDirectory.parse(name)
    return None if directory is None else (directory, uri)


def taken(path: Path) -> bool:
    """Whether the program has taken the grant."""
    return _taken(path).exists()


def awaited_since(path: Path) -> float | None:
    """Return since when the program has waited for the grant, in seconds of the boot clock; None if it has not."""
    try:
        return float(_awaited(path).read_text())
    except OSError:
        return None
    except ValueError:  # half-written, or made by a program of another language, which need not give a time
        return now()


def take(path: Path, timeout: float | None) -> LeaderDirectory:
    """Wait so many seconds for the file, None for ever, and take the grant; raises ``NotLeader`` if none comes."""
    deadline = float("inf") if timeout is None else now() + timeout
    pause = threading.Event()
    began = f"{now()}"
    while not path.exists():
        if now() >= deadline:
            raise NotLeader(f"The sidecar was not granted the job in {timeout:g} s.")
        if not _awaited(path).exists():
            with suppress(OSError):  # it is only shown, and the sidecar makes a directory that is gone again
                _awaited(path).write_text(began)
        pause.wait(POLL_S)
    found = granted(path)
    if found is None:
        raise NotLeader(f"The file {path} does not hold a grant.")
    _taken(path).touch()
    return found[0]


def _awaited(path: Path) -> Path:
    return beside(path, ".awaited")


def _taken(path: Path) -> Path:
    return beside(path, ".taken")
