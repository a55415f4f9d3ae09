"""Test program: a job that leaves leftovers of every kind and ends for good. It may die during the cleanup.

ends.py DIES_BEFORE     kills its sidecar, and so itself, before that many renames of the cleaning; 0: cleans nothing
"""

import os
import signal
import sys
from pathlib import Path

import ha
from ha.leadership.leadership import Leadership
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import Status


def leave(leadership: Leadership) -> None:
    leadership.graph.put(b"graph", expected=0)
    leadership.blobs.put("model", b"blob", expected=0)
    leadership.results.put("run-1", Status.FINISHED, b"done")
    leadership.status.change(Status.RUNNING, Status.FINISHED)


def die_before(renames: int) -> None:
    """Let the sidecar be killed in the middle of the cleanup that begins now."""
    settle, done = FencedDirectory.commit, []

    def dies(own: FencedDirectory, source: str, entry: str, sequence: int = 1) -> str:
        done.append(entry)
        if len(done) == renames:
            guard = os.getppid()
            os.kill(int(Path(f"/proc/{guard}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
            signal.pause()  # the guard also kills this process
        return settle(own, source, entry, sequence)

    FencedDirectory.commit = dies  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    with ha.lead(os.environ["HA_JOB"]) as led:
        leave(led)
        if renames := int(sys.argv[1]):
            die_before(renames)
            led.cleanup.clean()
