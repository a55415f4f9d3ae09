"""Test command of participants: again and again it writes a line with its results to a local file.

``worker.py FILE`` only shows that it runs. ``worker.py FILE writes`` also takes a checkpoint id and makes a directory
below the leader directory each time, without ever checking whether it still leads.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import TextIO

import ha
from ha.errors import LeaderError, StoreError
from store.clock import now
from store.open import open_files

BEAT_S = 0.05


def tried(operation: Callable[[], object]) -> object:
    try:
        return operation()
    except (LeaderError, StoreError) as error:
        return type(error).__name__


def beat(out: TextIO, **more: object) -> None:
    out.write(json.dumps({"epoch": int(os.environ["HA_EPOCH"]), "at": now(), "pid": os.getpid(), **more}) + "\n")


def write(out: TextIO) -> None:
    files = open_files(os.environ["HA_FILES"])
    folder = "/".join(os.environ["HA_LEADER_DIRECTORY"].split("/")[-2:])
    number = 0

    def make() -> str:
        files.call("write", lambda driver: driver.make_directory(f"{folder}/spark/write-{number}"), 1.0)
        return "done"

    with ha.lead(os.environ["HA_JOB"]) as leadership:
        while True:
            number += 1
            beat(out, id=tried(leadership.checkpoints.next), write=tried(make))
            threading.Event().wait(BEAT_S)


def main() -> None:
    with open(sys.argv[1], "a", buffering=1, encoding="ascii") as out:  # noqa: PTH123  # one line, one write
        if sys.argv[2:] == ["writes"]:
            write(out)
        while True:
            beat(out)
            threading.Event().wait(BEAT_S)


if __name__ == "__main__":
    main()
