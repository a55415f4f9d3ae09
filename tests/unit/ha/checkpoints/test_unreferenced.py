"""Sweep: what is swept no restart ever asks for, and what nobody can ask for is swept."""

from collections.abc import Callable
from math import inf

import pytest

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.state_versions import closure
from ha.checkpoints.sweeping import MARGIN_MS, FileKind, unreferenced
from tests.unit.ha.checkpoints.led_spark import STEP_MS, LedSpark, life
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, ROCKSDB, ROCKSDB_IDS
from tests.unit.ha.checkpoints.sweeping import STEPS, Counted, answered, live, sweep_now
from tests.unit.ha.checkpoints.test_changes import COUNT as SCHEMA
from tests.unit.ha.checkpoints.test_closure import closed, given_files, names, until_batch

LIVES = 12
TEMPORARY = "state/0/0/left/.5.changelog.00000000-0000-4000-8000-000000000007.TID7.tmp"
TABLE = "state/0/0/left/SSTs/000001-00000000-0000-4000-8000-000000000001.sst"
VERSION = "state/0/0/left/5_00000000-0000-4000-8000-000000000002.changelog"


def found(files: dict[str, bytes], before_ms: float = inf, **written_ms: int) -> dict[str, FileKind]:
    there, written = names(files), {path: written_ms.get(path, 0) for path in files}
    closures = [closed(files, batch) for batch in there.batches]
    return given_files(unreferenced(there, closures, written, before_ms), files)


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_that_is_asked_for_later_is_swept(kind: str) -> None:
    counted = Counted()
    for seed in range(LIVES):
        live(kind, seed, counted)
    assert counted.lost == []
    assert counted.leaders > LIVES
    assert counted.asked > 100 * LIVES
    assert counted.swept > LIVES


@pytest.mark.parametrize(
    "mistake",
    [
        lambda spark: spark.at_ms,  # whatever was written until now
        lambda spark: max(spark.history_ms),  # the present leader's own line, which may come late
    ],
    ids=["any time", "the present leader's line"],
)
def test_the_leaders_time_is_needed(mistake: Callable[[LedSpark], int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LedSpark, "before_ms", mistake)
    counted = Counted()
    for seed in range(LIVES):
        live(ROCKSDB_IDS, seed, counted)
        if counted.lost:
            return
    pytest.fail("Nobody missed it.")


@pytest.mark.parametrize("kind", FORMATS)
def test_whoever_leads_alone_frees_everything(kind: str) -> None:
    for seed in range(10):
        query = life(kind, seed)
        for _ in range(STEPS):
            query.step()
        spark = query.spark
        spark.die()
        needed = spark.oracle()
        held = {path for each in CheckpointFiles(spark.sizes()).batches for path in closed(spark.files, each).files}
        sweep_now(spark, alone=True)
        assert needed <= spark.files.keys()
        assert sweep_now(spark, alone=True) == []
        if kind == ROCKSDB_IDS:
            left = {path for path in spark.files if path.startswith("state/0/") and "_metadata" not in path}
            stems = {path.rpartition(".")[0] for path in needed | held}
            assert {path.rpartition(".")[0] for path in left if "/SSTs/" not in path} <= stems
            assert {path for path in left if "/SSTs/" in path} <= needed | held


def test_each_kind_is_found() -> None:
    files = until_batch(ROCKSDB_IDS, 5).files
    assert found(files) == {}
    more = {TEMPORARY: b"", TABLE: b"", VERSION: b"", f"{VERSION}.crc": b"", "state/0/0/left/.5.changelog.crc": b""}
    assert found({**files, **more}) == {
        TEMPORARY: FileKind.TEMPORARY,
        TABLE: FileKind.TABLE,
        VERSION: FileKind.VERSION,
        f"{VERSION}.crc": FileKind.VERSION,
    }


@pytest.mark.parametrize(
    "path",
    [
        "state/0/0/left/99.changelog",  # a name that Spark gives once more
        "state/0/0/left/_metadata/schema2",
        "state/0/0/left/notes.txt",
        "state/0/0/left/.hidden.tmp",
        "offsets/99",
        "sources/0/99",
        "notes",
    ],
)
def test_what_is_of_another_kind_stays(path: str) -> None:
    files = until_batch(ROCKSDB_IDS, 5).files
    assert found({**files, path: SCHEMA if "schema" in path else b""}) == {}


def test_only_what_was_written_before_the_leader_began() -> None:
    files = {**until_batch(ROCKSDB_IDS, 5).files, VERSION: b""}
    at = 10 * STEP_MS
    assert found(files, at + MARGIN_MS + 1, **{VERSION: at}) == {VERSION: FileKind.VERSION}
    assert found(files, at + MARGIN_MS, **{VERSION: at}) == {}


def test_a_table_stays_as_long_as_a_snapshot_names_it() -> None:
    files = dict(until_batch(ROCKSDB, 5).files)
    snapshot = "state/0/0/left/3.zip"
    late = "state/0/0/left/99.zip"  # of a batch that was not committed; without an id, so it stays
    files[late] = files[snapshot]
    tables = {path for path in files if path.startswith("state/0/0/left/SSTs/")}
    assert not set(found(files)) & tables
    files[late] = b"cannot be read"
    assert found({**files, TABLE: b""}) == {}, "it may name any table"
    del files[late]
    assert found({**files, TABLE: b""}) == {TABLE: FileKind.TABLE}


def test_without_a_commit_only_temporary_files_go() -> None:
    files = {path: data for path, data in until_batch(ROCKSDB_IDS, 5).files.items() if "commits/" not in path}
    assert found({**files, TEMPORARY: b"", VERSION: b"", TABLE: b""}) == {TEMPORARY: FileKind.TEMPORARY}


def test_the_oracle_asks_for_what_a_closure_holds() -> None:
    """Two ways to the same files; sources and operators are the closure's alone."""
    for kind in FORMATS:
        for seed in range(5):
            query = life(kind, seed)
            for _ in range(STEPS):
                query.step()
            newest = query.spark.newest()
            assert newest is not None
            names = CheckpointFiles(query.spark.sizes())
            asking = answered(query.spark.files, closure(names, newest))
            while True:
                try:
                    next(asking)
                except StopIteration as end:
                    held = end.value
                    break
            assert {path for path in held.files if "/_metadata/" not in path and not path.startswith("sources/")} - {
                f"offsets/{newest - 1}"
            } == query.spark.asked(newest)
