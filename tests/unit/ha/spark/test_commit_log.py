"""Commit log: the files of a checkpoint that belong together."""

import pytest

from ha.spark.commit_log import consistent, kept, newest_batch


def names(*paths: str) -> dict[str, int]:
    return dict.fromkeys(paths, 1)


def test_the_newest_commit_is_a_number_among_names() -> None:
    assert newest_batch(["9", "10", "8.compact", ".11.crc", "commits/2", "x"]) == 10
    assert newest_batch([".0.tmp"]) is None


def test_temporary_files_are_left_out() -> None:
    assert set(kept(names("metadata", "offsets/.3.1b2c.tmp", "commits/.2.crc", "offsets/3"))) == {
        "metadata",
        "offsets/3",
    }


@pytest.mark.parametrize(
    "path",
    [
        "metadata",
        "commits/7",
        "offsets/7",
        "sources/0/7",
        "sources/1/0",
        "sources/0/7.compact",
        "state/0/0/8.delta",
        "state/0/0/8.snapshot",
        "state/0/199/left-keyToNumValues/8.delta",
        "state/0/0/8.zip",
        "state/0/0/8.changelog",
        "state/0/0/8_3f2b-9a.zip",
        "state/0/0/8_3f2b-9a.changelog",
        "state/0/0/SSTs/000123-abc.sst",
        "state/0/_metadata/metadata",
        "state/0/_stateSchema/default/9_x",
    ],
)
def test_files_that_batch_7_needs_are_kept(path: str) -> None:
    assert consistent(names(path), 7) == names(path)


@pytest.mark.parametrize(
    "path",
    [
        "commits/8",
        "offsets/8",
        "offsets/10",
        "sources/0/8",
        "sources/0/9.compact",
        "state/0/0/9.delta",
        "state/0/0/10.snapshot",
        "state/0/3/right-keyWithIndexToValue/9.delta",
        "state/0/0/9.zip",
        "state/0/0/9_3f2b-9a.changelog",
    ],
)
def test_files_of_a_later_batch_are_left_out(path: str) -> None:
    assert consistent(names(path), 7) == {}
