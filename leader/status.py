"""The job's state, as the name of one entry in the leader directory; a transition is a rename, so it is fenced."""

from enum import Enum

from leader.errors import Fenced
from leader.names import STATUS, LeaderDirectory
from store.errors import AlreadyExists, NotFound
from store.files import Files


class Status(Enum):
    """What a job is doing."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    """It ended by itself, and is not to be run again."""


def read(files: Files, job: str, directory: LeaderDirectory) -> Status:
    """Return the job's state; a job without one counts as created.

    Raises:
        Fenced: the directory is no longer the leader directory.
        StoreError: the store did not answer.
    """
    return _find(files, job, directory) or Status.CREATED


def change(files: Files, job: str, directory: LeaderDirectory, status: Status) -> None:
    """Bring the job into that state; nothing happens if it is in it.

    Raises:
        Fenced: the directory is no longer the leader directory.
        StoreError: the store did not answer, or nobody knows.
    """
    present = _find(files, job, directory)
    if present is status:
        return
    path = f"{job}/{directory.name}/{STATUS}"
    try:
        if present is None:  # somebody deleted it
            files.make_directory(path + status.value)
        else:
            files.rename(path + present.value, path + status.value)
    except (NotFound, AlreadyExists):
        if read(files, job, directory) is not status:
            raise


def _find(files: Files, job: str, directory: LeaderDirectory) -> Status | None:
    try:
        found = {entry.name for entry in files.list(f"{job}/{directory.name}")}
    except NotFound:
        raise Fenced(f"Epoch {directory.epoch} of job {job!r} is over.") from None
    # Should there be several, the furthest counts, in whatever order they are listed.
    return next((status for status in reversed(Status) if f"{STATUS}{status.value}" in found), None)
