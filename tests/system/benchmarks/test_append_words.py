"""Tests of the baselines' driver, with a real Spark."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.baselines import appended_words
from ha.history.events import Completed, load
from store.clock import now
from store.open import open_files


@pytest.mark.spark
@pytest.mark.slow
def test_every_word_is_appended_and_the_driver_ends_when_told(tmp_path: Path) -> None:
    arrives = tmp_path / "in"
    arrives.mkdir()
    texts = {"1.txt": "It's a fox,\na FOX\n", "2.txt": "and a dog.", "3.txt": "\n", "_STOP": ""}
    for name, text in texts.items():
        (arrives / name).write_text(text)
    where = {"input": "in", "output": "out", "checkpoint": "checkpoint"}
    options = [part for name, folder in where.items() for part in (f"--{name}", f"file://{tmp_path / folder}")]
    told = {"HA_HISTORY": str(tmp_path / "history"), "HA_CONTENDER": "a", "HA_JOB": "job-1", "HA_EPOCH": "3"}
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.baselines.append_words", *options, "--max-files", "1", "--dwell", "0.2"],
        env={**os.environ, **told},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    with open_files(f"file://{tmp_path}") as files:
        assert appended_words.read_counts(files, "out") == {"it's": 1, "a": 3, "fox": 2, "and": 1, "dog": 1}
    done = [each for each in load(tmp_path / "history") if isinstance(each, Completed)]
    assert [(each.job, each.contender, each.epoch, each.batch) for each in done] == [
        ("job-1", "a", 3, batch) for batch in range(3)
    ]
    assert all(each.ended - each.at >= 0.2 for each in done)
    booted = time.time() - now()
    for each in done:  # Spark's own record of the batch was there first
        assert (tmp_path / "checkpoint" / "commits" / str(each.batch)).stat().st_mtime <= booted + each.ended
