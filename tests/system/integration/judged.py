"""Judging: checks the history of a test with the simulator's checker."""

import logging
import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from ha.history import edits
from ha.history.checker import check
from ha.history.events import Event, LookedUp, load
from ha.history.timeline import timeline
from ha.sandbox import Sandbox

log = logging.getLogger(__name__)


def judge(folder: Path, files: str, job: str, forged: Collection[str] = ()) -> list[Event]:
    """Complete the processes' history with the operations of HDFS, check it, and return it.

    Args:
        folder: of the history.
        files: URI of the directory that holds the jobs.
        job: the job's name.
        forged: session ids that the test made up; answers with them are known to be wrong.
    """
    folder.mkdir(exist_ok=True)
    if not files.startswith("file:"):
        sandbox = Sandbox(Path(os.environ["HADOOP_CONF_DIR"]).parent)
        edits.save(sandbox.edits(), files, job, folder)
    events = [each for each in load(folder) if not (isinstance(each, LookedUp) and each.session_id in forged)]
    kinds = Counter(type(each).__name__ for each in events)
    violations = check(events, tolerance=edits.TOLERANCE)
    log.info("The history of %s has %d events (%s), %d violations.", job, len(events), dict(kinds), len(violations))
    assert violations == [], "\n".join(["This history breaks a promise:", *timeline(events, violations)])
    return events
