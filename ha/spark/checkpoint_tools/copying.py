"""Staging: copies many files to a staging place, and shows the complete copy by one rename.

    <staging>/parts/<uuid>     a file while it is written
    <staging>/tree/...         complete files; in the end the complete copy

A file gets to ``tree`` by a rename, so every file there is complete, and an interrupted copy continues with the missing
ones. Nothing here creates a missing parent, so the copy fails when the staging place is gone.
"""

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from ha.checkpoints.file_check import ContentCheck
from ha.checkpoints.trees import Tree
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, Conflict, Invalid, NotFound, NotSent, StoreError, Unknown
from store.files import Files

T = TypeVar("T")

ATTEMPTS = 3  # tries to copy one file; after that the whole copy ends, and has to be run again

WORKERS = 16
"""Files in progress at once: HDFS takes a third of a second to close a small file, and most of that is waiting."""

CALL_TIMEOUT_S = 20.0  # time for one operation on a name

MOST_CHECKED = 8 << 20
"""Bytes of a file whose own check sums are compared as it is copied; so many are in memory for each worker."""

MAX_REWRITTEN = 1 << 20  # longest file whose content can be changed, in bytes

SLOWEST = 1 << 18
"""Lowest rate, in bytes a second: a file that takes longer, by more than two call time-outs, is given up."""


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """Progress of a copy: of all files and bytes, those that an earlier try has kept, and those that are done."""

    files: int = 0
    bytes: int = 0
    kept: int = 0
    files_done: int = 0
    bytes_done: int = 0


Told = Callable[[CopyProgress], object]


class Staging:
    """The staging place of one copy, and its progress."""

    def __init__(
        self,
        files: BoundedFiles,
        path: str,
        told: Told | None = None,
        tree: str = "",
        needed: Callable[[str], bool] = bool,
    ) -> None:
        """Connect to nothing yet; the parent of the path must exist, and the caller closes the store."""
        # `told` gets the progress at every step, from any thread, one call at a time. The tree may be elsewhere.
        # `needed` tells which files, by their paths, must not be damaged; by default none may be.
        self.path = path
        self._needed = needed
        self.tree = Tree(files, tree or f"{path}/tree")
        self.progress = CopyProgress()
        self._files = files
        self._parts = Tree(files, f"{path}/parts")
        self._told = told
        self._lock = threading.Lock()
        self._made: set[str] = set()

    def fill(self, source: Tree, wanted: Mapping[str, int], may_go_on: Callable[[], object] = bool) -> None:
        """Make the tree contain exactly these files, by path and size. What is there in its size is not copied again.

        ``may_go_on`` is called before each file; an error from it ends the copy. Raises ``Conflict`` if a file has not
        the size of its listing, because another program writes there, and ``NotFound`` if the staging place is gone.
        After any other error of a store, call it again to continue.
        """
        for path in (self.path, self.tree.path, self._parts.path):  # in this order: see committed
            self._make(path)
        present = self.tree.listing()
        for path in sorted(path for path, size in present.items() if wanted.get(path) != size):
            self._remove(f"{self.tree.path}/{path}")
        missing = {path: size for path, size in sorted(wanted.items()) if present.get(path) != size}
        kept, total = len(wanted) - len(missing), sum(wanted.values())
        self._say(CopyProgress(len(wanted), total, kept, kept, total - sum(missing.values())))
        self._made.clear()
        self.add(source, missing, lambda _: may_go_on())
        if self.tree.listing() != dict(wanted):
            raise Unknown(
                f"{self.tree.uri} is not what was copied there, because another program changes it. Run it again."
            )

    def begin(self, total: CopyProgress) -> None:
        """Make the places, and report what there is to do, before :meth:`add` and :meth:`put`."""
        for path in (self.path, self.tree.path, self._parts.path):
            self._make_once(path)
        self._say(total)

    def add(self, source: Tree, wanted: Mapping[str, int], before: Callable[[int], object]) -> None:
        """Copy files into the tree, by path and size, in any order; a file that is there is not replaced."""
        # `before` is called before each file with its size; it may wait, and an error from it ends the copy.
        for folder in folders(wanted):
            self._make_once(f"{self.tree.path}/{folder}")

        def copy(item: tuple[str, int]) -> None:
            before(item[1])
            self._copy(source, *item)

        self._side_by_side(copy, list(wanted.items()))

    def put(self, contents: Mapping[str, bytes]) -> None:
        """Write small files into the tree, in any order; each replaces at once what has its name."""
        for folder in folders(contents):
            self._make_once(f"{self.tree.path}/{folder}")
        self._side_by_side(lambda path: self._write(f"{self.tree.path}/{path}", contents[path]), list(contents))

    def stage(
        self, source: Tree, copied: Mapping[str, int], written: Mapping[str, bytes], before: Callable[[int], object]
    ) -> dict[str, str]:
        """Copy and write new files beside the tree, side by side, for :meth:`show`; return their names, by path."""
        for folder in folders([*copied, *written]):
            self._make_once(f"{self.tree.path}/{folder}")
        parts = {path: uuid.uuid4().hex for path in (*copied, *written)}

        def stage(path: str) -> None:
            if path in copied:
                before(copied[path])
                self._copy_part(source, path, copied[path], parts[path])
                self._tell(files=1)
            else:
                before(len(written[path]))
                self._write(f"{self._parts.path}/{parts[path]}", written[path])

        self._side_by_side(stage, list(parts))
        return parts

    def show(self, parts: Mapping[str, str]) -> None:
        """Give files that were staged their places in the tree, in any order; one that is there is not replaced."""
        self._side_by_side(lambda path: self._show(parts[path], path), list(parts))

    def remove(self, paths: Iterable[str]) -> None:
        """Delete files of the tree, in any order; those that are gone are gone."""

        def remove(path: str) -> None:
            with suppress(NotFound):
                self._remove(f"{self.tree.path}/{path}")

        self._side_by_side(remove, list(paths))

    def rewrite(self, path: str, change: Callable[[bytes], bytes]) -> None:
        """Change the content of a small file of the copy; after an interruption, the file is copied again."""
        name = f"{self.tree.path}/{path}"
        data = self._call("bulk_read", lambda files: files.read(name, MAX_REWRITTEN))
        if (changed := change(data)) != data:
            self.write(path, changed)

    def write(self, path: str, data: bytes) -> None:
        """Give the copy a small file with this content, in place of what has that name."""
        name, part = f"{self.tree.path}/{path}", f"{self._parts.path}/{uuid.uuid4().hex}"
        for folder in folders([path]):
            self._make(f"{self.tree.path}/{folder}")
        self._call("bulk_write", lambda files: files.write(part, data))
        with suppress(NotFound):
            self._remove(name)
        self._call("bulk_rename", lambda files: files.rename(part, name))

    def commit(self, target: str) -> None:
        """Name the copy, by one rename; raises ``AlreadyExists`` if another one has that name."""
        self._call("bulk_settle", lambda files: files.rename(self.tree.path, target))

    def committed(self) -> bool:
        """Whether an earlier try was complete and lost its last answer: the staging place exists without its tree."""
        try:
            names = {entry.name for entry in self._call("bulk_list", lambda files: files.list(self.path))}
        except NotFound:
            return False
        return bool(names) and "tree" not in names

    def delete(self) -> None:
        """Delete the staging place if it exists."""
        with suppress(NotFound):
            self._remove(self.path)

    @staticmethod
    def _side_by_side(work: Callable[[T], object], items: Sequence[T]) -> None:
        """Do it for all, with many threads; the first error ends it."""
        stop = threading.Event()

        def one(item: T) -> None:
            if stop.is_set():
                return
            try:
                work(item)
            except BaseException:
                stop.set()
                raise

        # Each piece of work has a deadline, so the threads of this pool end.
        with ThreadPoolExecutor(WORKERS, thread_name_prefix="ha-bulk") as crew:
            for _ in crew.map(one, items):
                pass

    def _copy(self, source: Tree, path: str, size: int) -> None:
        attempts = Retrying(
            stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type((Unknown, NotSent)), reraise=True
        )
        attempts(self._try, source, path, size)
        self._tell(files=1)

    def _try(self, source: Tree, path: str, size: int) -> None:
        part = uuid.uuid4().hex
        sent = self._copy_part(source, path, size, part)
        try:
            self._show(part, path)
        except StoreError:
            self._tell(count=-sent)
            raise

    def _copy_part(self, source: Tree, path: str, size: int, part: str) -> int:
        """Copy a file beside the tree; return the number of bytes that were told."""
        sent: list[int] = []
        check = ContentCheck(path, size, most=MOST_CHECKED)

        def told(piece: bytes) -> None:
            check.add(piece)
            sent.append(len(piece))
            self._tell(count=len(piece))

        try:
            deadline = 2 * CALL_TIMEOUT_S + size / SLOWEST
            copied = self._files.call(
                "bulk_copy", lambda _: source.read_into(path, size, self._parts, part, told), deadline
            )
            if copied != size:
                raise Conflict(f"{path} has {copied:,} bytes, and {size:,} were listed: somebody writes to it.")
            if self._needed(path) and (fault := check.result().fault):
                raise Invalid(f"{path} is damaged, and is not copied. {fault} See `ha checkpoint verify --checksums`.")
        except StoreError:
            self._tell(count=-sum(sent))
            raise
        return sum(sent)

    def _show(self, part: str, path: str) -> None:
        source, target = f"{self._parts.path}/{part}", f"{self.tree.path}/{path}"
        with suppress(AlreadyExists):  # so it was renamed there by a try whose answer was lost
            self._call("bulk_rename", lambda files: files.rename(source, target))

    def _write(self, name: str, data: bytes) -> None:
        self._call("bulk_write", lambda files: files.write(name, data))
        self._tell(files=1, count=len(data))

    def _tell(self, files: int = 0, count: int = 0) -> None:
        with self._lock:
            before = self.progress
            self._say(replace(before, files_done=before.files_done + files, bytes_done=before.bytes_done + count))

    def _say(self, progress: CopyProgress) -> None:
        self.progress = progress
        if self._told is not None:
            self._told(progress)

    def _make_once(self, path: str) -> None:
        if path not in self._made:
            self._make(path)
            self._made.add(path)

    def _make(self, path: str) -> None:
        self._call("bulk_make", lambda files: files.make_directory(path))

    def _remove(self, path: str) -> None:
        self._call("bulk_delete", lambda files: files.delete(path, recursive=True))

    def _call(self, name: str, operation: Callable[[Files], T]) -> T:
        return self._files.call(name, operation, CALL_TIMEOUT_S)


def folders(paths: Iterable[str]) -> list[str]:
    """Return the directories of these files, each after its parent."""
    found = set()
    for path in paths:
        parts = path.split("/")[:-1]
        found |= {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return sorted(found)
