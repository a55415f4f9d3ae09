"""A copy of the working tree, in which something is wrong, and the tests that are run there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
LIMIT_S = 300.0


def copied(folder: Path | str) -> Path:
    """Return the copy of the working tree that is made in a folder."""
    copy = Path(folder, "tree")
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", "build", "__pycache__", ".*_cache"))
    return copy


def run(tree: Path, *arguments: str, limit_s: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
    """Run pytest in a tree, on that tree's code; ``subprocess.TimeoutExpired`` after so many seconds."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": f"{tree}"}
    return subprocess.run(
        command, cwd=tree, capture_output=True, text=True, timeout=limit_s, check=False, env=environment
    )
