"""GroupFiles: several roots as one. Every path goes to the root of its job; one that hangs takes no other job along."""

import logging
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar, cast

from ha.placement.finding import find, missing
from ha.placement.place import SEPARATOR, Pointer, home_of, lies_here, pointer_in
from leader.layout.tree import CREATING
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import AlreadyExists, Invalid, NotFound, NotSent, StoreError
from store.files import Entry, Files
from store.outcome import Outcome
from store.pool import CallHook

T = TypeVar("T")

Entries = list[Entry]

# The root of a new job, given all roots, which have just answered, and the job's name.
Choose = Callable[[Sequence[BoundedFiles], str], str]

PLACE_S = 2.0  # seconds to find out where a job lies, for a caller that wants its URI and has no deadline
_log = logging.getLogger("ha")


class GroupFiles(BoundedFiles):
    """The files of a group of roots, which are closed with it; used as those of one root."""

    # There are so many `workers` for each root, `choose` places new jobs, and `on_call` is told of every call.

    def __init__(
        self, roots: Sequence[BoundedFiles], choose: Choose, *, workers: int = 8, on_call: CallHook | None = None
    ) -> None:
        self.roots = {each.uri: each for each in roots}
        if len(self.roots) < len(roots):
            raise Invalid(f"{SEPARATOR.join(each.uri for each in roots)} names a root twice: name each one once.")
        self._choose = choose
        self._places: dict[str, str] = {}
        self._choices: dict[str, str] = {}
        self._workers = workers
        self._inside = Counter[str]()
        self._lock = threading.Lock()
        super().__init__(
            lambda: cast("Files", Routed(self, 0.0)),
            workers=workers * len(roots),
            max_stuck=32 * len(roots),
            on_call=on_call,
            uri=SEPARATOR.join(sorted(self.roots)),
        )

    # --- as the files of one root

    def at(self, path: str) -> str:
        """Return the URI of a path: at the root of its job."""
        return self.roots[self.place(path.partition("/")[0], now() + PLACE_S)].at(path)

    def outcome(self, name: str, operation: Callable[[Files], T], timeout: float) -> Outcome[T]:
        """See the base; the roots are given what is left of the time."""
        return super().outcome(name, self._until(operation, now() + timeout), timeout)

    def submit(
        self, name: str, operation: Callable[[Files], T], timeout: float, done: Callable[[Outcome[T]], None]
    ) -> None:
        """See the base; the roots are given what is left of the time."""
        super().submit(name, self._until(operation, now() + timeout), timeout, done)

    def close(self) -> None:
        """Refuse further calls; does not wait for the running ones."""
        super().close()
        for each in self.roots.values():
            each.close()

    def _forked(self) -> None:
        super()._forked()
        self._lock, self._inside = threading.Lock(), Counter()  # a thread that is not here may hold the old one

    def _until(self, operation: Callable[[Files], T], deadline: float) -> Callable[[Files], T]:
        return lambda _: operation(cast("Files", Routed(self, deadline)))

    def on(self, root: str, operation: Callable[[Files], T], timeout: float) -> T:
        """Call a root. If it hangs, its calls get their share of the threads, and the rest is refused at once."""
        files = self.roots[root]
        with self._lock:
            if self._inside[root] >= self._workers and files.stuck:
                raise NotSent(f"{root} hangs: {files.stuck} calls have not come back.")
            self._inside[root] += 1
        try:
            return files.call("group", operation, timeout)
        finally:
            with self._lock:
                self._inside[root] -= 1

    # --- where jobs lie

    def known(self, job: str) -> str | None:
        """Return where a job lay when it was looked for last; None before the first time."""
        return self._places.get(job)

    def remember(self, job: str, root: str) -> None:
        """Remember where a job lies. It may be outdated: a caller that finds nothing there looks again."""
        self._places[job] = root

    def place(self, job: str, deadline: float) -> str:
        """Return the root at which a job lies; ``NotFound`` if there is no such job."""
        if (known := self.known(job)) is not None:
            return known
        if job.startswith("."):  # what stands beside all jobs
            return home_of(self.roots, job)
        found = find(self.roots, job, deadline)
        if not found.root:
            raise missing(found, job, self.roots)
        self.remember(job, found.root)
        return found.root

    def place_new(self, job: str, deadline: float) -> str:
        """Return the root at which a job that does not exist is to be created; decided once, at the job's home."""
        # A root that does not answer, where the job may exist, is an error.
        if (known := self.known(job)) is not None:
            return known
        found = find(self.roots, job, deadline)
        root = found.root
        if not root and found.failure is not None:
            raise missing(found, job, self.roots)
        if not root:
            root = found.pointed or next(iter(found.present), "")
            root = root or self._decide(job, self._choice(job), deadline)
            self.roots[root].call("place", lambda files: files.make_root(), max(0.0, deadline - now()))
        self.remember(job, root)
        return root

    def _choice(self, job: str) -> str:
        """Return the policy's root for a new job. If asking takes longer than a call may, it counts at the next try."""
        if job not in self._choices:
            self._choices[job] = self._choose(list(self.roots.values()), job)
        return self._choices[job]

    def _decide(self, job: str, root: str, deadline: float) -> str:
        """Write at the job's home that it lies elsewhere; the first writer decides. At home nothing is written."""
        home = home_of(self.roots, job)
        if root == home:
            return root
        staging, pointer = f"{CREATING}{uuid.uuid4()}", Pointer(1, root).name

        def write(files: Files) -> None:
            files.make_root()
            files.make_directory(staging)
            files.make_directory(f"{staging}/{pointer}")
            try:
                files.rename(staging, job)
            except StoreError:
                with suppress(StoreError):
                    files.delete(staging, recursive=True)
                raise

        try:
            self.roots[home].call("place", write, max(0.0, deadline - now()))
        except AlreadyExists:  # another process has decided, or has created the job there
            entries = self.roots[home].call("place", lambda files: files.list(job), max(0.0, deadline - now()))
            names = [each.name for each in entries]
            decided = pointer_in(names)
            return home if decided is None or lies_here(names) else decided.root
        return root


class Routed:
    """The driver of a group for one call: each operation goes to the root of its job, until the call's deadline."""

    def __init__(self, group: GroupFiles, deadline: float) -> None:
        self._group, self._deadline = group, deadline

    @property
    def uri(self) -> str:
        """All roots."""
        return self._group.uri

    def list(self, path: str) -> Entries:
        """Return the entries of a directory; of the root, those of all roots that answer."""
        if not path:
            return self._everywhere()
        if "/" in path or path.startswith("."):
            return self._do(path, lambda files: files.list(path))
        return self._job(path)

    def make_directory(self, path: str) -> None:
        """Create one directory."""
        self._do(path, lambda files: files.make_directory(path))

    def make_root(self) -> None:
        """Do nothing: a root is made when a job is placed there."""

    def rename(self, source: str, destination: str) -> None:
        """Rename an entry; both names must be at one root."""
        at, to = self._root(source), self._root(destination)
        if at != to:
            raise Invalid(f"{source} lies at {at}, and {destination} at {to}: nothing is renamed from root to root.")
        self._at(at, lambda files: files.rename(source, destination))

    def read(self, path: str, limit: int) -> bytes:
        """Return a small file's content."""
        return self._do(path, lambda files: files.read(path, limit))

    def write(self, path: str, data: bytes) -> None:
        """Create or replace a file."""
        self._do(path, lambda files: files.write(path, data))

    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete an entry."""
        self._do(path, lambda files: files.delete(path, recursive=recursive))

    def close(self) -> None:
        """Do nothing: the roots are closed with the group."""

    def _do(self, path: str, operation: Callable[[Files], T]) -> T:
        return self._at(self._root(path), operation)

    def _at(self, root: str, operation: Callable[[Files], T], share: float = 1.0) -> T:
        return self._group.on(root, operation, max(0.0, self._deadline - now()) * share)

    def _root(self, path: str) -> str:
        first = path.partition("/")[0]
        if first.startswith(CREATING):
            return self._group.place_new(first.partition("~")[2], self._deadline)
        return self._group.place(first, self._deadline)

    def _job(self, job: str) -> Entries:
        """List a job's directory: where it lay, or where it lies now. This is how everybody notices that it moved."""
        group, known = self._group, self._group.known(job)
        if known is not None:
            with suppress(StoreError):  # below all are asked, and this one once more
                entries = self._at(known, lambda files: files.list(job), share=0.5)
                names = [each.name for each in entries]
                if lies_here(names) and pointer_in(names) is None:
                    return entries
        found = find(group.roots, job, self._deadline, known or "")
        if found.root:
            group.remember(job, found.root)
            return found.entries
        if found.failure is not None or not found.present:
            raise missing(found, job, group.roots)
        return found.entries  # it is on its way: its directories hold no leader directory

    def _everywhere(self) -> Entries:
        entries: dict[str, Entry] = {}
        failure: StoreError | None = None
        silent = 0
        for left, root in zip(range(len(self._group.roots), 0, -1), self._group.roots, strict=True):
            try:
                found = self._at(root, lambda files: files.list(""), share=1 / left)
            except NotFound:  # no job has used it yet
                continue
            except StoreError as error:
                silent, failure = silent + 1, error
                _log.warning("%s does not answer, so what only lies there is left out: %s", root, error)
                continue
            entries.update((each.name, each) for each in found)
        if failure is not None and silent == len(self._group.roots):
            raise failure
        return list(entries.values())
