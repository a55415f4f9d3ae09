"""How a sidecar tells a command that waits that the job was granted: by a file that appears.

The file's text is the name of the leader directory: epoch and session id. Who waits for it leaves a mark beside it, by
which the sidecar knows that the program is warm; and another one who takes it, without which an exit code of 0 does not
mean that the job has finished: a program may end before it was granted anything.
"""

import threading
from contextlib import suppress
from pathlib import Path

from leader.errors import NotLeader
from leader.names import LeaderDirectory
from store.clock import now

LOOK = 0.02
"""Seconds between two looks for the file."""


def grant(path: Path, directory: LeaderDirectory) -> None:
    """Let the file appear, whole.

    Raises:
        OSError: it cannot be written.
    """
    staged = path.with_name(f"{path.name}.staged")
    staged.write_text(directory.name)
    staged.rename(path)


def taken(path: Path) -> bool:
    """Whether somebody has taken what was granted there."""
    return _taken(path).exists()


def awaited_since(path: Path) -> float | None:
    """Return since when, by the boot clock, somebody has waited for a grant there; None if nobody has."""
    try:
        return float(_awaited(path).read_text())
    except OSError:
        return None
    except ValueError:  # it is being written, or was made by another language's program, which need not say when
        return now()


def take(path: Path, timeout: float | None) -> LeaderDirectory:
    """Wait for the file, and take what it grants.

    Args:
        path: as the sidecar has said in ``HA_GRANT``.
        timeout: seconds; None waits for ever.

    Raises:
        NotLeader: nothing was granted in time, or the sidecar is gone.
    """
    deadline = float("inf") if timeout is None else now() + timeout
    pause = threading.Event()
    with suppress(OSError):  # it is only shown, and if the directory is gone, that is said below
        _awaited(path).write_text(str(now()))
    while not path.exists():
        if now() >= deadline:
            raise NotLeader(f"The sidecar was not granted the job in {timeout:g} s.")
        if not path.parent.exists():
            raise NotLeader("The sidecar is gone.")
        pause.wait(LOOK)
    directory = LeaderDirectory.parse(path.read_text())
    if directory is None:
        raise NotLeader(f"What {path} says is no grant.")
    _taken(path).touch()
    return directory


def _awaited(path: Path) -> Path:
    return path.with_name(f"{path.name}.awaited")


def _taken(path: Path) -> Path:
    return path.with_name(f"{path.name}.taken")
