"""Relocating: the paths that Spark stores in a checkpoint follow its moves, whatever crashes on the way."""

import json
from pathlib import Path

import pytest

from ha.spark.stored.locations import relocate, relocated
from leader.errors import Fenced
from leader.job.fenced_directory import MAX_BYTES, FencedDirectory
from store.errors import Invalid, NotFound, NotSent
from tests.unit.leader.owned import CALL, FIRST, HOME, Owned, on

HERE, THERE = "hdfs://n:1/ha/orders/0000000002-b/spark/daily", "hdfs://n:1/ha/orders/0000000001-a/spark/daily"
SCHEMA = "state/0/_stateSchema/default/0_053aed1c"
CHECKPOINT = "spark/daily"
FOLDER = f"{CHECKPOINT}/state/0/_metadata"


def metadata(location: str, version: str = "v2") -> bytes:
    store = {"storeName": "default", "numPartitions": 1, "stateSchemaFilePaths": [f"{location}/{SCHEMA}"]}
    content = {"operatorInfo": {"operatorId": 0}, "stateStoreInfo": [store], "operatorPropertiesJson": '{"a":"b"}'}
    return f"{version}\n{json.dumps(content, separators=(',', ':'))}".encode()


def test_paths_follow_and_nothing_else_changes() -> None:
    assert relocated(HERE, metadata(THERE)) == metadata(HERE)
    assert relocated(HERE, metadata(HERE)) == metadata(HERE)
    assert relocated(HERE, metadata("file:/tmp/checkpoint")) == metadata(HERE)


def test_a_path_that_belongs_to_no_schema_stays() -> None:
    odd = metadata(THERE).replace(b"_stateSchema", b"elsewhere")
    assert relocated(HERE, odd) == odd


@pytest.mark.parametrize(
    "data", [b"", b"v2", b"v2\n[]", b"v2\n{}", b'v2\n{"stateStoreInfo":[1]}', b"\xff", b"v2\nnull"]
)
def test_invalid_metadata_raises(data: bytes) -> None:
    with pytest.raises(Invalid, match="metadata of a stateful operator cannot be read"):
        relocated(HERE, data)
    with pytest.raises(Invalid, match="'v9'"):
        relocated(HERE, metadata(THERE, version="v9"))


def fill(owned: Owned) -> None:
    for folder in ("", "/state", "/state/0", "/state/0/_metadata", "/state/0/_metadata/v2", "/state/1", "/offsets"):
        owned.direct.make_directory(f"{HOME}/{CHECKPOINT}{folder}")
    for batch in (0, 7):
        owned.direct.write(f"{HOME}/{FOLDER}/v2/{batch}", metadata(THERE))
    owned.direct.write(f"{HOME}/{FOLDER}/v2/.7.crc", b"of the old one")


def at_home(owned: Owned) -> bool:
    return {name: owned.own.read(f"{FOLDER}/v2/{name}") for name in owned.names(f"{FOLDER}/v2")} == {
        "0": metadata(HERE),
        "7": metadata(HERE),
    }


def test_a_checkpoint_is_relocated_once(owned: Owned) -> None:
    fill(owned)
    relocate(owned.own, CHECKPOINT, HERE)
    assert at_home(owned)
    assert owned.names(FOLDER) == ["v2"]
    before = owned.direct.list(f"{HOME}/{FOLDER}/v2")
    relocate(owned.own, CHECKPOINT, HERE)
    assert sorted(before, key=str) == sorted(owned.direct.list(f"{HOME}/{FOLDER}/v2"), key=str), (
        "it is not touched again"
    )


def test_a_stateless_or_missing_checkpoint_needs_nothing(owned: Owned) -> None:
    relocate(owned.own, CHECKPOINT, HERE)
    owned.claim()
    with pytest.raises(Fenced):
        relocate(owned.own, CHECKPOINT, HERE)


class Dying(FencedDirectory):
    left = 0

    def _live(self) -> None:
        if not self.left:
            raise NotSent("This process is dead.")
        self.left -= 1

    def rename(self, source: str, target: str) -> None:
        self._live()
        super().rename(source, target)

    def delete(self, path: str) -> None:
        self._live()
        super().delete(path)

    def stage(self, data: bytes | None, most: int = MAX_BYTES) -> str:
        self._live()
        return super().stage(data, most)


def test_a_crash_at_any_change_is_recovered(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    del tmp_path
    owned = on("local", request)
    changes = 0
    while True:
        fill(owned)
        dying = Dying(owned.files, "orders", FIRST, CALL)
        dying.left = changes
        try:
            relocate(dying, CHECKPOINT, HERE)
        except NotSent:
            pass
        else:
            break
        relocate(owned.own, CHECKPOINT, HERE)
        assert at_home(owned), changes
        assert owned.names(FOLDER) == ["v2"]
        owned.direct.delete(f"{HOME}/{CHECKPOINT}", recursive=True)
        changes += 1
    assert changes == 9, "for each of the two: staged, put aside, put into its place, deleted; and one check sum"
    with pytest.raises(NotFound):
        owned.direct.read(f"{HOME}/{FOLDER}/v2/.7.crc", 100)
    owned.files.close()
