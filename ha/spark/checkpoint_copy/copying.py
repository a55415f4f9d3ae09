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

from ha.checkpoints.trees import Tree
from store.bounded import BoundedFiles
from store.errors import AlreadyExists, Conflict, NotFound, NotSent, StoreError, Unknown
from store.files import Files

T = TypeVar("T")

ATTEMPTS = 3
"""Tries to copy one file; after that the whole copy ends, and has to be run again."""

WORKERS = 16
"""Files in progress at once: HDFS takes a third of a second to close a small file, and most of that is waiting."""

CALL_TIMEOUT_S = 20.0
"""Time for one operation on a name."""

MAX_REWRITTEN = 1 << 20
"""Longest file whose content can be changed, in bytes."""

SLOWEST = 1 << 18
"""Lowest rate, in bytes a second: a file that takes longer, by more than two call time-outs, is given up."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a copy.

    Attributes:
        files: total number of files.
        bytes: total number of bytes.
        kept: number of files that an earlier try had copied.
        files_done: number of complete files, those included.
        bytes_done: number of bytes that were copied, including those of incomplete files.
    """

    files: int = 0
    bytes: int = 0
    kept: int = 0
    files_done: int = 0
    bytes_done: int = 0


Told = Callable[[Progress], object]


class Staging:
    """The staging place of one copy, and its progress."""

    def __init__(self, files: BoundedFiles, path: str, told: Told | None = None, tree: str = "") -> None:
        """Connect to nothing yet.

        Args:
            files: the store; whoever opened it closes it.
            path: of the staging place; its parent must exist.
            told: called with the progress at every step, from any thread, one call at a time.
            tree: path of the tree, if it is elsewhere.
        """
        self.path = path
        self.tree = Tree(files, tree or f"{path}/tree")
        self.progress = Progress()
        self._files = files
        self._parts = Tree(files, f"{path}/parts")
        self._told = told
        self._lock = threading.Lock()
        self._made: set[str] = set()

    def fill(self, source: Tree, wanted: Mapping[str, int], may_go_on: Callable[[], object] = bool) -> None:
        """Make the tree contain exactly these files. A file that is there in the same size is not copied again.

        Args:
            source: contains the files.
            wanted: size of each file, by path.
            may_go_on: called before each file; an error from it ends the copy.

        Raises:
            Conflict: a file does not have the size of its listing, because another program writes there.
            NotFound: the staging place is gone.
            StoreError: a store did not answer, or a file could not be copied; call it again to continue.
        """
        for path in (self.path, self.tree.path, self._parts.path):  # in this order: see committed
            self._make(path)
        present = self.tree.listing()
        for path in sorted(path for path, size in present.items() if wanted.get(path) != size):
            self._remove(f"{self.tree.path}/{path}")
        missing = sorted(path for path, size in wanted.items() if present.get(path) != size)
        for folder in folders(missing):
            self._make(f"{self.tree.path}/{folder}")
        kept = len(wanted) - len(missing)
        done = sum(size for path, size in wanted.items() if present.get(path) == size)
        self._say(Progress(len(wanted), sum(wanted.values()), kept, kept, done))
        self._copy_all(source, {path: wanted[path] for path in missing}, lambda _: may_go_on())
        if self.tree.listing() != dict(wanted):
            raise Unknown(
                f"{self.tree.uri} is not what was copied there, because another program changes it. Run it again."
            )

    def begin(self, total: Progress) -> None:
        """Make the places, and say what there is to do, before :meth:`add` and :meth:`put`.

        Raises:
            NotFound: the parent of the staging place, or of the tree, is gone.
            StoreError: a store did not answer.
        """
        for path in (self.path, self.tree.path, self._parts.path):
            self._make_once(path)
        self._say(total)

    def add(self, source: Tree, wanted: Mapping[str, int], before: Callable[[int], object]) -> None:
        """Copy files into the tree, in any order; a file that is there is not replaced.

        Args:
            source: contains the files.
            wanted: size of each file, by path.
            before: called before each file with its size; it may wait, and an error from it ends the copy.

        Raises:
            Conflict: a file does not have that size.
            NotFound: a file is gone, or the place is.
            StoreError: a store did not answer, or a file could not be copied.
        """
        for folder in folders(wanted):
            self._make_once(f"{self.tree.path}/{folder}")
        self._copy_all(source, wanted, before)

    def put(self, contents: Mapping[str, bytes]) -> None:
        """Write small files into the tree, in any order; each replaces at once what has its name.

        Raises:
            NotFound: the place is gone.
            StoreError: a store did not answer.
        """
        for folder in folders(contents):
            self._make_once(f"{self.tree.path}/{folder}")

        def write(item: tuple[str, bytes]) -> None:
            path, data = item
            self._call("bulk_write", lambda files: files.write(f"{self.tree.path}/{path}", data))
            self._tell(files=1, count=len(data))

        self._side_by_side(write, list(contents.items()))

    def stage(
        self, source: Tree, copied: Mapping[str, int], written: Mapping[str, bytes], before: Callable[[int], object]
    ) -> dict[str, str]:
        """Copy and write new files beside the tree, all side by side, for :meth:`show`.

        Args:
            source: contains the files that are copied.
            copied: size of each of them, by path.
            written: content of the others.
            before: called before each file with its size; it may wait, and an error from it ends the copy.

        Returns:
            the name of each file beside the tree, by path.

        Raises:
            Conflict: a file does not have that size.
            NotFound: a file is gone, or the place is.
            StoreError: a store did not answer, or a file could not be copied.
        """
        for folder in folders([*copied, *written]):
            self._make_once(f"{self.tree.path}/{folder}")
        parts = {path: uuid.uuid4().hex for path in (*copied, *written)}

        def stage(path: str) -> None:
            if path in copied:
                before(copied[path])
                self._copy_part(source, path, copied[path], parts[path])
                self._tell(files=1)
                return
            data = written[path]
            before(len(data))
            self._call("bulk_write", lambda files: files.write(f"{self._parts.path}/{parts[path]}", data))
            self._tell(files=1, count=len(data))

        self._side_by_side(stage, list(parts))
        return parts

    def show(self, parts: Mapping[str, str]) -> None:
        """Give files that were staged their places in the tree, in any order; one that is there is not replaced.

        Raises:
            NotFound: the place is gone.
            StoreError: a store did not answer.
        """

        def show(item: tuple[str, str]) -> None:
            path, part = item
            with suppress(AlreadyExists):
                source, target = f"{self._parts.path}/{part}", f"{self.tree.path}/{path}"
                self._call("bulk_rename", lambda files: files.rename(source, target))

        self._side_by_side(show, list(parts.items()))

    def remove(self, paths: Iterable[str]) -> None:
        """Delete files of the tree, in any order; those that are gone are gone.

        Raises:
            StoreError: a store did not answer.
        """

        def remove(path: str) -> None:
            with suppress(NotFound):
                self._remove(f"{self.tree.path}/{path}")

        self._side_by_side(remove, list(paths))

    def rewrite(self, path: str, change: Callable[[bytes], bytes]) -> None:
        """Change the content of a small file of the copy; after an interruption, the file is copied again.

        Raises:
            StoreError: the store refused a change, or its outcome stayed unknown.
        """
        name = f"{self.tree.path}/{path}"
        data = self._call("bulk_read", lambda files: files.read(name, MAX_REWRITTEN))
        if (changed := change(data)) != data:
            self.write(path, changed)

    def write(self, path: str, data: bytes) -> None:
        """Give the copy a small file with this content, in place of what has that name.

        Raises:
            StoreError: the store refused a change, or its outcome stayed unknown.
        """
        name, part = f"{self.tree.path}/{path}", f"{self._parts.path}/{uuid.uuid4().hex}"
        for folder in folders([path]):
            self._make(f"{self.tree.path}/{folder}")
        self._call("bulk_write", lambda files: files.write(part, data))
        with suppress(NotFound):
            self._remove(name)
        self._call("bulk_rename", lambda files: files.rename(part, name))

    def commit(self, target: str) -> None:
        """Give the copy its name, by one rename.

        Raises:
            AlreadyExists: the name is taken.
            NotFound: the copy is gone, or the directory of the name.
            StoreError: the store refused the rename, or its outcome stayed unknown.
        """
        self._call("bulk_settle", lambda files: files.rename(self.tree.path, target))

    def committed(self) -> bool:
        """Whether an earlier try was complete and only lost its last answer: the staging place exists without its tree.

        Raises:
            StoreError: the store did not answer.
        """
        try:
            names = {entry.name for entry in self._call("bulk_list", lambda files: files.list(self.path))}
        except NotFound:
            return False
        return bool(names) and "tree" not in names

    def delete(self) -> None:
        """Delete the staging place if it exists.

        Raises:
            StoreError: it is not known whether it is gone.
        """
        with suppress(NotFound):
            self._remove(self.path)

    def _copy_all(self, source: Tree, missing: Mapping[str, int], before: Callable[[int], object]) -> None:
        def copy(item: tuple[str, int]) -> None:
            before(item[1])
            self._copy(source, *item)

        self._side_by_side(copy, list(missing.items()))

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
        part, target = uuid.uuid4().hex, f"{self.tree.path}/{path}"
        sent = self._copy_part(source, path, size, part)
        try:
            with suppress(AlreadyExists):  # so it was renamed there by a try whose answer was lost
                self._call("bulk_rename", lambda files: files.rename(f"{self._parts.path}/{part}", target))
        except StoreError:
            self._tell(count=-sent)
            raise

    def _copy_part(self, source: Tree, path: str, size: int, part: str) -> int:
        """Copy a file beside the tree; return the number of bytes that were told."""
        sent: list[int] = []

        def told(count: int) -> None:
            sent.append(count)
            self._tell(count=count)

        try:
            deadline = 2 * CALL_TIMEOUT_S + size / SLOWEST
            copied = self._files.call("bulk_copy", lambda _: source.read_into(path, self._parts, part, told), deadline)
            if copied != size:
                raise Conflict(f"{path} has {copied:,} bytes, and {size:,} were listed: somebody writes to it.")
        except StoreError:
            self._tell(count=-sum(sent))
            raise
        return sum(sent)

    def _tell(self, files: int = 0, count: int = 0) -> None:
        with self._lock:
            before = self.progress
            self._say(replace(before, files_done=before.files_done + files, bytes_done=before.bytes_done + count))

    def _say(self, progress: Progress) -> None:
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
