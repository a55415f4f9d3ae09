"""Fixture ``Owned``: a led job in its first epoch, on a directory with faults or on any of the real stores."""

import uuid
from pathlib import Path

import pytest

from leader.job.fenced_directory import FencedDirectory
from leader.layout import tree as job
from leader.layout.names import LeaderDirectory
from leader.layout.tree import NOBODY
from store.bounded import BoundedFiles
from store.files import Files
from store.open import driver_of, open_files
from tests.unit.leader.samples import A, B

ZEROTH, FIRST, SECOND = LeaderDirectory(0, NOBODY), LeaderDirectory(1, A), LeaderDirectory(2, B)
HOME = f"orders/{FIRST.name}"
CALL = 10.0

STORES = ["local", pytest.param("hdfs", marks=pytest.mark.hdfs), pytest.param("webhdfs", marks=pytest.mark.hdfs)]


class Owned:
    """The job ``orders`` with its leader directory."""

    def __init__(self, direct: Files, files: BoundedFiles) -> None:
        """Create the job. ``direct`` is for the test's own arrangements, ``files`` for the code under test."""
        self.direct = direct
        self.files = files
        job.create(direct, "orders")
        direct.rename(f"orders/{ZEROTH.name}", HOME)
        self.own = FencedDirectory(files, "orders", FIRST, CALL)

    def claim(self) -> FencedDirectory:
        """Claim the job for the next leader and return its directory; the former leader is fenced."""
        self.direct.rename(HOME, f"orders/{SECOND.name}")
        return FencedDirectory(self.files, "orders", SECOND, CALL)

    def staged(self, directory: LeaderDirectory = FIRST) -> list[str]:
        return [each for epoch in self.names("staged", directory) for each in self.names(f"staged/{epoch}", directory)]

    def names(self, folder: str = "", directory: LeaderDirectory = FIRST) -> list[str]:
        return sorted(each.name for each in self.direct.list(f"orders/{directory.name}/{folder}".rstrip("/")))


def on(kind: str, request: pytest.FixtureRequest) -> Owned:
    """Make such a job on one of :data:`STORES`."""
    if kind == "local":
        folder: Path = request.getfixturevalue("tmp_path")
        uri = (folder / "jobs").as_uri()
    else:
        uri = f"{request.getfixturevalue(f'{kind}_uri')}/{uuid.uuid4().hex}"
    return Owned(driver_of(uri)(), open_files(uri))
