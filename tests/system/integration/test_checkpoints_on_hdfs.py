"""Completed checkpoints in a real HDFS: the longest names, and the costs for its NameNode."""

import uuid
from collections import Counter

import pytest

from leader.errors import Fenced, InvalidName
from leader.job.checkpoints import Checkpoints
from leader.job.fenced_directory import FencedDirectory
from leader.layout import tree as job_tree
from leader.layout.checkpoint import MAX_ID, NOTHING, Checkpoint, Metadata
from leader.layout.names import LeaderDirectory
from store.bounded import BoundedFiles
from store.open import open_files
from tests.patience import PATIENCE_S
from tests.unit.leader.samples import A, B

pytestmark = [pytest.mark.hdfs]

KNOWN = Metadata(850, 7, 20, 4096, "orders=12 ä")
LONGEST = "q" * 207


def led(files: BoundedFiles) -> tuple[str, LeaderDirectory]:
    name, first, directory = f"job-{uuid.uuid4().hex[:8]}", LeaderDirectory(0, job_tree.NOBODY), LeaderDirectory(1, A)
    files.call("test", lambda direct: job_tree.create(direct, name), PATIENCE_S)
    files.call("test", lambda direct: direct.rename(f"{name}/{first.name}", f"{name}/{directory.name}"), PATIENCE_S)
    return name, directory


@pytest.mark.parametrize("uri", ["hdfs_uri", "webhdfs_uri"])
def test_the_oldest_becomes_the_newest(request: pytest.FixtureRequest, uri: str) -> None:
    asked: Counter[str] = Counter()
    with open_files(
        request.getfixturevalue(uri), on_requests=lambda operation, requests: asked.update({operation: requests})
    ) as files:
        job, directory = led(files)
        ids = Checkpoints(FencedDirectory(files, job, directory, PATIENCE_S), retained=2)
        for batch in range(2):
            ids.completed("daily", batch, KNOWN)
        before = Counter(asked)
        for batch in range(2, 7):
            ids.completed("daily", batch, KNOWN)
        assert asked - before == Counter(rename=10), "an id and the publication, and nothing else"
        assert ids.retained("daily") == [Checkpoint("daily", batch, batch + 1, KNOWN) for batch in (5, 6)]
        successor = LeaderDirectory(2, B)
        files.call(
            "test", lambda direct: direct.rename(f"{job}/{directory.name}", f"{job}/{successor.name}"), PATIENCE_S
        )
        with pytest.raises(Fenced):
            ids.completed("daily", 7)
        with pytest.raises(Fenced):
            ids.completed("hourly", 7)
        assert Checkpoints(FencedDirectory(files, job, successor, PATIENCE_S)).state().queries == {"daily": 6}


def test_a_name_as_long_as_hdfs_takes_it(hdfs_uri: str) -> None:
    with open_files(hdfs_uri) as files:
        job, directory = led(files)
        ids = Checkpoints(FencedDirectory(files, job, directory, PATIENCE_S))
        ids.set(MAX_ID - 1)
        ids.completed(LONGEST, MAX_ID)
        assert ids.latest(LONGEST) == Checkpoint(LONGEST, MAX_ID, MAX_ID - 1, NOTHING)
        with pytest.raises(InvalidName, match="too long"):
            ids.completed(LONGEST + "q", 0)


def test_offsets_fill_a_name_as_far_as_hdfs_takes_it(hdfs_uri: str) -> None:
    with open_files(hdfs_uri) as files:
        job, directory = led(files)
        ids = Checkpoints(FencedDirectory(files, job, directory, PATIENCE_S))
        ids.completed("daily", 3, Metadata(rows=7, offsets="x" * 1000))
        found = ids.latest("daily")
        assert found is not None
        assert (found.batch, found.metadata.rows) == (3, 7)
        assert found.metadata.offsets.strip("x") == "..."
        assert len(found.metadata.offsets) > 200
