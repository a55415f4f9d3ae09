"""Archives of classes as a JVM wants them in memory: where they are in the cache, and how many are kept."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from ha.hosts.cache import cache_directory

CLASSES = "classes"  # begin of the names of archives for the sandbox's servers; other programs have other names
_KEPT_ARCHIVES = 4  # archives in the cache: other versions of Java and other installations of PySpark have their own


def archive_path(java_version: str, jars: Iterable[Path], name: str = CLASSES) -> Path:
    """Return where the archive for this Java and these jars is, or would be. OSError: a jar is gone."""
    marks = [java_version]
    for jar in jars:
        there = jar.stat()  # the JVM compares the same facts
        marks.append(f"{jar} {there.st_size} {there.st_mtime_ns}")
    return cache_directory() / f"{name}-{hashlib.sha256(chr(10).join(marks).encode()).hexdigest()[:12]}.jsa"


def forget_old(folder: Path, name: str = CLASSES) -> None:
    """Delete the oldest archives of a kind, all but a few."""
    archives = sorted(folder.glob(f"{name}-*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in archives[_KEPT_ARCHIVES:]:
        for path in (old, old.with_name(f"{old.name}.sha256"), old.with_name(f"{old.name}.lock")):
            path.unlink(missing_ok=True)
