"""Verification: each hole is found, and what Spark forgets by design is not called one."""

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ha.checkpoints.checkpoint_files import CheckpointFiles
from ha.checkpoints.checkpoint_reader import CheckpointReader
from ha.checkpoints.closure import Closure
from ha.checkpoints.state_versions import start
from ha.checkpoints.trees import Tree
from ha.checkpoints.verify import AGAIN_S, Condition, Verified, verify
from store.open import open_files
from tests.unit.ha.checkpoints.holes import alarms, hole
from tests.unit.ha.checkpoints.simulated_spark import FORMATS, ROCKSDB_IDS, SimulatedSpark
from tests.unit.ha.checkpoints.test_closure import closed, given_files, names, spark, until_batch


class Memory(CheckpointReader):
    def __init__(self, files: dict[str, bytes]) -> None:
        self._memory = files
        self.reads = self.bytes = 0

    def files(self) -> CheckpointFiles:
        return names(self._memory)

    def closures(self, files: CheckpointFiles, batches: Iterable[int], *, begun: bool = False) -> list[Closure]:
        del files, begun
        return [closed(self._memory, batch) for batch in batches]

    def start(self, files: CheckpointFiles) -> Closure:
        return given_files(start(files), self._memory)


def verified(files: dict[str, bytes], meanwhile: Callable[[], object] = bool) -> list[Verified]:
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        meanwhile()

    found, _ = verify(lambda: Memory(files), pause)
    assert paused in ([], [AGAIN_S])
    return found


kinds = st.sampled_from(FORMATS)


@given(kinds, st.integers(1, 200), st.integers(1, 60))
def test_nothing_is_damaged_while_spark_goes_on(kind: str, steps: int, meanwhile: int) -> None:
    simulated = SimulatedSpark(kind, Random(0))  # noqa: S311
    run = simulated.run()
    for _ in range(steps):
        next(run)
    found = verified(simulated.files, lambda: [next(run) for _ in range(meanwhile)])
    assert not [each for each in found if each.condition is Condition.DAMAGED]


@given(kinds, st.integers(60, 250), st.randoms(use_true_random=False))
def test_every_hole_is_found(kind: str, steps: int, random: Random) -> None:
    simulated = spark(kind, steps)
    whole = {each.batch: closed(simulated.files, each.batch) for each in verified(simulated.files)}
    needed = {path for each in whole.values() if each.restorable for path in each.files}
    lost = random.choice(sorted(needed))
    before = {batch: each for batch, each in whole.items() if lost in each.files}
    del simulated.files[lost]
    after = {each.batch: each for each in verified(simulated.files)}
    for batch, then in before.items():
        if batch not in after:
            assert lost == f"commits/{batch}", "without its commit it is none"
            continue
        told = after[batch]
        changed = closed(simulated.files, batch)
        tolerated = changed.restorable and (changed.rebuilt or changed.replayed != then.replayed)
        only_oldest = told.condition is Condition.FORGOTTEN and batch == min(after)
        assert (
            told.condition is Condition.DAMAGED or only_oldest or tolerated or lost.startswith("state/0/_metadata")
        ), lost


def test_a_hole_is_told_with_the_file_and_the_reason() -> None:
    files = until_batch(ROCKSDB_IDS, 5).files
    lost = next(path for path in files if "/5_" in path and path.endswith(".changelog"))
    del files[lost]
    damaged = [each for each in verified(files) if each.condition is Condition.DAMAGED]
    assert [(each.batch, each.missing, each.reason) for each in damaged] == [
        (batch, lost, "It is missing.") for batch in (4, 5)
    ]


def test_a_hole_that_only_one_look_sees_is_none() -> None:
    files = until_batch(ROCKSDB_IDS, 5).files
    lost = next(path for path in files if "/5_" in path and path.endswith(".changelog"))
    data = files.pop(lost)
    assert all(each.condition is not Condition.DAMAGED for each in verified(files, lambda: files.update({lost: data})))


def test_the_oldest_batch_whose_state_spark_has_deleted_is_forgotten() -> None:
    simulated = SimulatedSpark(ROCKSDB_IDS, Random(0))  # noqa: S311
    run = simulated.run()
    while simulated.newest() != 6:
        next(run)
    oldest = min(CheckpointFiles(simulated.sizes()).batches)
    for path in [path for path in simulated.files if path.startswith("state/0/0/") and "/_" not in path]:
        named = CheckpointFiles.state_file(path)
        if named is not None and named[1].number < oldest + 2:
            del simulated.files[path]
    found = verified(simulated.files)
    assert found[0].batch == oldest
    assert found[0].condition in (Condition.FORGOTTEN, Condition.DAMAGED)
    assert found[-1].condition is Condition.RESTORABLE


@pytest.mark.parametrize("kind", FORMATS)
def test_a_real_directory_is_read_once_a_file(kind: str, tmp_path: Path) -> None:
    simulated = until_batch(kind, 6)
    simulated.write_to(tmp_path / "query")
    with open_files(tmp_path.as_uri()) as files:
        reader = CheckpointReader(Tree(files, "query"))
        names = reader.files()
        found = reader.closures(names, names.batches)
        assert found == [closed(simulated.files, batch) for batch in names.batches]
        assert reader.reads == len(reader.contents(set()))
        before = reader.reads
        assert reader.closures(names, names.batches) == found
        assert reader.reads == before


DRAWN = 45


def test_each_missing_file_is_found() -> None:
    assert [path for path, found in (hole(seed, by_content=False) for seed in range(DRAWN)) if not found] == []


def test_each_changed_bit_is_found() -> None:
    assert [path for path, found in (hole(seed, by_content=True) for seed in range(DRAWN)) if not found] == []


def test_a_checkpoint_that_lives_raises_no_alarm() -> None:
    assert [each for seed in range(DRAWN) for each in alarms(seed)] == []
