"""Spark's events, as cheap as they can be had.

PySpark makes Python objects of an event by some eighty calls into the JVM, which takes 15 ms of a core and up to ten
times that on the clock, for every batch. Here it is two calls: the event's own JSON is read. For that the JVM is given
this listener itself and not PySpark's, so it stands on two names of PySpark that are not public; the tests with a real
Spark fail if these change.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from pyspark import SparkContext
from pyspark.sql.streaming.listener import StreamingQueryListener

from ha.spark import progress
from ha.spark.progress import Progress


class QueryListener(StreamingQueryListener):
    """Its methods are given the JVM's events. Spark's bus waits for them, so whoever is told must return at once."""

    def __init__(self, started: Callable[[str | None], None], progressed: Callable[[Progress], None]) -> None:
        """Hear nothing yet: give it to ``spark.streams.addListener``.

        Args:
            started: told the name of each query that starts.
            progressed: told of each batch that is complete, or of none if there was nothing to do.
        """
        self._started = started
        self._progressed = progressed
        self._java: Any = None

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """A query starts."""
        self._started(event.name())

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch is in the commit log."""
        self._progressed(progress.read(event.progress().json()))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing was completed."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Its last batch was announced already."""

    @property
    def _jlistener(self) -> Any:
        if self._java is None:
            jvm: Any = SparkContext._jvm  # noqa: SLF001  # see above
            self._java = jvm.PythonStreamingQueryListenerWrapper(self)
        return self._java

    class Java:
        """What py4j makes of it."""

        implements: ClassVar[list[str]] = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]
