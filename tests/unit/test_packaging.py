"""Packaging: two builds of the same source are the same bytes, and hold what a program needs."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("ha", "leader", "store", "examples", "pyproject.toml", "README.md", "LICENSE")
DAY = "1767225600"

pytestmark = pytest.mark.programs


def build(folder: Path) -> dict[str, str]:
    """Copy the source, as another clone has it, and build it; returns the checksum of each file."""
    source = folder / "source"
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        source.mkdir(parents=True, exist_ok=True)
        copy(ROOT / part, source / part)
    known = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder / "dist")]
    subprocess.run(
        command, cwd=source, env={**known, "SOURCE_DATE_EPOCH": DAY}, check=True, capture_output=True, timeout=100
    )
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in (folder / "dist").iterdir()}


def test_two_clones_build_the_same_wheel_and_the_same_source_archive(tmp_path: Path) -> None:
    first, second = build(tmp_path / "first"), build(tmp_path / "second")
    assert sorted(each.rpartition(".")[2] for each in first) == ["gz", "whl"]
    assert first == second
    (wheel,) = (tmp_path / "first" / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"ha/py.typed", "ha/cli/__main__.py", "ha/drill/word_count.py", "leader/timing.py"} <= set(names)
    assert {name.partition("/")[0] for name in names} == {"ha", "leader", "store", "hybrid_ha-0.1.0.dist-info"}
    assert not [name for name in names if "__pycache__" in name]
    (source,) = (tmp_path / "first" / "dist").glob("*.tar.gz")
    with tarfile.open(source) as archive:
        assert "hybrid_ha-0.1.0/pyproject.toml" in archive.getnames()
