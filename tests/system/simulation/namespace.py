"""Simulated NameNode: a tree of names whose operations are linearizable, until its journal cannot be written.

Then it executes changes in memory and lists them, but does not answer their senders. Its successor knows at most some
of the first of them. All other faults come from the network.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field

from leader.election.events import CreateJob, Delete, FilesCommand, ListJob, ListRecord, MakeDirectory, Rename
from leader.layout.lease import first_lease
from leader.layout.names import CHECKPOINTS, HISTORY, RECORD, SPARK, LeaderDirectory
from store.errors import AlreadyExists, NotEmpty, NotFound, NotWritable

NOBODY = "00000000-0000-0000-0000-000000000000"


@dataclass
class Directory:
    """One entry: a directory, or a file if it has content."""

    entries: "dict[str, Directory]" = field(default_factory=dict)
    data: bytes | None = None
    modified: float = 0.0


Told = Callable[[float, str, str, str, str], None]
"""Is told of every change that is in the journal: when it was executed, the operation, the path, a rename's
destination, and who sent it."""


@dataclass
class _Edit:
    """A change that is not in the journal yet."""

    execute: Callable[[], object]
    tell: Callable[[], None]


@dataclass
class _Unwritten:
    """The changes of a NameNode since its journal cannot be written."""

    durable: Directory
    edits: list[_Edit] = field(default_factory=list)
    waiting: list[tuple[Callable[[], None], Callable[[], None]]] = field(default_factory=list)
    """The answers to whoever made the changes: if they are in the journal at last, and if they are not."""


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
        self.now: Callable[[], float] = float
        """True time, for who is told."""
        self.renaming: Callable[[str], None] = lambda _: None
        """Is told of a destination just before that is taken."""
        self._unwritten: _Unwritten | None = None
        self._away: list[Callable[[], None]] | None = None

    # --- whether there is an active NameNode

    def stop(self) -> None:
        """Leave no NameNode active: requests wait for one, also through a second failover during the first."""
        if self._away is None:
            self._away = []

    def start(self) -> None:
        """Make a NameNode active again."""
        waiting, self._away = self._away or [], None
        for each in waiting:
            each()

    def arrive(self, execute: Callable[[], None]) -> None:
        """Take a request."""
        if self._away is None:
            execute()
        else:
            self._away.append(execute)

    # --- whether its journal can be written

    @property
    def unwritten(self) -> int:
        """Return how many changes are executed and listed, but not in the journal."""
        return len(self._unwritten.edits) if self._unwritten is not None else 0

    def lose_journal(self) -> None:
        """Make the journal unwritable from now on."""
        if self._unwritten is None:
            self._unwritten = _Unwritten(deepcopy(self.root))

    def answer(self, answer: Callable[[], None], lost: Callable[[], None], *, unwritten: int) -> None:
        """Answer a request when its change is in the journal, or at once if it changed nothing.

        Args:
            answer: the answer.
            lost: called instead if this NameNode ends itself.
            unwritten: number of changes that were not in the journal before this request.
        """
        if self._unwritten is None or self.unwritten == unwritten:
            answer()
        else:
            self._unwritten.waiting.append((answer, lost))

    def regain_journal(self) -> None:
        """Write the journal after all, and send all answers."""
        if (unwritten := self._unwritten) is not None:
            self._unwritten = None
            for edit in unwritten.edits:
                edit.tell()
            for answer, _ in unwritten.waiting:
                answer()

    def forget(self, share: float) -> None:
        """End this NameNode. Its successor knows the first part of the unwritten changes, in that share."""
        if (unwritten := self._unwritten) is not None:
            self._unwritten, self.root = None, unwritten.durable
            for edit in unwritten.edits[: int(len(unwritten.edits) * share)]:
                edit.execute()
                edit.tell()
            for _, lost in unwritten.waiting:
                lost()

    # --- operations

    def execute(self, job: str, command: FilesCommand, by: str = "") -> list[str] | None:
        """Execute one command of an election."""
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

    def entries(self, path: str) -> "dict[str, Directory]":
        return dict(self._find(path).entries)

    def read(self, path: str) -> bytes:
        found = self._find(path).data
        assert found is not None, "nobody reads a directory"
        return found

    def write(self, path: str, data: bytes, by: str = "") -> None:
        """Create a file as a whole."""
        self._write()
        parent, name = self._parent(path)
        assert name not in parent.entries, "nobody replaces a file"
        self._make(path, by, data)

    def create_job(self, job: str, by: str = "") -> None:
        self._write()
        if job in self.root.entries:
            raise AlreadyExists(job)
        first = LeaderDirectory(0, NOBODY)

        def execute() -> None:
            tree = {name: Directory() for name in (RECORD, CHECKPOINTS, HISTORY, SPARK)}
            tree[RECORD].entries[first_lease(NOBODY).name] = Directory()
            tree[CHECKPOINTS].entries["next=1"] = Directory()
            self.root.entries[job] = Directory({first.name: Directory(tree)})

        self._edit(execute, "rename", ".creating", job, by)

    def rename(self, source: str, destination: str, by: str = "") -> None:
        self._write()
        old, old_name = self._parent(source)
        new, new_name = self._parent(destination)
        if old_name not in old.entries:
            raise NotFound(source)
        if new_name in new.entries:
            raise AlreadyExists(destination)
        self.renaming(destination)

        def execute() -> None:
            old, new = self._parent(source)[0], self._parent(destination)[0]
            new.entries[new_name] = old.entries.pop(old_name)

        self._edit(execute, "rename", source, destination, by)

    def make(self, path: str, by: str = "") -> None:
        """Create a directory, as HDFS does. If it exists, nothing changes and nothing waits for the journal."""
        self._write()
        parent, name = self._parent(path)
        if name not in parent.entries:
            self._make(path, by, None)

    def _make(self, path: str, by: str, data: bytes | None) -> None:
        name, at = path.rpartition("/")[2], self.now()

        def execute() -> None:
            self._parent(path)[0].entries[name] = Directory(data=data, modified=at)

        self._edit(execute, "make", path, "", by)

    def delete(self, path: str, by: str = "", *, recursive: bool = False) -> None:
        self._write()
        parent, name = self._parent(path)
        if name not in parent.entries:
            raise NotFound(path)
        if parent.entries[name].entries and not recursive:
            raise NotEmpty(path)
        self._edit(lambda: self._parent(path)[0].entries.pop(name), "delete", path, "", by)

    def _edit(self, execute: Callable[[], object], operation: str, path: str, target: str, by: str) -> None:
        execute()
        told, at = self.told, self.now()

        def tell() -> None:
            if told is not None:
                told(at, operation, path, target, by)

        if self._unwritten is not None:
            self._unwritten.edits.append(_Edit(execute, tell))
        else:
            tell()

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
