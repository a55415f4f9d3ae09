"""How an election's commands are executed on a job's tree."""

from leader.events import CreateJob, Delete, FilesCommand, ListJob, ListRecord, MakeDirectory, Rename
from leader.job import create
from leader.names import RECORD
from store.files import Files


def execute(files: Files, job: str, command: FilesCommand) -> list[str] | None:
    """Execute one command of an election; a list's answer is the names.

    Raises:
        StoreError: it was refused, or nobody knows.
    """
    match command:
        case ListJob():
            return [entry.name for entry in files.list(job)]
        case ListRecord(directory):
            return [entry.name for entry in files.list(f"{job}/{directory.name}/{RECORD}")]
        case CreateJob():
            create(files, job)
        case Rename(source, destination):
            files.rename(f"{job}/{source}", f"{job}/{destination}")
        case MakeDirectory(path):
            files.make_directory(f"{job}/{path}")
        case Delete(path):
            files.delete(f"{job}/{path}")
    return None
