"""Commit log: which batches are complete, and which files Spark reads."""

from ha.spark.stored.commit_log import kept, newest_batch


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
