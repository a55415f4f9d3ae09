"""HDFS's edit log: what its NameNodes have executed, in that order, as Hadoop's own tool prints it."""

import re
import tempfile
from pathlib import Path

from ha.sandbox.errors import SandboxError
from ha.sandbox.hadoop_conf import NAMESERVICE, name_directory
from ha.sandbox.launcher import Launcher
from ha.sandbox.program import Program
from ha.sandbox.state import State

_VIEWER = "org.apache.hadoop.hdfs.tools.offlineEditsViewer.OfflineEditsViewer"
_SEGMENT = re.compile(r"edits_(?:inprogress_)?([0-9]+)(-[0-9]+)?")
_TRIES = 3
"""A NameNode may be in the middle of a write to the segment that is being read."""


def read(state: State, data: Path, launcher: Launcher) -> list[str]:
    """Return the edit log as XML, one document for each segment, oldest first.

    Whatever a client was told to be done is in it: a NameNode answers after it has written.

    Raises:
        SandboxError: there is none, or it cannot be read.
    """
    found = segments(state, data)
    if not found:
        raise SandboxError(f"There is no edit log in {data}: ha sandbox up makes one.")
    return [_print(segment, launcher) for segment in found]


def segments(state: State, data: Path) -> list[Path]:
    """Return the files of the edit log, oldest first: each transaction is in one of them.

    Of two NameNodes only their common journal counts. Of the copies that its servers hold, a finished one is better
    than one in progress: that may have been left behind by a NameNode or a server which died.
    """
    folders = [data / server.name / "edits" / NAMESERVICE / "current" for server in state.of("journalnode")] or [
        name_directory(server, data) / "current" for server in state.of("namenode")
    ]
    best: dict[int, tuple[bool, int, Path]] = {}
    for path in (path for folder in folders for path in folder.glob("edits_*")):
        if match := _SEGMENT.fullmatch(path.name):
            candidate = (match[2] is not None, path.stat().st_mtime_ns, path)
            best[int(match[1])] = max(best.get(int(match[1]), candidate), candidate)
    return [path for _, (_, _, path) in sorted(best.items())]


def _print(segment: Path, launcher: Launcher) -> str:
    with tempfile.TemporaryDirectory(prefix="ha-edits-") as folder:
        target = Path(folder, "edits.xml")
        tool = Program(_VIEWER, ("-i", str(segment), "-o", str(target), "-p", "xml"))
        for tries_left in reversed(range(_TRIES)):
            try:
                launcher.run("edits", tool)
                return target.read_text(encoding="utf-8")
            except SandboxError:
                if not tries_left:
                    raise
            except OSError as error:
                raise SandboxError(f"What {segment} holds cannot be read: {error}.") from error
    raise AssertionError("the last try returns or raises")
