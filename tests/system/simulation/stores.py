"""Stores that lie about renames, and what the try before anybody leads needs of the simulated one."""

from collections.abc import Mapping
from contextlib import suppress
from typing import cast

from store import contract
from store.errors import AlreadyExists, NotFound, Refused
from store.files import Files
from tests.system.simulation.namespace import Namespace


class SaysDone(Namespace):
    """It says that a rename is done, and has not done it."""

    def rename(self, source: str, destination: str, by: str = "") -> None:
        if source.rpartition("/")[2] not in self.entries(source.rpartition("/")[0]):
            super().rename(source, destination, by)


class SaysDoneIfRefused(Namespace):
    """What it refuses counts as done, as a gateway's answer that nobody reads."""

    def rename(self, source: str, destination: str, by: str = "") -> None:
        with suppress(Refused):
            super().rename(source, destination, by)


class SaysRefused(Namespace):
    """It says that a rename is refused, and has done it."""

    def rename(self, source: str, destination: str, by: str = "") -> None:
        super().rename(source, destination, by)
        raise NotFound(source)


class Replaces(Namespace):
    """It ignores "only if absent": what is at the destination is gone, as with POSIX."""

    def rename(self, source: str, destination: str, by: str = "") -> None:
        try:
            super().rename(source, destination, by)
        except AlreadyExists:
            self.delete(destination, by, recursive=True)
            super().rename(source, destination, by)

    def create_job(self, job: str, by: str = "") -> None:
        with suppress(NotFound):
            self.delete(job, by, recursive=True)
        super().create_job(job, by)


LIARS: Mapping[str, type[Namespace]] = {
    each.__name__: each for each in (SaysDone, SaysDoneIfRefused, SaysRefused, Replaces)
}


class _Tree:
    """A simulated store as a driver has it."""

    uri = "sim://jobs"

    def __init__(self, files: Namespace) -> None:
        self._files = files

    def rename(self, source: str, destination: str) -> None:
        self._files.rename(source, destination)

    def make_directory(self, path: str) -> None:
        self._files.make(path)

    def delete(self, path: str, *, recursive: bool = False) -> None:
        self._files.delete(path, recursive=recursive)


def broken(files: Namespace) -> str:
    """Try a store as each process does before it contends; returns what it breaks."""
    return contract.broken(cast("Files", _Tree(files)), contract.fresh())
