"""Results of the last runs, in a file beside this one: the page is made from it, without a run."""

import fcntl
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import msgspec

from tests.system.zoo.judge import Found

FILE = Path(__file__).with_name("results.json")
ROOT = Path(__file__).parents[3]
Results = dict[str, dict[str, Found]]
"""By program; then `guarded` and `bare`."""


def read(file: Path = FILE) -> Results:
    return msgspec.json.decode(file.read_bytes(), type=Results) if file.exists() else {}


def made_by() -> dict[str, str]:
    """Return what the results of a run are made by: the last commit of the product or the programs, and versions."""
    parts = ["ha", "leader", "store", "pyspark_ha", "tests/system/zoo/programs"]

    def git(*words: str) -> str:
        return subprocess.check_output(["git", *words, "--", *parts], cwd=ROOT, text=True, timeout=120).strip()  # noqa: S607

    assert not git("status", "--porcelain"), "commit first: a result says of which commit it is"
    return {"commit": git("log", "-1", "--format=%h"), "spark": version("pyspark"), "python": platform.python_version()}


def record(name: str, found: Found, *, guarded: bool, file: Path = FILE) -> None:
    """Note what one run has shown; two processes may do it at once."""
    lock = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = read(file)
        known.setdefault(name, {})["guarded" if guarded else "bare"] = found
        file.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(known.items()))), indent=1) + b"\n")
    finally:
        os.close(lock)


def has(name: str, made_by: dict[str, str], *, guarded: bool, kills: int, file: Path = FILE) -> bool:
    """Return whether a program has run by this commit, with so many kills, and its verdict is known."""
    found = read(file).get(name, {}).get("guarded" if guarded else "bare")
    return found is not None and found.made_by == made_by and found.asked >= kills and found.verdict != "late"


def shown(found: Found) -> str:
    counted = {"lost": found.lost, "doubled": found.doubled, "wrong": found.wrong}
    rows = ", ".join(f"{count} {what}" for what, count in counted.items() if count)
    ended = ", ended with 0" if found.finished else ""
    return f"{found.verdict}: {rows or 'each row once'} of {found.rows}, {found.kills} kills{ended} {found.said}"
