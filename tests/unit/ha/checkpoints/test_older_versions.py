"""Older versions: a damaged whole version of state is repaired as Spark 4.1 repairs it, or named."""

from functools import partial
from pathlib import Path

import pytest

from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.state_versions import MOST_REPLAYED
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import Condition, Verified, fault, judged, verify, verify_contents
from store.open import open_files
from tests.unit.ha.checkpoints.simulated_spark import HDFS, ROCKSDB, ROCKSDB_IDS, SimulatedSpark
from tests.unit.ha.checkpoints.test_check_sums import hadoop_sums
from tests.unit.ha.checkpoints.test_closure import closed, until_batch

PLACE = "state/0/1/left/"
WITH_ZIPS = (ROCKSDB, ROCKSDB_IDS)


def wholes(files: dict[str, bytes]) -> list[str]:
    found = [each for each in files if each.startswith(PLACE) and each.endswith((".zip", ".snapshot"))]
    return sorted(found, key=SimulatedSpark._number)


def table(files: dict[str, bytes], whole: str) -> str:
    return next(each for each in files if each.startswith(f"{PLACE}SSTs/") and each[-40:].encode() in files[whole])


def all_versions(kind: str, batch: int) -> dict[str, bytes]:
    simulated = until_batch(kind, 0)
    simulated.retained = 1000
    for path in simulated.run():
        if path == f"commits/{batch}":
            break
    return simulated.files


@pytest.mark.parametrize("kind", WITH_ZIPS)
@pytest.mark.parametrize("damage", ["emptied", "halved", "a table is gone", "a table is longer", "both"])
def test_an_older_version_takes_the_place_of_a_damaged_one(kind: str, damage: str) -> None:
    files = all_versions(kind, 7)
    before, damaged = wholes(files)[-2:]
    if damage.startswith("a table"):
        path = table(files, damaged)
        files[path] = files[path] + b"?"
        if damage.endswith("gone"):
            del files[path]
    else:
        files[damaged] = files[damaged][: len(files[damaged]) // 2 if damage == "halved" else 0]
    if damage == "both":
        files[before] = b""
    found = closed(files, 7)
    assert (found.restorable, damaged in found.files) == (True, False)
    assert found.skipped == ([damaged, before] if damage == "both" else [damaged])
    assert (before in found.files) is (damage != "both")
    assert "4.1" in found.reason
    copy = closed({path: files[path] for path in found.files}, 7)
    assert (copy.restorable, copy.skipped, copy.files) == (True, [], found.files), "a copy of it starts anywhere"


@pytest.mark.parametrize("kind", WITH_ZIPS)
@pytest.mark.parametrize("variables", [False, True])
def test_changes_alone_are_no_state_of_variables(kind: str, variables: bool) -> None:
    """Only whole versions name the column families of transformWithState."""
    files = all_versions(kind, 7)
    if variables:
        files["state/0/_stateSchema/default/0_a"] = b"schema"
    newest = wholes(files)[-1]
    assert closed(files, 7).restorable
    files |= dict.fromkeys(wholes(files), b"")
    found = closed(files, 7)
    assert found.restorable is not variables
    assert found.missing == (newest if variables else "")


@pytest.mark.parametrize("kind", WITH_ZIPS)
def test_without_the_changes_between_the_damaged_one_is_named(kind: str) -> None:
    files = all_versions(kind, 7)
    before, damaged = wholes(files)[-2:]
    files[damaged] = b""
    number = SimulatedSpark._number(before) + 1
    for each in [each for each in files if each.startswith(f"{PLACE}{number}") and each.endswith(".changelog")]:
        del files[each]
    found = closed(files, 7)
    assert (found.missing, found.skipped) == (damaged, [])


def test_spark_replays_no_more_than_fifty_changes() -> None:
    for deltas, restorable in ((MOST_REPLAYED - 10, True), (MOST_REPLAYED + 1, False)):
        simulated = SimulatedSpark(ROCKSDB, until_batch(ROCKSDB, 0).random, deltas=deltas, retained=1000)
        for path in simulated.run():
            if path.endswith("1.changelog") and wholes(simulated.files):
                break
        newest = simulated.newest()
        assert newest is not None
        damaged = wholes(simulated.files)[-1]
        simulated.files[damaged] = b""
        assert closed(simulated.files, newest).restorable is restorable


@pytest.mark.parametrize("kind", [HDFS, *WITH_ZIPS])
def test_what_only_the_contents_tell_is_repaired_as_well(kind: str, tmp_path: Path) -> None:
    files = all_versions(kind, 7)
    damaged = wholes(files)[-1]
    data = files[damaged]
    files[damaged] = data[:-30] + bytes([data[-30] ^ 1]) + data[-29:]
    place = tmp_path / "query"
    for path, each in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(each)
    with open_files(tmp_path.as_uri()) as opened:

        def reader() -> CheckpointReader:
            return CheckpointReader(Tree(opened, "query"))

        def newest(found: list[Verified]) -> tuple[Condition, str]:
            return found[-1].condition, found[-1].missing

        found, _ = verify(reader, bool)
        found, report = verify_contents(reader, found, None, bool)
        assert newest(found) == (Condition.REPAIRED, damaged)
        assert report.files > 0
        assert fault(reader, bool) is None, "Spark starts from it as it lies"
        between = next(each for each in sorted(files) if each.startswith(PLACE) and "/5" in each)
        (place / between).write_bytes(b"?")
        assert newest(verify_contents(reader, found, None, bool)[0]) == (Condition.DAMAGED, damaged)


def test_hadoop_compares_its_sums_of_what_spark_copies_to_its_host(tmp_path: Path) -> None:
    files = all_versions(ROCKSDB, 7)
    damaged = wholes(files)[-1]
    data = files[damaged]
    for path, was in ((damaged, data), (table(files, damaged), files[table(files, damaged)])):
        folder, _, name = path.rpartition("/")
        place = tmp_path / name
        for each, content in {**files, f"{folder}/.{name}.crc": hadoop_sums(was)}.items():
            (place / each).parent.mkdir(parents=True, exist_ok=True)
            (place / each).write_bytes(content)
        (place / path).write_bytes(b"?" + was[1:] if path != damaged else was[:10] + b"?" + was[11:])
        with open_files(place.as_uri()) as opened:
            reader = CheckpointReader(Tree(opened))
            found, _ = verify_contents(partial(CheckpointReader, Tree(opened)), judged(reader), None, bool)
        assert (found[-1].condition, found[-1].missing) == (Condition.REPAIRED, damaged)
