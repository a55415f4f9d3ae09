"""Helpers of the tests with Spark."""

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

import ha
from ha.hook import guarding
from ha.leadership.leadership import Leadership
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.errors import StoreError
from store.files import Files
from store.local import LocalFiles
from store.open import open_files
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until

T = TypeVar("T")


def eventually(ask: Callable[[], T], timeout: float = PATIENCE_S) -> T:
    return wait_until(ask, timeout)


@contextmanager
def files_of(uri: str) -> Iterator[Callable[[Callable[[Files], T]], T]]:
    """Open the file system of a root; yields a function that executes operations on it."""
    with open_files(uri) as files:
        yield lambda operation: files.call("test", operation, PATIENCE_S)


def rows_below(uri: str, folder: str, ends: str, read: Callable[[bytes], Iterable[str]]) -> Counter[str]:
    """Return the rows of an output's files whose names end so; none if it is not there yet, or is being moved."""

    def walk(files: Files, folder: str) -> Iterator[str]:
        for entry in files.list(folder):
            path = f"{folder}/{entry.name}"
            if entry.is_directory:
                yield from walk(files, path)
            elif path.endswith(ends):
                yield from read(files.read(path, 1_000_000))

    with files_of(uri) as do:
        try:
            return do(lambda files: Counter(walk(files, folder)))
        except StoreError:
            return Counter()


def fence(leadership: Leadership) -> None:
    parent, _, name = leadership.directory.rpartition("/")
    later = LeaderDirectory(leadership.epoch + 1, str(uuid.uuid4()))
    with files_of(parent) as do:
        do(lambda files: files.rename(name, later.name))


def begin_another_program() -> None:
    """Let queries start though a leadership has ended in this process, as in a program that never led."""
    if (watched := guarding.watched_of()) is not None:
        watched.over = bool


def count_calls(patch: pytest.MonkeyPatch, home: type) -> list[str]:
    """Return a list that gets the name of each call that outputs of such a leader directory make of their store."""
    calls: list[str] = []

    class Counted(LocalFiles):
        def __getattribute__(self, name: str) -> Any:
            if name in ("list", "make_directory", "rename", "delete", "read", "write"):
                calls.append(name)
            return super().__getattribute__(name)

    def opened(_: object, uri: str) -> BoundedFiles:
        return BoundedFiles(lambda: Counted(uri.removeprefix("file://")), uri=uri)

    patch.setattr(home, "open_files", opened)
    return calls


def names(uri: str) -> list[str]:
    with files_of(uri) as do:
        found: list[str] = do(lambda files: sorted(entry.name for entry in files.list("")))
        return found


def rows(uri: str) -> dict[str, list[dict[str, object]]]:
    with files_of(uri) as do:

        def read(files: Files) -> dict[str, list[dict[str, object]]]:
            return {
                batch.name: [
                    json.loads(line)
                    for part in files.list(batch.name)
                    for line in files.read(f"{batch.name}/{part.name}", 10_000_000).decode().splitlines()
                ]
                for batch in files.list("")
            }

        found: dict[str, list[dict[str, object]]] = do(read)
        return found


@contextmanager
def leading(job: str, root: str, zookeeper: str = "", **settings: object) -> Iterator[Leadership]:
    with ha.lead(
        job, {"jobmaster": "here:1"}, timeout=PATIENCE_S, files=root, zookeeper=zookeeper, **settings
    ) as leadership:
        yield leadership
