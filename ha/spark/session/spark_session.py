"""The Spark session of a driver: its settings, its errors when fenced, and the end of its queries and its JVM."""

import logging
import os
import select
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

from ha.hosts.held_process import ending_of
from ha.leadership.leadership import Leadership
from ha.spark.session.private_names import check_version, jvm_of, newer_queries, running_queries, scratch_directories
from leader.errors import InvalidSettings, NotLeader
from store.errors import StoreError

_DEEPEST = 20  # causes of an error that are looked at, because a chain of causes may be a ring

_log = logging.getLogger("ha")


class Jvm:
    """Waits for the end of a session's JVM, by the kernel and without polling.

    Without it, Python may not notice the end for 20 s and more, and keeps leading with dead queries.
    """

    def __init__(self, spark: SparkSession, ended: Callable[[], object]) -> None:
        """Start to wait; ``ended`` is called once, on a thread of its own; not after :meth:`close` has begun."""
        # Raises `InvalidSettings` if the session has no JVM on this host, or it has ended.
        check_version()
        try:
            self._java = jvm_of(spark).java
            self.pid = int(self._java.lang.ProcessHandle.current().pid())
            self._process = ending_of(self.pid)
        except InvalidSettings:
            raise
        except Exception as error:
            raise InvalidSettings(
                "The Spark session has no JVM of its own on this host, or its JVM has ended. Leadership ends with the "
                "JVM, so build a classic session here, not one of Spark Connect."
            ) from error
        self._closing = os.eventfd(0)
        self._ended = ended
        self._thread = threading.Thread(target=self._wait, name="ha-jvm", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether the JVM still runs."""
        return not select.select([self._process], [], [], 0)[0]

    def answer(self) -> None:
        """Return once the JVM has answered a call; raises py4j's error if it has ended."""
        self._java.lang.System.nanoTime()

    def close(self) -> None:
        """Stop waiting. The descriptors stay open if the thread still runs, which may be calling ``ended``."""
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


@contextmanager
def scratch_kept(spark: SparkSession) -> Iterator[None]:
    """Make the JVM's scratch directories again, after the block, if they are gone: it may wait for months in it."""
    # Hosts remove temporary files that nobody has used for days, and Spark makes these at its start alone.
    directories = scratch_directories(spark)
    yield
    try:
        for each in directories:
            Path(each).mkdir(0o700, parents=True, exist_ok=True)
    except OSError as error:
        _log.warning("The directories in which Spark writes are gone, and cannot be made again: %s", error)


@contextmanager
def configured(spark: SparkSession, chosen: Mapping[str, str]) -> Iterator[None]:
    """Set these settings of a session, and restore the former ones at the end of the block."""
    before = {name: spark.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        try:
            for name, old in before.items():
                spark.conf.unset(name) if old is None else spark.conf.set(name, old)
        except Exception as error:  # noqa: BLE001  # py4j's, if the JVM is gone, and the settings with it
            _log.debug("The session's settings stay: %s", error)


def stop_queries(spark: SparkSession, seconds: float) -> bool:
    """Stop all queries of a JVM at once, within a limited time; returns whether all have stopped."""
    # Those of other sessions of it as well: they run under the same leadership.
    # `query.stop()` itself waits for a batch, and for ever if the batch hangs. A query that has not stopped in time may
    # still do so. The store refuses what it writes below a leader directory once another process leads.
    stopping = threading.Thread(target=_stop_all, args=(spark,), name="ha-stop", daemon=True)
    stopping.start()
    stopping.join(seconds)
    return not stopping.is_alive()


def explain(error: BaseException, leadership: Leadership) -> NotLeader | None:
    """Translate an error of a fenced driver: Spark says that a path does not exist, this says which leader took it.

    Args:
        error: raised by a query, by Spark, or by a function of ``foreachBatch``.
        leadership: under which it ran.

    Returns:
        If the error is about the leader directory, the error to raise from it: ``Fenced``, with the present leader and
        epoch, or ``NotLeader`` if no store says who leads. Else None: it has another cause than the fence.
    """
    if not any(_about(text, leadership) for text in _texts(error)):
        return None
    try:
        return leadership.fenced_by()
    except StoreError as unknown:
        return NotLeader(
            f"Epoch {leadership.epoch} of job {leadership.job!r} may have been fenced, and HDFS does not say by whom: "
            f"{unknown}"
        )


def _stop_all(spark: SparkSession) -> None:
    try:
        queries = [*running_queries(spark).values(), *newer_queries(spark)]
        stopping = [threading.Thread(target=_stop, args=(each,), daemon=True) for each in queries]
    except Exception as error:  # noqa: BLE001  # py4j's, if the JVM is gone, and the queries with it
        _log.debug("There are no queries to stop: %s", error)
        return
    for each in stopping:
        each.start()
    for each in stopping:
        each.join()


def _stop(query: Any) -> None:
    try:
        query.stop()
    except Exception as error:  # noqa: BLE001  # as above
        _log.debug("A query could not be stopped: %s", error)


def _about(text: str, leadership: Leadership) -> bool:
    return leadership.directory.rpartition("/")[2] in text or "leader.errors.Fenced" in text


def _texts(error: BaseException) -> Iterator[str]:
    """Yield the texts of an error and its causes, including those that Spark adds."""
    here: BaseException | None = error
    for _ in range(_DEEPEST):
        if here is None:
            return
        yield f"{type(here).__module__}.{type(here).__name__}"
        try:
            yield str(here)
            yield str(getattr(here, "desc", ""))
            yield str(getattr(here, "stackTrace", ""))
        except Exception:  # noqa: BLE001  # py4j asks the JVM for the text, and the JVM may be gone
            return
        here = here.__cause__ or here.__context__
