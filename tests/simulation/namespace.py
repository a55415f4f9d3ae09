"""The NameNode's semantics: a tree of names whose operations are linearizable. What goes wrong is the network's."""

from collections.abc import Callable
from dataclasses import dataclass, field

from leader.events import CreateJob, Delete, FilesCommand, ListJob, ListRecord, MakeDirectory, Rename
from leader.lease import first_lease
from leader.names import CHECKPOINTS, HISTORY, RECORD, SPARK, LeaderDirectory
from store.errors import AlreadyExists, NotEmpty, NotFound, NotWritable

NOBODY = "00000000-0000-0000-0000-000000000000"


@dataclass
class Directory:
    entries: "dict[str, Directory]" = field(default_factory=dict)


Told = Callable[[str, str, str, str], None]
"""Is told of every change: the operation, the path, a rename's destination, and who sent it."""


class Namespace:
    """A file system tree; raises the errors of :mod:`store.errors`."""

    def __init__(self) -> None:
        self.root = Directory()
        self.operations = 0
        self.writes = 0
        self.safe_mode = False
        self.late = 0
        """Commands that were held up, and are yet to arrive."""
        self.told: Told | None = None
        self._away: list[Callable[[], None]] | None = None

    # --- whether there is an active NameNode

    def stop(self) -> None:
        """No NameNode is active: what arrives waits for one, also through a second fail-over during the first."""
        if self._away is None:
            self._away = []

    def start(self) -> None:
        """A NameNode is active again."""
        waiting, self._away = self._away or [], None
        for each in waiting:
            each()

    def arrive(self, execute: Callable[[], None]) -> None:
        """A request arrives."""
        if self._away is None:
            execute()
        else:
            self._away.append(execute)

    # --- operations

    def execute(self, job: str, command: FilesCommand, by: str = "") -> list[str] | None:
        """Execute one command of an election, for whoever sent it."""
        self.operations += 1
        match command:
            case ListJob():
                return self.list(job)
            case ListRecord(directory):
                return self.list(f"{job}/{directory.name}/{RECORD}")
            case CreateJob():
                self.create_job(job, by)
            case Rename(source, destination):
                self.rename(f"{job}/{source}", f"{job}/{destination}", by)
            case MakeDirectory(path):
                self.make(f"{job}/{path}", by)
            case Delete(path):
                self.delete(f"{job}/{path}", by)
        return None

    def list(self, path: str) -> list[str]:
        return list(self._find(path).entries)

    def create_job(self, job: str, by: str = "") -> None:
        self._write()
        if job in self.root.entries:
            raise AlreadyExists(job)
        first = LeaderDirectory(0, NOBODY)
        tree = {name: Directory() for name in (RECORD, CHECKPOINTS, HISTORY, SPARK)}
        tree[RECORD].entries[first_lease(NOBODY).name] = Directory()
        tree[CHECKPOINTS].entries["next=1"] = Directory()
        self.root.entries[job] = Directory({first.name: Directory(tree)})
        self._tell("rename", ".creating", job, by)

    def rename(self, source: str, destination: str, by: str = "") -> None:
        self._write()
        old, old_name = self._parent(source)
        new, new_name = self._parent(destination)
        if old_name not in old.entries:
            raise NotFound(source)
        if new_name in new.entries:
            raise AlreadyExists(destination)
        new.entries[new_name] = old.entries.pop(old_name)
        self._tell("rename", source, destination, by)

    def make(self, path: str, by: str = "") -> None:
        """Create a directory unless it is there, as HDFS does."""
        self._write()
        parent, name = self._parent(path)
        if name not in parent.entries:
            parent.entries[name] = Directory()
            self._tell("make", path, "", by)

    def delete(self, path: str, by: str = "") -> None:
        self._write()
        parent, name = self._parent(path)
        if name not in parent.entries:
            raise NotFound(path)
        if parent.entries[name].entries:
            raise NotEmpty(path)
        del parent.entries[name]
        self._tell("delete", path, "", by)

    def _tell(self, operation: str, path: str, target: str, by: str) -> None:
        if self.told is not None:
            self.told(operation, path, target, by)

    def _write(self) -> None:
        if self.safe_mode:
            raise NotWritable("The NameNode is in safe mode.")
        self.writes += 1

    def _find(self, path: str) -> Directory:
        found = self.root
        for component in filter(None, path.split("/")):
            if component not in found.entries:
                raise NotFound(path)
            found = found.entries[component]
        return found

    def _parent(self, path: str) -> tuple[Directory, str]:
        parent, _, name = path.rpartition("/")
        return self._find(parent), name
