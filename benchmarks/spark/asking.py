"""PySpark program whose tasks ask for the leader, all at the same time, until they are stopped.

Run as ``python -m benchmarks.spark.asking FOLDER WORKERS SECONDS``. Each Python worker reports what it has seen when
the folder has a file ``stop``, or the time is over. Environment variables name the job and its stores.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.spark.session import session

PAUSE = 0.05  # Seconds between two calls of a worker: 200 workers must leave two cores some room
MOST_ERRORS = 20  # Errors of one worker that it reports in full


def asking(number: int, folder: str, seconds: float) -> dict[str, Any]:
    """Ask, and return when each epoch was first seen, and what went wrong."""
    import os  # noqa: PLC0415  # this runs in a Python worker
    import time  # noqa: PLC0415

    import ha.spark.worker  # noqa: PLC0415
    from store.clock import now  # noqa: PLC0415

    seen: dict[int, tuple[float, str]] = {}
    errors: list[str] = []
    calls = failed = 0
    back = slowest = 0.0
    stop, end, newest = Path(folder, "stop"), now() + seconds, 0
    while not stop.exists() and now() < end:
        began = now()
        calls += 1
        try:
            master = ha.spark.worker.job_master()
        except Exception as error:  # noqa: BLE001  # every kind counts
            failed += 1
            errors = [*errors, repr(error)][:MOST_ERRORS]
        else:
            at = now()
            slowest = max(slowest, at - began)
            back += master.epoch < newest
            newest = max(newest, master.epoch)
            if master.epoch not in seen:
                seen[master.epoch] = at, master.address
            if calls == 1 + failed:  # the first answer
                Path(folder, f"ready-{number}").touch()
        time.sleep(PAUSE)
    return {
        "pid": os.getpid(),
        "calls": calls,
        "failed": failed,
        "errors": errors,
        "back": back,
        "slowest": slowest,
        "seen": seen,
    }


def main(folder: str, workers: int, seconds: float) -> None:
    """Let this many workers ask, and write their reports to ``said.json``."""
    spark = session(f"local[{workers}]", {"spark.driver.memory": "1g"})

    def each(numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
        for number in numbers:
            yield asking(number, folder, seconds)

    said = spark.sparkContext.parallelize(range(workers), workers).mapPartitions(each).collect()
    Path(folder, "said.json.part").write_text(json.dumps(said), encoding="utf-8")
    Path(folder, "said.json.part").rename(Path(folder, "said.json"))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
