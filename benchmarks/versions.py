"""Versions: the packages of another commit, for programs that are measured beside those of this one."""

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("ha", "leader", "store", "pyspark_ha")
WITHIN_S = 120.0  # Git that takes longer hangs


def packages_of(commit: str, folder: Path) -> Path:
    """Take the packages of a commit out of the repository; return the folder with them."""
    # ValueError: there is no such commit here.
    target = folder / f"of-{commit}"
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit, *PACKAGES))) as packed:
        packed.extractall(target, filter="data")
    return target


def commit_of(name: str) -> str:
    """Return the short id of a commit, by whatever names it: a branch, a tag, ``HEAD~3``."""
    # ValueError: there is no such commit here.
    return _git("rev-parse", "--short", "--verify", "--end-of-options", f"{name}^{{commit}}").decode().strip()


def with_packages(packages: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a program with these packages and this commit's benchmarks, and of what it starts."""
    # Python puts the working directory, or that of a script, before this path unless it is told not to.
    return {**environment, "PYTHONPATH": os.pathsep.join((f"{packages}", f"{ROOT}")), "PYTHONSAFEPATH": "1"}


def _git(*arguments: str) -> bytes:
    command = ["git", "-C", f"{ROOT}", *arguments]
    ran = subprocess.run(command, capture_output=True, check=False, timeout=WITHIN_S)
    if ran.returncode:
        said = ran.stderr.decode().strip() or "it is not known"
        raise ValueError(f"Git does not find what to measure against: {said}. Give a commit of this repository.")
    return ran.stdout
