"""Helpers of the tests with Spark."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

import ha
from ha.leadership.leadership import Leadership
from leader.layout.names import LeaderDirectory
from store.files import Files
from store.open import open_files

T = TypeVar("T")


def eventually(ask: Callable[[], T], timeout: float = 20.0) -> T:
    """Call until the result is true, and return it."""
    retrying = Retrying(stop=stop_after_delay(timeout), wait=wait_fixed(0.05), retry=retry_if_result(lambda it: not it))
    try:
        return retrying(ask)
    except RetryError as error:
        raise AssertionError(f"Still not so after {timeout} s: {ask}") from error


@contextmanager
def files_of(uri: str) -> Iterator[Callable[[Callable[[Files], T]], T]]:
    """Open the file system of a root; yields a function that executes operations on it."""
    with open_files(uri) as files:
        yield lambda operation: files.call("test", operation, 10.0)


def fence(leadership: Leadership) -> None:
    """Rename the leader directory, as the claim of a later leader does."""
    parent, _, name = leadership.directory.rpartition("/")
    later = LeaderDirectory(leadership.epoch + 1, str(uuid.uuid4()))
    with files_of(parent) as do:
        do(lambda files: files.rename(name, later.name))


def names(uri: str) -> list[str]:
    """Return the names in a directory, sorted."""
    with files_of(uri) as do:
        found: list[str] = do(lambda files: sorted(entry.name for entry in files.list("")))
        return found


def rows(uri: str) -> dict[str, list[dict[str, object]]]:
    """Return the rows of each batch that is published below an output directory."""
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
    """Lead a job within this process."""
    with ha.lead(job, {"jobmaster": "here:1"}, timeout=20.0, files=root, zookeeper=zookeeper, **settings) as leadership:
        yield leadership
