"""Room in the directories of an output: HDFS limits the entries of each, and each batch is one."""

import logging
import posixpath
from collections.abc import Iterable
from contextlib import suppress

from ha.leadership.fenced_rename import FencedRename
from ha.outputs import layout
from ha.program.output_report import REPORTS
from store.errors import StoreError
from store.hadoop_errors import configuration

LIMIT, USUAL = "dfs.namenode.fs-limits.max-directory-items", 1_048_576

SHARE = 0.8  # the directory is nearly full from here on

_log = logging.getLogger("ha")


def look(renames: FencedRename, name: str, batch: int, partitions: Iterable[str]) -> None:
    """Count the entries of the directories in which a batch has appeared, if they can be so many, by its id."""
    try:
        most = int(configuration().get(LIMIT, USUAL))
    except ValueError:
        most = USUAL
    if batch < SHARE * most:
        return
    fullest = 0
    for partition in partitions:
        folder = posixpath.join(renames.outside, partition).rstrip("/")
        with suppress(StoreError):  # the next thousand tries again
            entries = len(renames.list(folder))
            fullest = max(fullest, entries)
            if entries >= SHARE * most:
                _log.warning(
                    "Output %s: /%s has %s entries, and HDFS allows %s in a directory: merge its files or move old "
                    "ones away, or raise %s on the NameNodes. Once it is full, no batch is published there.",
                    name, folder, f"{entries:,}", f"{most:,}", LIMIT,
                )  # fmt: skip
    REPORTS.set(name, fullness=fullest / most)


def make_room(renames: FencedRename, folder: str) -> None:
    """Keep an entry of a folder for a merge: once the folder is full, it takes no other."""
    with suppress(StoreError):  # the next process of the job tries again, and so does the next merge
        renames.do(lambda files: files.write(f"{folder}/{layout.ROOM}", b""))
