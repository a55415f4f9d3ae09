"""A job's program that leaves something of every kind and has ended for good; it may die while it cleans up.

ends.py DIES_BEFORE     kills its sidecar, and so itself, before that many renames of the cleaning; 0: cleans nothing
"""

import os
import signal
import sys
from pathlib import Path

import ha
from ha.leadership import Leadership
from leader.own import OwnDirectory
from leader.status import Status


def leave(leadership: Leadership) -> None:
    leadership.graph.put(b"graph", expected=0)
    leadership.blobs.put("model", b"blob", expected=0)
    leadership.results.put("run-1", Status.FINISHED, b"done")
    leadership.status.change(Status.RUNNING, Status.FINISHED)


def die_before(renames: int) -> None:
    """Have the sidecar killed in the middle of the cleaning that begins now."""
    settle, done = OwnDirectory.settle, []

    def dies(own: OwnDirectory, source: str, entry: str, sequence: int = 1) -> str:
        done.append(entry)
        if len(done) == renames:
            guard = os.getppid()
            os.kill(int(Path(f"/proc/{guard}/stat").read_text().rpartition(")")[2].split()[1]), signal.SIGKILL)
            signal.pause()  # the guard kills this, too
        return settle(own, source, entry, sequence)

    OwnDirectory.settle = dies  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    with ha.lead(os.environ["HA_JOB"]) as led:
        leave(led)
        if renames := int(sys.argv[1]):
            die_before(renames)
            led.cleanup.clean()
