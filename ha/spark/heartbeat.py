"""Heartbeat, the driver's end: tells the sidecar that Python runs and that the JVM answers.

A listener of Spark sees neither a Python nor a JVM that is frozen. So a thread has the JVM answer a call, then replaces
the file that the sidecar watches (:mod:`ha.sidecar.heartbeat`). If either does not answer, the file stays as it is.
"""

import faulthandler
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

import msgspec

LONGEST_INTERVAL_S = 10.0
"""Between two beats: Flink's ``heartbeat.interval``."""

BEATS = 5
"""Beats that a time-out has room for, so that one late beat does no harm."""


class Heartbeat:
    """Beats while its block lasts."""

    def __init__(self, path: Path, timeout: float, jvm: int, answer: Callable[[], object]) -> None:
        """Prepare.

        Args:
            path: of the file that the sidecar watches.
            timeout: the sidecar's, in seconds.
            jvm: process id of the JVM.
            answer: returns once the JVM has answered, or raises if there is no JVM.
        """
        self._path = path
        self._interval = min(LONGEST_INTERVAL_S, timeout / BEATS)
        self._jvm = jvm
        self._answer = answer
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._beat, name="ha-heartbeat", daemon=True)

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGUSR2) == signal.SIG_DFL:
            self._stacks = Path(f"{self._path}.python").open("wb")  # open as long as the process
            faulthandler.register(signal.SIGUSR2, file=self._stacks, all_threads=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closing.set()
            self._path.unlink(missing_ok=True)  # what follows the block is not watched

    def _beat(self) -> None:
        count = 0
        staged = Path(f"{self._path}.staged")
        while not self._closing.is_set():
            with suppress(Exception):  # py4j's: a JVM that refuses the call has not answered
                self._answer()
                count += 1
                with self._lock:
                    if not self._closing.is_set():
                        staged.write_bytes(
                            msgspec.json.encode({"count": count, "python": os.getpid(), "jvm": self._jvm})
                        )
                        staged.replace(self._path)
            self._closing.wait(self._interval)
