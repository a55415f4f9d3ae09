"""The JVM of a session: when it has ended, Python may not notice for 20 s and more, and leads on with dead queries."""

import os
import select
import threading
from collections.abc import Callable
from typing import Self

from pyspark.sql import SparkSession

from leader.errors import InvalidSettings


class Jvm:
    """Waits for the end of a session's JVM; nothing is asked in between, the kernel tells."""

    def __init__(self, spark: SparkSession, ended: Callable[[], object]) -> None:
        """Start to wait.

        Args:
            spark: the session.
            ended: called once, on a thread of its own, when the JVM has ended; not after :meth:`close` has begun.

        Raises:
            InvalidSettings: the session has no JVM on this host, or it has ended already.
        """
        try:
            self.pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # noqa: SLF001
            self._process = os.pidfd_open(self.pid)
        except Exception as error:
            raise InvalidSettings(
                "The Spark session has no JVM of its own on this host, or that has ended: leadership follows it, so "
                "build a classic session here, not one of Spark Connect."
            ) from error
        self._closing = os.eventfd(0)
        self._ended = ended
        self._thread = threading.Thread(target=self._wait, name="ha-jvm", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the JVM has not ended."""
        return not select.select([self._process], [], [], 0)[0]

    def close(self) -> None:
        """Wait no more. Only the descriptors of a thread that has ended are closed: it may be calling ``ended``."""
        os.eventfd_write(self._closing, 1)
        self._thread.join(1.0)
        if not self._thread.is_alive():
            for descriptor in (self._process, self._closing):
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait(self) -> None:
        ready = select.select([self._process, self._closing], [], [])[0]
        if self._closing not in ready:
            self._ended()
