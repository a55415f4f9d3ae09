"""A job in its first epoch, as its leader holds it: on a directory with faults, or on any of the real stores."""

import uuid
from pathlib import Path

import pytest

from leader import job
from leader.job import NOBODY
from leader.names import LeaderDirectory
from leader.own import OwnDirectory
from store.bounded import BoundedFiles
from store.files import Files
from store.opening import driver_of, open_files
from tests.leader.samples import A, B

ZEROTH, FIRST, SECOND = LeaderDirectory(0, NOBODY), LeaderDirectory(1, A), LeaderDirectory(2, B)
HOME = f"orders/{FIRST.name}"
CALL = 10.0

STORES = ["local", pytest.param("hdfs", marks=pytest.mark.hdfs), pytest.param("webhdfs", marks=pytest.mark.hdfs)]


class Owned:
    """The job ``orders``, which somebody leads."""

    def __init__(self, direct: Files, files: BoundedFiles) -> None:
        """Create it; ``direct`` arranges things, ``files`` is for the code under test."""
        self.direct = direct
        self.files = files
        job.create(direct, "orders")
        direct.rename(f"orders/{ZEROTH.name}", HOME)
        self.own = OwnDirectory(files, "orders", FIRST, CALL)

    def claim(self) -> OwnDirectory:
        """The next leader's directory; the first one is fenced."""
        self.direct.rename(HOME, f"orders/{SECOND.name}")
        return OwnDirectory(self.files, "orders", SECOND, CALL)

    def names(self, folder: str = "", directory: LeaderDirectory = FIRST) -> list[str]:
        """What is in a folder of the leader directory."""
        return sorted(each.name for each in self.direct.list(f"orders/{directory.name}/{folder}".rstrip("/")))


def on(kind: str, request: pytest.FixtureRequest) -> Owned:
    """Such a job on one of :data:`STORES`."""
    if kind == "local":
        folder: Path = request.getfixturevalue("tmp_path")
        uri = (folder / "jobs").as_uri()
    else:
        uri = f"{request.getfixturevalue(f'{kind}_uri')}/{uuid.uuid4().hex}"
    return Owned(driver_of(uri)(), open_files(uri))
