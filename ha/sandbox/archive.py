"""A class data archive: classes as the JVM wants them in memory, so that a server starts in half the time.

The first ``up`` notes which classes its servers load, and makes the archive from that. A JVM that finds the archive
unsuitable ignores it, but one that is cut short would crash it: the cache's checksum rules that out.
"""

import hashlib
import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from ha.sandbox.cache import cache_directory, cached, intact
from ha.sandbox.errors import SandboxError

DUMP_TIMEOUT_S = 120
_KEPT = 4
"""Archives in the cache: other versions of Java and other installations of PySpark have their own."""


def archive_path(java_version: str, jars: Iterable[Path]) -> Path:
    """Return where the archive for this Java and these jars is, or would be."""
    marks = [java_version]
    for jar in jars:
        there = jar.stat()  # the JVM compares the same facts
        marks.append(f"{jar} {there.st_size} {there.st_mtime_ns}")
    return cache_directory() / f"classes-{hashlib.sha256(chr(10).join(marks).encode()).hexdigest()[:12]}.jsa"


def usable(archive: Path) -> bool:
    """Return whether the archive is there and undamaged."""
    return intact(archive)


def make(
    archive: Path,
    java: Path,
    flags: Iterable[str],
    jars: Iterable[Path],
    *,
    lists: Iterable[Path],
    progress: Callable[[str], None],
) -> None:
    """Make the archive from lists of classes that servers wrote; does nothing if it is there by now.

    Raises:
        SandboxError: Java failed, or the cache cannot be used.
    """
    names = {line for path in lists for line in path.read_text(encoding="utf-8").splitlines(keepends=True)}
    whole = sorted(line for line in names if line.endswith("\n"))  # a server may be in the middle of a line

    def dump(folder: Path) -> None:
        progress("Preparing faster starts (once)")
        classes = folder / "classes.txt"
        classes.write_text("".join(whole), encoding="utf-8")
        command = [
            *(str(java), *flags, "-Xmx512m", "-Xshare:dump"),
            *(f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={folder / archive.name}"),
            *("-cp", os.pathsep.join(map(str, jars))),
        ]
        try:
            ended = subprocess.run(command, capture_output=True, timeout=DUMP_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise SandboxError(f"Making {archive.name} took more than {DUMP_TIMEOUT_S} seconds.") from error
        if ended.returncode != 0:
            raise SandboxError(f"Java made no class data archive (exit code {ended.returncode}).")

    cached(archive, dump)
    _forget_old(archive.parent)


def _forget_old(folder: Path) -> None:
    archives = sorted(folder.glob("classes-*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in archives[_KEPT:]:
        for path in (old, old.with_name(f"{old.name}.sha256"), old.with_name(f"{old.name}.lock")):
            path.unlink(missing_ok=True)
