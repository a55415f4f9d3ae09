"""Closure: exactly what a restart after a batch needs, and the first file that is missing for it."""

import json
from collections.abc import Generator, Mapping
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.closure import Closure, Contents, Wanted, own_logs
from ha.checkpoints.contents import rebuilt_log
from ha.checkpoints.state_versions import closure
from tests.unit.ha.checkpoints.simulated_spark import (
    FORMATS,
    HDFS,
    PARTITIONS,
    ROCKSDB,
    ROCKSDB_IDS,
    STORES,
    SimulatedSpark,
)

T = TypeVar("T")


def closed(files: Mapping[str, bytes], batch: int, *, begun: bool = False) -> Closure:
    """Compute a closure from files in memory; it may only ask for files that exist, or have to."""
    return given_files(closure(names(files), batch, begun=begun), files)


def names(files: Mapping[str, bytes]) -> CheckpointFiles:
    return CheckpointFiles({path: len(data) for path, data in files.items()})


def given_files(asking: Generator[Wanted, Contents, T], files: Mapping[str, bytes]) -> T:
    """Run a computation of the product on files in memory."""
    said: dict[str, bytes | None] | None = None
    while True:
        try:
            said = {path: files.get(path) for path in asking.send(said)}  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            found: T = end.value
            return found


STORED = [{"storeName": each, "numPartitions": PARTITIONS} for each in STORES]


@pytest.mark.parametrize("kind", FORMATS)
def test_metadata_of_operators_are_needed_only_where_there_are_variables(kind: str) -> None:
    """As Spark does: it goes on without them, but for transformWithState (tests/system/checkpoints/restarts.py)."""
    files = until_batch(kind, 4).files
    del files["state/0/_metadata/metadata"]
    assert closed(files, 4).restorable
    files["state/0/_stateSchema/default/0_a"] = b"schema"
    found = closed(files, 4)
    assert (found.missing, found.restorable) == ("state/0/_metadata/v2/0", False)
    files["state/0/_metadata/v2/5"] = b"of a later start, which Spark does not look at"
    assert closed(files, 4).missing == "state/0/_metadata/v2/0"
    said = {"operatorInfo": {"operatorName": "join"}, "stateStoreInfo": STORED}
    files["state/0/_metadata/v2/4"] = f"v2\n{json.dumps(said)}".encode()
    assert closed(files, 4).restorable, "each start notes them anew, so the first ones may be gone"


def spark(kind: str, steps: int, seed: int = 0, deaths: tuple[int, ...] = ()) -> SimulatedSpark:
    """Run a simulated Spark for so many steps, and kill it at some of them."""
    simulated = SimulatedSpark(kind, Random(seed))  # noqa: S311
    run = simulated.run()
    for step in range(steps):
        if step in deaths:
            run = simulated.run()
        next(run)
    return simulated


def until_batch(kind: str, batch: int) -> SimulatedSpark:
    simulated = SimulatedSpark(kind, Random(0))  # noqa: S311
    for path in simulated.run():
        if path == f"commits/{batch}":
            return simulated
    raise AssertionError


kinds = st.sampled_from(FORMATS)
runs = st.builds(
    spark, kinds, st.integers(1, 250), st.integers(0, 9), st.lists(st.integers(0, 250), max_size=3).map(tuple)
)


@given(runs)
def test_the_newest_batch_is_restorable_wherever_spark_stands_or_died(simulated: SimulatedSpark) -> None:
    newest = simulated.newest()
    if newest is not None:
        found = closed(simulated.files, newest)
        assert (found.missing, found.reason) == ("", "")
        assert found.files.keys() <= simulated.files.keys()


@given(runs)
def test_a_batch_that_was_begun_is_part_of_it_with_all_its_input(simulated: SimulatedSpark) -> None:
    newest = simulated.newest()
    if newest is None or f"offsets/{newest + 1}" not in simulated.files:
        return
    found, whole = closed(simulated.files, newest, begun=True), closed(simulated.files, newest)
    assert not found.missing
    log = f"sources/0/{newest + 1}"
    more = {f"offsets/{newest + 1}", log if log in simulated.files else f"{log}.compact"}
    assert more <= found.files.keys()
    assert {path for path in found.files if not path.startswith("sources/")} - more == {
        path for path in whole.files if not path.startswith("sources/")
    }


@given(runs, st.randoms(use_true_random=False))
def test_no_file_of_a_closure_can_be_spared_but_what_is_rebuilt(simulated: SimulatedSpark, random: Random) -> None:
    newest = simulated.newest()
    if newest is None:
        return
    whole = closed(simulated.files, newest)
    lost = random.choice(sorted(whole.files))
    left = {path: data for path, data in simulated.files.items() if path != lost}
    found = closed(left, newest)
    if lost in (f"commits/{newest}", f"offsets/{newest}", "metadata"):
        assert found.missing == lost
    elif lost == f"offsets/{newest - 1}":
        assert found.rebuilt == {lost: f"offsets/{newest}"}
    elif lost.endswith(("/metadata", ".zip", ".snapshot")):
        # The stores' names tell the same, and Spark takes an older snapshot if all changes since are there.
        assert found.missing or found.replayed != whole.replayed or lost.endswith("/metadata")
    elif lost.endswith(".sst"):
        assert found.missing == lost or found.skipped
    elif lost.startswith("sources/"):
        assert found.missing.startswith("sources/0/") or f"sources/0/{newest}.compact" in found.rebuilt
    else:
        assert found.missing == lost


@given(runs)
def test_only_its_closure_is_as_good_as_the_whole(simulated: SimulatedSpark) -> None:
    newest = simulated.newest()
    if newest is not None:
        whole = closed(simulated.files, newest)
        assert closed({path: simulated.files[path] for path in whole.files}, newest) == whole


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_of_a_later_batch_belongs_to_it(kind: str) -> None:
    simulated = until_batch(kind, 5)
    found = closed(simulated.files, 3)
    assert found.restorable
    assert not {"offsets/4", "commits/4", "sources/0/4"} & found.files.keys()
    assert {"offsets/2", "offsets/3", "commits/3", "sources/0/2.compact", "sources/0/3"} <= found.files.keys()
    assert not [path for path in found.files if "/5" in path or "/6" in path]


@pytest.mark.parametrize("kind", FORMATS)
def test_the_newest_snapshot_not_above_it_counts_and_all_changes_after_it(kind: str) -> None:
    simulated = until_batch(kind, 4)  # a snapshot of version 3 follows batch 2
    found = closed(simulated.files, 4)
    assert set(found.replayed.values()) == {2}
    assert set(closed(simulated.files, 2).replayed.values()) == {0}
    assert set(closed(simulated.files, 1).replayed.values()) == {2}
    assert set(found.keys.values()) == (set() if kind == HDFS else {3})


def test_the_batch_before_the_oldest_one_is_rebuilt() -> None:
    simulated = until_batch(ROCKSDB_IDS, 9)
    oldest = min(CheckpointFiles(simulated.sizes()).batches)
    assert oldest > 0
    assert closed(simulated.files, oldest).rebuilt[f"offsets/{oldest - 1}"] == f"offsets/{oldest}"


def test_the_first_batch_has_none_before_it() -> None:
    assert closed(until_batch(HDFS, 0).files, 0).rebuilt == {}


def test_a_log_that_was_compacted_away_is_rebuilt_from_the_next_one() -> None:
    files = until_batch(ROCKSDB, 6).files
    for lost in ("sources/0/2.compact", "sources/0/3", "sources/0/4"):
        files.pop(lost, None)
    found = closed(files, 4)
    assert found.rebuilt["sources/0/4.compact"] == "sources/0/5.compact"
    rebuilt = rebuilt_log(files["sources/0/5.compact"], 4).decode().split("\n")
    assert rebuilt[0] == "v1"
    assert [line.partition('"batchId": ')[2] for line in rebuilt[1:]] == ["0}", "1}", "2}", "3}", "4}"]


def test_a_log_that_no_later_one_contains_is_a_hole() -> None:
    files = until_batch(ROCKSDB, 4).files
    del files["sources/0/3"]
    assert closed(files, 4).missing == "sources/0/3"


def test_a_table_of_another_length_is_damaged() -> None:
    files = until_batch(ROCKSDB, 4).files
    table = next(path for path in files if path.endswith(".sst"))
    files[table] += b"?"
    del files[f"{table.partition('/SSTs')[0]}/1.changelog"]  # else Spark takes the changes from the first one on
    found = closed(files, 4)
    assert (found.missing, found.restorable) == (table, False)
    assert "11 bytes, and had 10" in found.reason


OTHER_FORMS = [b"", b"v1", b"v1\n[]", b"v1\n{", b"\xff\xfe\n{}"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("content", OTHER_FORMS)
def test_damaged_metadata_of_an_operator_are_left_out_as_spark_does(kind: str, content: bytes) -> None:
    files = {**until_batch(kind, 4).files, "state/0/_metadata/metadata": content}
    found = closed(files, 4)
    assert found.restorable
    assert "state/0/_metadata/metadata" not in found.files
    assert found.files.keys() == closed(until_batch(kind, 4).files, 4).files.keys() - {"state/0/_metadata/metadata"}


@pytest.mark.parametrize("path", ["offsets/4", "commits/4"])
@pytest.mark.parametrize("content", OTHER_FORMS)
def test_a_small_file_that_is_damaged_is_named(path: str, content: bytes) -> None:
    files = {**until_batch(ROCKSDB_IDS, 4).files, path: content}
    found = closed(files, 4)
    assert found.missing == path
    assert found.reason.startswith("It is damaged.")


def test_a_commit_that_lost_its_ids_is_damage_and_no_error() -> None:
    """One changed bit in the name of the field: the commit reads as that of a format whose names have no ids."""
    files = dict(until_batch(ROCKSDB_IDS, 6).files)
    assert b'"stateUniqueIds"' in files["commits/6"]
    files["commits/6"] = files["commits/6"].replace(b'"stateUniqueIds"', b'"stateUniqueIdr"')
    found = closed(files, 6)
    assert (found.missing, found.reason) == ("state/0/0/left/1.changelog", "It is missing.")


def test_metadata_that_name_another_store_than_the_one_that_is_there_are_altered() -> None:
    """Spark goes by its program, and starts."""
    files = dict(until_batch(ROCKSDB_IDS, 4).files)
    metadata = "state/0/_metadata/metadata"
    files[metadata] = files[metadata].replace(b'"left"', b'"lefu"')
    found = closed(files, 4)
    assert (found.missing, found.altered) == (metadata, True)
    assert found.reason == "It is altered: it names lefu, which is missing, in place of left."


def test_without_operator_metadata_the_names_of_the_stores_are_found_by_their_ids() -> None:
    files = until_batch(ROCKSDB_IDS, 4).files
    whole = closed(files, 4)
    del files["state/0/_metadata/metadata"]
    found = closed(files, 4)
    assert found.restorable
    assert found.files.keys() == whole.files.keys() - {"state/0/_metadata/metadata"}


def test_a_partition_without_any_file_is_missed() -> None:
    files = {path: data for path, data in until_batch(ROCKSDB, 4).files.items() if not path.startswith("state/0/1/")}
    assert closed(files, 4).missing.startswith("state/0/1/")


def test_check_sums_of_files_are_taken_along_and_not_missed() -> None:
    files = until_batch(ROCKSDB, 4).files
    changes = next(path for path in files if path.endswith("/5.changelog"))
    files[f"{changes}.crc"] = b"sum"
    assert f"{changes}.crc" in closed(files, 4).files


def test_check_sums_that_hadoop_keeps_on_local_disks_are_no_part_of_it() -> None:
    schema = "state/0/0/_metadata/schema"
    names = CheckpointFiles({schema: 10, "state/0/0/_metadata/.schema.crc": 12})
    assert names.schemas([0]) == [schema]


@pytest.mark.parametrize(
    ("offsets", "logs", "own"),
    [
        ({"0": 5, "1": 5}, "01", {"0": 5, "1": 5}),
        ({"0": 5, "1": 5}, "0", {"0": 5}),
        ({"0": 5, "1": 5, "2": 7}, "01", {"0": 5, "1": 7}),
        ({"0": 5, "1": 7, "2": 5}, "01", {"0": 5, "1": 7}),
        ({"0": 5, "1": 7}, "0", {"0": 5, "1": 7}),  # a source without a log
        ({"0": 5, "1": 5, "2": 5}, "2", {"0": 5, "1": 5, "2": 5}),
        ({"0": 5, "1": 5}, "", {"0": 5, "1": 5}),
        ({"0": None, "1": None}, "0", {"0": None, "1": None}),  # nothing was read yet
        ({"a": 5, "b": 5}, "", {"a": 5, "b": 5}),
    ],
)
def test_a_stream_that_is_read_twice_has_one_log(offsets: dict[str, Any], logs: str, own: dict[str, Any]) -> None:
    assert own_logs(offsets, dict.fromkeys(logs)) == own
