"""Fixture ``Place``: a root on one of the stores, with a checkpoint directory and a job."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pytest

import ha
from ha.checkpoints.trees import Tree
from ha.leadership import fenced_rename
from ha.leadership.leadership import Leadership
from ha.spark.checkpoint_tools.copying import folders
from store.bounded import BoundedFiles
from store.files import Files
from tests.patience import PATIENCE_S
from tests.unit.ha.checkpoints.simulated_spark import lz4

JOB, QUERY = "orders", "daily"


def checkpoint(newest: int, more: str = "") -> dict[str, bytes]:
    """Return the files that Spark has written when batch ``newest`` is committed and the next one is under way."""
    files = {"metadata": b'{"id":"b0-b0-b0-b0-b0"}'}
    for batch in range(newest + 2):
        entry = f'{{"path":"file:///in/{batch}","timestamp":1,"batchId":{batch}}}'
        said = {"offsets": f'{{"batchWatermarkMs":0}}\n{{"logOffset":{batch}}}', "commits": "{}", "sources/0": entry}
        files |= {f"{log}/{batch}": f"v1\n{line}{more}".encode() for log, line in said.items()}
        files[f"state/0/0/{batch + 1}.delta"] = lz4(b"d" * (batch + 1))
    del files[f"commits/{newest + 1}"]
    files[f"state/0/0/{newest + 2}.delta"] = b"half"
    return files


class Place:
    def __init__(self, direct: Files, files: BoundedFiles) -> None:
        """``direct`` is for the test's own arrangements, ``files`` is bounded."""
        self.direct = direct
        self.files = files
        self.jobs = f"{files.uri}/jobs"
        self.source = f"{files.uri}/elsewhere"

    def write(self, path: str, files: dict[str, bytes]) -> None:
        """Write files below a directory, many at once: HDFS takes a third of a second for each."""
        for folder in folders(f"{path}/{name}" for name in files):
            self.direct.make_directory(folder)
        with ThreadPoolExecutor(16) as crew:
            list(crew.map(lambda name: self.direct.write(f"{path}/{name}", files[name]), files))

    def read(self, path: str) -> dict[str, bytes]:
        names = sorted(Tree(self.files, path).listing())
        with ThreadPoolExecutor(16) as crew:
            return dict(
                zip(names, crew.map(lambda name: self.direct.read(f"{path}/{name}", 1 << 24), names), strict=True)
            )

    def below(self, uri: str) -> str:
        return uri.removeprefix(f"{self.files.uri}/")

    def names(self, path: str) -> set[str]:
        return {entry.name for entry in self.direct.list(path)}

    def adopted(self, leadership: Leadership) -> dict[str, bytes]:
        return self.read(self.below(leadership.path(f"spark/{QUERY}")))

    @contextmanager
    def leading(self, job: str = JOB) -> Iterator[Leadership]:
        with ha.lead(job, timeout=PATIENCE_S, files=self.jobs, zookeeper="") as leadership:
            yield leadership


@dataclass
class LedJob:
    """A job that is led by this process, below the place; its outputs are below the root."""

    place: Place
    leadership: Leadership
    root: Path
    files: BoundedFiles

    @property
    def home(self) -> Path:
        return Path(urlsplit(self.leadership.directory).path)


J = TypeVar("J", bound=LedJob)


@contextmanager
def led(kind: type[J], place: Place, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[J]:
    """Lead such a job, whose renames wait for nobody."""
    monkeypatch.setattr(fenced_rename, "RETRY_S", 0.0)
    monkeypatch.setattr(fenced_rename, "PATIENCE_S", 0.0)
    with place.leading() as leadership, leadership.open_files(place.jobs) as files:
        yield kind(place, leadership, root, files)
