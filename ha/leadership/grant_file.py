"""Grant file: appears when a sidecar was granted the job, to tell a warm command that waits for it.

Its text is the name of the leader directory: epoch and session id. The waiting program leaves a mark beside it, so the
sidecar knows that the program is warm. When it takes the grant it leaves a second mark. Without the second mark an exit
code of 0 does not mean that the job has finished, because a program may end before its grant.
"""

import threading
from contextlib import suppress
from pathlib import Path

from leader.errors import NotLeader
from leader.layout.names import LeaderDirectory
from store.clock import now

POLL_S = 0.02
"""Pause between two looks for the file."""


def grant(path: Path, directory: LeaderDirectory) -> None:
    """Create the file, complete at once.

    Raises:
        OSError: the file cannot be written.
    """
    staged = path.with_name(f"{path.name}.staged")
    staged.write_text(directory.name)
    staged.rename(path)


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
    """Wait for the file, and take the grant.

    Args:
        path: of the file, from the variable ``HA_GRANT``.
        timeout: seconds; None waits for ever.

    Raises:
        NotLeader: the job was not granted in time, or the sidecar is gone.
    """
    deadline = float("inf") if timeout is None else now() + timeout
    pause = threading.Event()
    with suppress(OSError):  # the mark is only shown; a missing directory raises below
        _awaited(path).write_text(str(now()))
    while not path.exists():
        if now() >= deadline:
            raise NotLeader(f"The sidecar was not granted the job in {timeout:g} s.")
        if not path.parent.exists():
            raise NotLeader("The sidecar is gone.")
        pause.wait(POLL_S)
    directory = LeaderDirectory.parse(path.read_text())
    if directory is None:
        raise NotLeader(f"The file {path} does not hold a grant.")
    _taken(path).touch()
    return directory


def _awaited(path: Path) -> Path:
    return path.with_name(f"{path.name}.awaited")


def _taken(path: Path) -> Path:
    return path.with_name(f"{path.name}.taken")
