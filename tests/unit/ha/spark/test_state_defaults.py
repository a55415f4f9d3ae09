"""State defaults: which checkpoints they fit."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import ha
from ha.leadership.leadership import Leadership
from ha.spark.state_defaults import fits
from ha.spark.stored_state import PROVIDER, ROCKSDB
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def leadership() -> Iterator[Leadership]:
    with ha.lead("orders") as leadership:
        yield leadership


def place(leadership: Leadership, files: dict[str, bytes]) -> Path:
    folder = Path(urlsplit(leadership.path("spark/daily")).path)
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def test_they_fit_a_new_query(leadership: Leadership) -> None:
    assert fits(leadership, "daily")
    place(leadership, {"metadata": b"{}"})
    assert fits(leadership, "daily")


def test_they_fit_a_query_without_state(leadership: Leadership) -> None:
    files = until_batch(ROCKSDB_IDS, 1).files
    place(leadership, {path: data for path, data in files.items() if not path.startswith("state/")})
    assert fits(leadership, "daily")


@pytest.mark.parametrize("kind", FORMATS)
def test_of_those_with_state_they_fit_what_was_begun_with_them(kind: str, leadership: Leadership) -> None:
    place(leadership, until_batch(kind, 1).files)
    assert fits(leadership, "daily") is (kind == ROCKSDB_IDS)


@pytest.mark.parametrize("provider", [ROCKSDB, "HDFSBackedStateStoreProvider"])
def test_before_the_first_commit_the_offsets_tell(provider: str, leadership: Leadership) -> None:
    head = json.dumps({"batchWatermarkMs": 0, "conf": {PROVIDER: provider}})
    place(leadership, {"offsets/0": f"v1\n{head}\n-".encode(), "state/0/_metadata/metadata": b"v1\n{}"})
    assert fits(leadership, "daily") is (provider == ROCKSDB)


def test_what_cannot_be_read_is_left_alone(leadership: Leadership) -> None:
    folder = place(leadership, until_batch(ROCKSDB_IDS, 1).files)
    (folder / "commits/1").write_bytes(b"")
    assert not fits(leadership, "daily")
