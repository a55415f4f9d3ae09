"""Tree: a job's directories in the file system, how they are created, and where the present record is."""

import uuid
from contextlib import suppress

from leader.layout import names
from leader.layout.information import Record
from leader.layout.lease import first_lease
from leader.layout.names import CHECKPOINTS, FIRST_CHECKPOINT, HISTORY, RECORD, SPARK, STATUS, LeaderDirectory
from store.errors import AlreadyExists, NotFound, StoreError
from store.files import Files

NOBODY = "00000000-0000-0000-0000-000000000000"  # session id of epoch 0, which never had a leader
CREATING = ".creating-"  # begins the name of a tree that becomes a job; ends with the job's name, for the same mount
READ_ATTEMPTS = 5  # a leader directory can be renamed between two lists; so often in a row, something else is wrong


def create(files: Files, job: str) -> None:
    """Create a job's directory by one rename of a staged tree, or not at all; AlreadyExists if it is there."""
    # After an unknown outcome the staged tree may be left behind.
    first = LeaderDirectory(0, NOBODY)
    staging = f"{CREATING}{uuid.uuid4()}~{job}"
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
    """Return the job's leader directory, else NotFound: one list, and one more for each that was made by hand."""
    try:
        found = names.candidates([entry.name for entry in files.list(job)])
    except NotFound:
        raise NotFound(f"There is no job {job!r} under {files.uri}.") from None
    if not found:
        raise NotFound(f"The directory of job {job!r} under {files.uri} holds no leader directory.")
    if len(found) == 1:
        return found[0]
    # A claim renames the leader directory, lease and all. One that was made by hand has no lease.
    return next((each for each in found if holds_a_lease(files, job, each)), found[0])


def holds_a_lease(files: Files, job: str, directory: LeaderDirectory) -> bool:
    """Whether a leader directory has a lease: one that was made by hand, or by a driver that writes late, has none."""
    try:
        return _record(files, job, directory).lease is not None
    except NotFound:
        return False


def _record(files: Files, job: str, directory: LeaderDirectory) -> Record:
    return Record.parse([entry.name for entry in files.list(f"{job}/{directory.name}/{RECORD}")])


def read(files: Files, job: str, known: LeaderDirectory | None = None) -> tuple[LeaderDirectory, Record]:
    """Return the job's leader directory and its record, else NotFound: one list if ``known`` still is it."""
    # A claim renames it, so if it exists, it is current.
    directory = known
    for _ in range(READ_ATTEMPTS):
        directory = directory or find(files, job)
        try:
            return directory, _record(files, job, directory)
        except NotFound:
            directory = None
    raise NotFound(f"The leader directory of job {job!r} under {files.uri} holds no record.")


def check_writable(files: Files, job: str) -> None:
    """Check that this process may rename what a leader renames in a job; leaves nothing behind.

    It renames leader directory and lease to their own names: a store that allows that answers that they exist. For a
    new job it checks the right to create it, by renaming what is not there.

    Raises:
        PermissionDenied: it may not.
        HasSnapshots: the leader directory cannot be moved.
        StoreError: the store did not answer, or takes no writes from anybody now.
    """
    try:
        directory = find(files, job)
    except NotFound:
        with suppress(NotFound):
            files.rename(f".probe-{uuid.uuid4()}", f".probe-{uuid.uuid4()}")
        return
    home = f"{job}/{directory.name}"
    with suppress(AlreadyExists, NotFound):  # the second if a claim or a renewal has moved it meanwhile
        lease = _record(files, job, directory).lease
        if lease is not None:
            with suppress(AlreadyExists):
                files.rename(f"{home}/{RECORD}/{lease.name}", f"{home}/{RECORD}/{lease.name}")
        files.rename(home, home)
