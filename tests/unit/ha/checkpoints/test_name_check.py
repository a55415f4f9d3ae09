"""By names: what names tell of every batch is what its closure says, but for what only zips know."""

from collections.abc import Mapping
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ha.checkpoints.closure import Closure
from ha.checkpoints.name_check import by_names
from tests.unit.ha.checkpoints.simulated_spark import HDFS, ROCKSDB_IDS, SimulatedSpark
from tests.unit.ha.checkpoints.test_closure import closed, names, runs, until_batch


def looked(files: Mapping[str, bytes]) -> tuple[list[Closure], set[str]]:
    there = names(files)
    asking = by_names(there, there.batches)
    said: dict[str, bytes | None] | None = None
    read: set[str] = set()
    while True:
        try:
            wanted = asking.send(said)  # type: ignore[arg-type]  # None starts it
        except StopIteration as end:
            found: list[Closure] = end.value
            return found, read
        read |= wanted
        said = {path: files.get(path) for path in read}


@given(runs)
def test_names_tell_which_batches_can_be_continued(simulated: SimulatedSpark) -> None:
    found, read = looked(simulated.files)
    assert not any(path.endswith(".zip") for path in read)
    for each in found:
        whole = closed(simulated.files, each.batch)
        assert (each.restorable, each.rebuilt) == (whole.restorable, whole.rebuilt)


@given(runs, st.randoms(use_true_random=False))
def test_a_hole_is_seen_wherever_the_closure_sees_it(simulated: SimulatedSpark, random: Random) -> None:
    lost = random.choice(sorted(simulated.files))
    del simulated.files[lost]
    for each in looked(simulated.files)[0]:
        whole = closed(simulated.files, each.batch)
        if lost.endswith((".zip", ".sst")):
            assert each.restorable or not whole.restorable
        else:
            assert each.restorable == whole.restorable, lost


def test_the_first_missing_file_is_named() -> None:
    files = until_batch(HDFS, 4).files
    del files["state/0/1/left/4.delta"]
    assert [(each.batch, each.missing) for each in looked(files)[0] if each.missing] == [
        (3, "state/0/1/left/4.delta"),
        (4, "state/0/1/left/4.delta"),
    ]


def test_retained_commits_save_the_reading_of_changelogs() -> None:
    files = until_batch(ROCKSDB_IDS, 4).files
    _, read = looked(files)
    assert not any(path.endswith(".changelog") for path in read)
    del files["commits/0"], files["commits/1"]
    found, read = looked(files)
    assert {path.partition("_")[0].rpartition("/")[2] for path in read if path.endswith(".changelog")} <= {"3", "4"}
    assert all(each.restorable for each in found)


def test_a_damaged_changelog_is_named() -> None:
    files = until_batch(ROCKSDB_IDS, 1).files
    del files["commits/0"]
    damaged = next(path for path in files if path.startswith("state/0/0/left/2_"))
    files[damaged] = b"nothing of the kind"
    assert [each.missing for each in looked(files)[0]] == [damaged]
