"""Real tasks that fail, run twice, or end late on an executor that was given up: each row is published once.

The executor is paused while its task writes, the driver declares it lost, or starts the task a second time, and another
one does the task. It goes on at each step of the journal in turn, and ends its file then.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.limits import HANGS_S
from tests.system.spark.cluster import Worker, clean_environment, standalone
from tests.system.spark.held_tasks import WINDOWS, end_executors

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.slow, pytest.mark.timeout(4 * HANGS_S)]

ROWS = 4000  # of a file; so many that a task has written some of them when it is held in the middle
WORKERS = (Worker("127.0.0.1", 1), Worker("127.0.0.2", 1))  # a second try of a slow task is on another host


def lines(batch: int, file: int) -> list[str]:
    return [f"{file} {batch} {number} {'x' * 100}" for number in range(ROWS)]


def drive(master: str, tmp_path: Path, root: str, batches: int, *what: str) -> dict[str, Any]:
    """Run the driver over so many batches of two files each; every row has to be there once, in its batch."""
    source = tmp_path / "in"
    source.mkdir()
    for batch in range(batches):
        for file in range(2):
            path = source / f"{batch}-{file}"
            path.write_text("".join(f"{each}\n" for each in lines(batch, file)))
            os.utime(path, (batch, batch))  # Spark takes the oldest ones first
    ended = subprocess.run(
        [sys.executable, "-m", "tests.system.spark.drivers.late", master, source.as_uri(), root, f"{root}-out", *what],
        env=clean_environment(),
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=3 * HANGS_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    expected = [[line, batch, 1] for batch in range(batches) for file in range(2) for line in lines(batch, file)]
    assert sorted(found["rows"]) == sorted(expected)
    return found


KINDS = pytest.mark.parametrize(("kind", "form"), [("Output", "parquet"), ("Output", "text"), ("ha", "text")])


@KINDS
def test_the_first_try_of_each_task_fails_after_its_rows(
    kind: str, form: str, job: str, hdfs_uri: str, tmp_path: Path
) -> None:
    found = drive("local[2,2]", tmp_path, f"{hdfs_uri}/{job}", 2, kind, form)
    assert not found["staged"]


def come_late(
    way: str, opened: str, batches: int, job: str, hdfs_uri: str, tmp_path: Path, kind: str, form: str
) -> dict[str, Any]:
    notes = tmp_path / "notes"
    notes.mkdir()
    try:
        with standalone(tmp_path, workers=WORKERS) as master:
            told = (kind, form, way, opened, str(notes))
            found = drive(master, tmp_path, f"{hdfs_uri}/{job}", batches, *told)
    finally:
        end_executors(notes)
    assert len(found["late"]) == batches
    assert found["swept"] == []
    return found


@pytest.mark.parametrize(
    ("kind", "form", "opened"),
    [
        ("Output", "parquet", "opened"),
        ("Output", "text", "not opened"),
        ("ha", "parquet", "opened"),
        ("ha", "text", "not opened"),
    ],
)
def test_an_executor_that_was_lost_ends_its_file_in_each_window(
    kind: str, form: str, opened: str, job: str, hdfs_uri: str, tmp_path: Path
) -> None:
    """A file that was open is sealed with its attempt, and deleted before the decision.

    One that is created later is in a folder of that attempt's old name. The next leader sweeps it away.
    """
    found = come_late("lost", opened, len(WINDOWS), job, hdfs_uri, tmp_path, kind, form)
    # Spark lets no late task of a Python data source commit, but by then it has ended its file.
    ended = "Finished" if kind == "Output" else "Exception in"
    assert found["late"][0] == ended, "it is one of the files that are sealed"
    if opened == "opened":
        assert found["staged"] == []
    else:
        assert found["late"] == [ended] * len(WINDOWS)
        assert len(found["staged"]) == len(WINDOWS) - 1, "the canary: they have come after the seal"


@pytest.mark.parametrize(
    ("kind", "form", "opened"),
    [
        ("Output", "parquet", "opened"),
        ("Output", "text", "not opened"),  # Spark sorts the rows by their partition before it opens a file
        ("ha", "text", "opened"),
    ],
)
def test_the_slower_one_of_two_tries_ends_after_the_batch_was_published(
    kind: str, form: str, opened: str, job: str, hdfs_uri: str, tmp_path: Path
) -> None:
    """Spark has told it to stop, which it hears when its executor goes on; it may have ended its file by then."""
    come_late("speculative", opened, 1, job, hdfs_uri, tmp_path, kind, form)
