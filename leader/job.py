"""A job's tree in the file system: how it comes into being, and where its present record is."""

import uuid
from contextlib import suppress

from leader import names
from leader.information import Record
from leader.lease import first_lease
from leader.names import CHECKPOINTS, FIRST_CHECKPOINT, HISTORY, RECORD, SPARK, STATUS, LeaderDirectory
from store.errors import NotFound, StoreError
from store.files import Files

NOBODY = "00000000-0000-0000-0000-000000000000"
"""Session id of epoch 0, which nobody ever led."""

READ_ATTEMPTS = 5
"""A leader directory can be renamed between two lists; as often in a row means that something else is wrong."""


def create(files: Files, job: str) -> None:
    """Create a job's directory, complete or not at all: by one rename of a staged tree.

    Raises:
        AlreadyExists: the job exists.
        StoreError: it was refused, or nobody knows; what was staged may be left behind under ``.creating-...``.
    """
    first = LeaderDirectory(0, NOBODY)
    staging = f".creating-{uuid.uuid4()}"
    files.make_root()
    tree = f"{staging}/{first.name}"
    paths = (
        staging,
        tree,
        f"{tree}/{RECORD}",
        f"{tree}/{RECORD}/{first_lease(NOBODY).name}",
        f"{tree}/{CHECKPOINTS}",
        f"{tree}/{CHECKPOINTS}/{FIRST_CHECKPOINT}",
        f"{tree}/{STATUS}CREATED",
        f"{tree}/{HISTORY}",
        f"{tree}/{SPARK}",
    )
    try:
        for path in paths:
            files.make_directory(path)
        files.rename(staging, job)
    except StoreError:
        with suppress(StoreError):  # if the rename was executed after all, there is nothing to delete
            files.delete(staging, recursive=True)
        raise


def find(files: Files, job: str) -> LeaderDirectory:
    """Return the job's leader directory: one list.

    Raises:
        NotFound: there is no such job, or it holds no leader directory.
        StoreError: the store did not answer.
    """
    try:
        directory = names.newest([entry.name for entry in files.list(job)])
    except NotFound:
        raise NotFound(f"There is no job {job!r} under {files.uri}.") from None
    if directory is None:
        raise NotFound(f"The directory of job {job!r} under {files.uri} holds no leader directory.")
    return directory


def read(files: Files, job: str, known: LeaderDirectory | None = None) -> tuple[LeaderDirectory, Record]:
    """Return the job's leader directory and its record.

    One list if ``known`` still is the leader directory: a claim renames it, so if it is there it is the present one.

    Raises:
        NotFound: there is no such job, or it holds no record.
        StoreError: the store did not answer.
    """
    directory = known
    for _ in range(READ_ATTEMPTS):
        directory = directory or find(files, job)
        try:
            return directory, Record.parse(entry.name for entry in files.list(f"{job}/{directory.name}/{RECORD}"))
        except NotFound:
            directory = None
    raise NotFound(f"The leader directory of job {job!r} under {files.uri} holds no record.")
