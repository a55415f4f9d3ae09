"""A short run of every fuzzer, the same one each time: it shows that they run and that earlier findings stay fixed.

It needs atheris, which the lock file has for Linux on x86-64 and ``make install`` installs. Without atheris the tests
are skipped, and the summary says why.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.fuzz.__main__ import MISSING, NAMES

needs_atheris = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None,
    reason="NOT FUZZED: atheris is not installed (wheels: Linux, x86-64); `make install` or pip install 'atheris>=3'",
)

RUNS = {"names": 2_000, "records": 3_000, "configuration": 80, "remote": 60, "web": 400}
"""A few seconds each; ``python -m tests.system.fuzz all -max_total_time=60`` runs longer."""


def fuzz(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.system.fuzz", *arguments],
        cwd=Path(__file__).parents[3],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=200,
        check=False,
    )


@needs_atheris
@pytest.mark.parametrize("name", NAMES)
def test_no_input_breaks_a_property(name: str) -> None:
    ended = fuzz(name, f"-runs={RUNS[name]}", "-seed=1")
    assert ended.returncode == 0, ended.stderr[-5000:]
    done = re.search(r"^Done (\d+) runs", ended.stderr, re.MULTILINE)  # libFuzzer may finish a few more than asked
    assert done is not None
    assert int(done[1]) >= RUNS[name]


@needs_atheris
def test_a_broken_property_ends_it_with_the_input_in_a_form_to_paste(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "from tests.system.hostile.properties import names\n"
        "def broken(text):\n"
        "    assert 'lease~' not in text\n"
        "names.ALL = (broken,)\n"
    )
    ended = fuzz("names", "-runs=10", "-seed=1", PYTHONPATH=f"{tmp_path}{os.pathsep}.")
    assert ended.returncode != 0
    assert "TARGETS['names']().check(b'lease~" in ended.stderr


def test_without_atheris_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "atheris.py").write_text("raise ImportError('No module named atheris')\n")
    ended = fuzz("names", "-runs=1", PYTHONPATH=str(tmp_path))
    assert ended.returncode == MISSING
    assert "Nothing was fuzzed: No module named atheris" in ended.stderr


def test_a_target_that_there_is_not() -> None:
    assert fuzz("nothing").returncode == 2
