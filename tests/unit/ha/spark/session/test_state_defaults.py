"""State defaults: which checkpoints they fit."""

import json

import pytest

from ha.leadership.leadership import Leadership
from ha.spark.session.state_defaults import fits
from ha.spark.stored.stored_state import PROVIDER, ROCKSDB
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, ROCKSDB_IDS
from tests.unit.ha.checkpoints.test_closure import until_batch
from tests.unit.ha.spark.placing import place

pytestmark = pytest.mark.usefixtures("quick")


def test_they_fit_a_query_that_is_new_or_has_no_state_and_none_that_cannot_be_read(leadership: Leadership) -> None:
    assert fits(leadership, "daily")
    place(leadership, {"metadata": b"{}"})
    assert fits(leadership, "daily")
    files = until_batch(ROCKSDB_IDS, 1).files
    folder = place(leadership, {path: data for path, data in files.items() if not path.startswith("state/")})
    assert fits(leadership, "daily")
    place(leadership, {path: data for path, data in files.items() if path.startswith("state/")})
    (folder / "commits/1").write_bytes(b"")
    assert not fits(leadership, "daily")


@pytest.mark.parametrize("kind", FORMATS)
def test_of_those_with_state_they_fit_what_was_begun_with_them(kind: str, leadership: Leadership) -> None:
    place(leadership, until_batch(kind, 1).files)
    assert fits(leadership, "daily") is (kind == ROCKSDB_IDS)


@pytest.mark.parametrize("provider", [ROCKSDB, "HDFSBackedStateStoreProvider"])
def test_before_the_first_commit_the_offsets_tell(provider: str, leadership: Leadership) -> None:
    head = json.dumps({"batchWatermarkMs": 0, "conf": {PROVIDER: provider}})
    place(leadership, {"offsets/0": f"v1\n{head}\n-".encode(), "state/0/_metadata/metadata": b"v1\n{}"})
    assert fits(leadership, "daily") is (provider == ROCKSDB)
