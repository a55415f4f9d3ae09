"""Trees on file://: another user may have put links, pipes and devices below a checkpoint. And the pace of reading."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.checkpoints.trees import CHUNK, Pace, Tree
from ha.spark.checkpoint_tools.copying import Staging
from store.errors import Conflict, Invalid, NotFound
from store.open import open_files
from tests.unit.ha.clocks import At

SECRET = b"for one user alone"


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    (tmp_path / "root" / "checkpoint" / "sources" / "0").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(SECRET)
    with open_files((tmp_path / "root").as_uri()) as files:
        yield Tree(files, "checkpoint")


def here(tree: Tree) -> Path:
    return Path(tree.uri.removeprefix("file://"))


@pytest.mark.parametrize("kind", ["link", "device", "pipe", "folder"])
def test_only_regular_files_are_read_and_copied(tree: Tree, tmp_path: Path, kind: str) -> None:
    path = here(tree) / "sources" / "0" / "7"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.parent.rmdir()
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "7").write_bytes(SECRET)
        path.parent.symlink_to(tmp_path / "other")
    else:
        path.symlink_to(tmp_path / "secret" if kind == "link" else Path("/dev/zero"))
    for read in (
        lambda: tree.head("sources/0/7", 100),
        lambda: tree.read_through("sources/0/7", len(SECRET), bool),
        lambda: Staging(tree.files, "staging").fill(tree, {"sources/0/7": len(SECRET)}),
    ):
        with pytest.raises(Invalid, match=r"sources/0/7 is a link, a pipe or a device"):
            read()


def test_a_file_is_copied_up_to_its_listed_length(tree: Tree) -> None:
    (here(tree) / "metadata").write_bytes(bytes(3 * CHUNK))
    told: list[bytes] = []
    assert tree.read_into("metadata", 5, tree, "copy", told.append) == CHUNK == sum(map(len, told))
    with pytest.raises(Conflict, match="5 were listed"):
        Staging(tree.files, "staging").fill(tree, {"metadata": 5})


def test_what_is_there_is_read_and_what_is_not_is_told(tree: Tree) -> None:
    (here(tree) / "sources" / "0" / "0").write_bytes(b"0123456789")
    assert tree.head("sources/0/0", 3) == b"012"
    assert tree.heads({"sources/0/1": 3}) == [None]
    with pytest.raises(NotFound):
        tree.head("sources/1/0", 3)


def test_calls_begin_evenly() -> None:
    time = At(100.0)
    pace = Pace(4, time)
    begun = []
    for _ in range(3):
        pace.wait()
        begun.append(time.now())
    assert begun == [100.0, 100.25, 100.5]
    time.at = 200.0
    pace.wait()
    assert time.now() == 200.0
    pace.wait()
    assert time.now() == 200.25
