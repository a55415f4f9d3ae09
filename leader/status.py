"""The job's state, as the name of one entry in the leader directory; a transition is a rename, so it is fenced."""

import re
from enum import Enum

from leader.names import MAX_WRITING, STATUS, WRITING, LeaderDirectory, written
from store.errors import AlreadyExists, NotFound, Unknown
from store.files import Files

ATTEMPTS = 4
"""Tries of one change while somebody else changes the state too."""

_ENTRY = re.compile(rf"{STATUS}([A-Z]+){WRITING}")


class Status(Enum):
    """What a job is doing."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    """It ended by itself, and is not to be run again."""


def read(files: Files, job: str, directory: LeaderDirectory) -> Status:
    """Return the job's state; a job without one counts as created.

    Raises:
        NotFound: the directory is no longer the leader directory: it was fenced.
        StoreError: the store did not answer.
    """
    found = _find(files, job, directory)
    return found[0] if found else Status.CREATED


def change(files: Files, job: str, directory: LeaderDirectory, status: Status) -> None:
    """Bring the job into that state; if it is in it, say so once more, for what is only seen may not stay.

    Raises:
        NotFound: the directory is no longer the leader directory: it was fenced.
        StoreError: the store did not answer, or nobody knows.
    """
    for attempt in range(1, ATTEMPTS + 1):
        present = _find(files, job, directory)
        writing = present[1] % MAX_WRITING + 1 if present and present[0] is status else 1
        try:
            if present is None:  # somebody deleted it
                files.make_directory(_path(job, directory, status, 1))
            else:
                files.rename(_path(job, directory, *present), _path(job, directory, status, writing))
        except (NotFound, AlreadyExists) as error:
            _find(files, job, directory)  # says so if we were fenced
            if attempt == ATTEMPTS:
                raise Unknown(f"Somebody else changes the state of job {job!r} all the time.") from error
        else:
            return


def _path(job: str, directory: LeaderDirectory, status: Status, writing: int) -> str:
    return f"{job}/{directory.name}/{written(STATUS + status.value, writing)}"


def _find(files: Files, job: str, directory: LeaderDirectory) -> tuple[Status, int] | None:
    """The state, and how often it was written."""
    try:
        entries = [entry.name for entry in files.list(f"{job}/{directory.name}")]
    except NotFound:
        raise NotFound(f"Epoch {directory.epoch} of job {job!r} is over.") from None
    order = list(Status)
    found = [
        (Status(match[1]), int(match[2] or 1))
        for match in map(_ENTRY.fullmatch, entries)
        if match and match[1] in Status.__members__
    ]
    # Should there be several, the furthest counts, in whatever order they are listed.
    return max(found, key=lambda each: (order.index(each[0]), each[1]), default=None)
