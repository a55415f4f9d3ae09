"""What Spark notes about where a checkpoint lies follows it, whatever crashes on the way."""

import json
from pathlib import Path

import pytest

from ha.spark.moved import at, bring_home
from leader.errors import Fenced
from leader.own import OwnDirectory
from store.errors import Invalid, NotFound, NotSent
from tests.leader.owned import CALL, FIRST, HOME, Owned, on

HERE, THERE = "hdfs://n:1/ha/orders/0000000002-b/spark/daily", "hdfs://n:1/ha/orders/0000000001-a/spark/daily"
SCHEMA = "state/0/_stateSchema/default/0_053aed1c"
CHECKPOINT = "spark/daily"
FOLDER = f"{CHECKPOINT}/state/0/_metadata"


def metadata(location: str, version: str = "v2") -> bytes:
    """As Spark 4.3.0 writes it."""
    store = {"storeName": "default", "numPartitions": 1, "stateSchemaFilePaths": [f"{location}/{SCHEMA}"]}
    content = {"operatorInfo": {"operatorId": 0}, "stateStoreInfo": [store], "operatorPropertiesJson": '{"a":"b"}'}
    return f"{version}\n{json.dumps(content, separators=(',', ':'))}".encode()


def test_paths_follow_and_nothing_else_changes() -> None:
    assert at(HERE, metadata(THERE)) == metadata(HERE)
    assert at(HERE, metadata(HERE)) == metadata(HERE)
    assert at(HERE, metadata("file:/tmp/checkpoint")) == metadata(HERE)


def test_a_path_that_is_no_schema_s_stays() -> None:
    odd = metadata(THERE).replace(b"_stateSchema", b"elsewhere")
    assert at(HERE, odd) == odd


@pytest.mark.parametrize(
    "data", [b"", b"v2", b"v2\n[]", b"v2\n{}", b'v2\n{"stateStoreInfo":[1]}', b"\xff", b"v2\nnull"]
)
def test_what_is_no_metadata_is_told(data: bytes) -> None:
    with pytest.raises(Invalid, match="no metadata of a stateful operator"):
        at(HERE, data)
    with pytest.raises(Invalid, match="'v9'"):
        at(HERE, metadata(THERE, version="v9"))


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


def test_a_checkpoint_is_brought_home_once(owned: Owned) -> None:
    fill(owned)
    bring_home(owned.own, CHECKPOINT, HERE)
    assert at_home(owned)
    assert owned.names(FOLDER) == ["v2"]
    before = owned.direct.list(f"{HOME}/{FOLDER}/v2")
    bring_home(owned.own, CHECKPOINT, HERE)
    assert sorted(before, key=str) == sorted(owned.direct.list(f"{HOME}/{FOLDER}/v2"), key=str), (
        "it is not touched again"
    )


def test_one_without_state_and_one_that_is_not_there_need_nothing(owned: Owned) -> None:
    bring_home(owned.own, CHECKPOINT, HERE)
    owned.claim()
    with pytest.raises(Fenced):
        bring_home(owned.own, CHECKPOINT, HERE)


class Dying(OwnDirectory):
    """A process that dies when it is about to make one change more than it may."""

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

    def stage(self, data: bytes | None) -> str:
        self._live()
        return super().stage(data)


def test_a_crash_at_any_change_is_made_good(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    del tmp_path
    owned = on("local", request)
    changes = 0
    while True:
        fill(owned)
        dying = Dying(owned.files, "orders", FIRST, CALL)
        dying.left = changes
        try:
            bring_home(dying, CHECKPOINT, HERE)
        except NotSent:
            pass
        else:
            break
        bring_home(owned.own, CHECKPOINT, HERE)
        assert at_home(owned), changes
        assert owned.names(FOLDER) == ["v2"]
        owned.direct.delete(f"{HOME}/{CHECKPOINT}", recursive=True)
        changes += 1
    assert changes == 9, "for each of the two: staged, put aside, put into its place, deleted; and one check sum"
    with pytest.raises(NotFound):
        owned.direct.read(f"{HOME}/{FOLDER}/v2/.7.crc", 100)
    owned.files.close()
