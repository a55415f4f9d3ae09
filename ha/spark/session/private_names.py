"""The private names of PySpark on which this package relies: all of them, and a sentence for a version that lacks one.

Versions 3.5 to 4.3 have them: see ``docs/versions.md``. A test compares this list with the rest of the package.
"""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import pyspark
from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from leader.errors import InvalidSettings

OLDEST, NEWEST = (3, 5), (4, 3)  # the oldest version that works, and the newest one that was tested

WITHOUT_DISTUTILS = (4, 0)
"""The oldest version whose functions with pandas need no ``distutils``, which left Python with 3.12."""

MOST_CAUSES = 20

_log = logging.getLogger("ha")


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in f"{version}.0".split(".")[:2])


def check_version(version: str = pyspark.__version__) -> None:
    """Refuse a PySpark that is too old, and warn of one that lacks a package."""
    # No extra can ask for that package: an extra does not see which version of PySpark is chosen.
    if (numbers := numbers_of(version)) < OLDEST:
        raise InvalidSettings(
            f"PySpark {version} is too old: install {'.'.join(map(str, OLDEST))} or newer, "
            "which tells its listeners that a query is idle."
        )
    if numbers < WITHOUT_DISTUTILS and find_spec("distutils") is None:
        _log.warning(
            "PySpark %s on Python %d.%d cannot use pandas without the package setuptools: install it, for workers too.",
            version, *sys.version_info[:2],
        )  # fmt: skip


def jvm_of(spark: object) -> Any:
    """Return py4j's view of the session's JVM; None for a session of Spark Connect, which has none."""
    return _named(spark, "_jvm") if isinstance(spark, SparkSession) else None


def java_session(spark: SparkSession) -> Any:
    """Return the JVM's session."""
    return _named(spark, "_jsparkSession")


def java_failures(error: BaseException) -> list[str]:
    """Return the names of the JVM's classes of an error and of what has caused it, without their packages."""
    found: list[str] = []
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while thrown is not None and len(found) < MOST_CAUSES:
        found.append(str(thrown.getClass().getSimpleName()))
        thrown = thrown.getCause()
    return found


def java_listener(listener: Any) -> Any:
    """Return the JVM's wrapper of an object with the methods of its ``PythonStreamingQueryListener``."""
    return _named(SparkContext, "_jvm").PythonStreamingQueryListenerWrapper(listener)


def scratch_directories(spark: SparkSession) -> list[str]:
    """Return the directories that Spark makes at its start alone, and in which it writes later; none if not known."""
    # `core/.../storage/DiskBlockManager.scala`. The objects are asked for fields: py4j cannot call their methods, which
    # name classes of protobuf that Spark's packages lack, and each failed call ends py4j's connection.
    try:
        environment = _field(spark, "SparkContext", "_env", _named(spark.sparkContext, "_jsc").sc())
        manager = _field(spark, "SparkEnv", "blockManager", environment)
        disk = _field(spark, "storage.BlockManager", "diskBlockManager", manager)
        blocks = [str(each.getPath()) for each in _field(spark, "storage.DiskBlockManager", "localDirs", disk)]
        below = range(int(spark.sparkContext.getConf().get("spark.diskStore.subDirectories", "64") or 64))
    except (AttributeError, Py4JError) as error:  # the context was stopped, or the JVM has ended: the caller finds out
        _log.debug("Spark does not say where it keeps its blocks: %s", error)
        return []
    return [*(f"{each}/{number:02x}" for each in blocks for number in below), _named(spark.sparkContext, "_temp_dir")]


def _field(spark: SparkSession, kind: str, name: str, owner: Any) -> Any:
    field = jvm_of(spark).java.lang.Class.forName(f"org.apache.spark.{kind}").getDeclaredField(name)
    field.setAccessible(True)
    return field.get(owner)


def activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread, in which Spark looks for formats that are written in Python."""
    # Only the thread that has built the session has it already.
    jvm_of(spark).SparkSession.setActiveSession(_named(spark, "_jsparkSession"))


def contexts_from(create: Callable[[Any, Any], Any]) -> None:
    """Have each new context be made by a function of py4j's view of the JVM and Spark's configuration."""
    _named(SparkContext, "_initialize_context")

    def initialize(self: SparkContext, jconf: Any) -> Any:
        return create(_named(self, "_jvm"), jconf)

    SparkContext._initialize_context = initialize  # type: ignore[method-assign]  # noqa: SLF001


def python_listeners(streams: Any) -> list[Any]:
    """Return the listeners of the JVM's ``StreamingQueryManager`` that call Python."""
    listed = streams.listListeners()
    return [each for each in listed if each.getClass().getName().endswith("PythonStreamingQueryListenerWrapper")]


def python_batches(session: Any) -> list[Any]:
    """Return the running queries of all the JVM's sessions that call Python for each batch: ``foreachBatch``."""
    running = list(session.sharedState().activeStreamingQueries().values())
    return [each for each in running if each.sink().getClass().getName().endswith("ForeachBatchSink")]


def running_queries(spark: SparkSession) -> dict[str, Any]:
    """Return the JVM's running queries of all sessions, by their ids."""
    return _running(_named(spark, "_jsparkSession"))


def batch_of(query: Any) -> int:
    """Return the number of the batch that a running query of the JVM does now; -1 before its first one."""
    execution = query.lastExecution()
    return -1 if execution is None else int(execution.currentBatchId())


def offsets_in_memory(spark: SparkSession, query: Any, number: int) -> bytes | None:
    """Return what a running query of the JVM has written to ``offsets/N`` of a batch; None if that is not known."""
    # Spark keeps the newest two batches of the log, unless spark.sql.streaming.metadataCache.enabled is false.
    if (jvm := jvm_of(spark)) is None:
        return None
    try:
        log, out = query.offsetLog(), jvm.java.io.ByteArrayOutputStream()
        log.serialize(log.get(number).get(), out)
        return bytes(out.toByteArray())
    except Py4JError:
        return None


def newer_queries(spark: SparkSession) -> list[Any]:
    """Return the running queries of the context that the program has built after it has stopped this session's."""
    newest = jvm_of(spark).SparkSession.getDefaultSession()
    return list(_running(newest.get()).values()) if newest.isDefined() else []


def _running(session: Any) -> dict[str, Any]:
    return {str(each.id()): each for each in list(session.sharedState().activeStreamingQueries().values())}


def file_format(spark: SparkSession, source: str) -> Any:
    """Return the JVM's ``FileFormat`` of this name; raises ``InvalidSettings`` if Spark has none for files."""
    jvm = jvm_of(spark)
    execution = jvm.org.apache.spark.sql.execution.datasources
    try:
        kind = execution.DataSource.lookupDataSource(source, _named(spark, "_jsparkSession").sessionState().conf())
        made = _made(jvm, kind)
        if jvm.java.lang.Class.forName(f"{_DATA_SOURCES}.v2.FileDataSourceV2").isInstance(made):
            made = _made(jvm, made.fallbackFileFormat())
    except Py4JJavaError as error:
        raise InvalidSettings(f"Spark has no format {source!r}: {error.java_exception}") from error
    if not jvm.java.lang.Class.forName(f"{_DATA_SOURCES}.FileFormat").isInstance(made):
        raise InvalidSettings(f"Spark's format {source!r} writes no files: choose parquet, json, orc, csv or text.")
    return made


def write_files(frame: DataFrame, uri: str, form: Any, partition_by: Sequence[str], options: Mapping[str, str]) -> None:
    """Write a frame to a directory by the JVM's sink of streaming queries, as its batch 0, in a file format."""
    spark, jvm = frame.sparkSession, jvm_of(frame.sparkSession)
    streaming, scala = jvm.org.apache.spark.sql.execution.streaming, jvm.PythonUtils
    columns, said = scala.toSeq(list(partition_by)), scala.toScalaMap(dict(options))
    for package in (streaming.sinks, streaming):  # of 4.1 and newer, and before
        if not isinstance(kind := package.FileStreamSink, JavaPackage):
            sink = kind(_named(spark, "_jsparkSession"), uri, form, columns, said)
            sink.addBatch(0, _named(frame, "_jdf"))
            return
    raise InvalidSettings(f"PySpark {pyspark.__version__} has no FileStreamSink, by which outputs are written.")


_DATA_SOURCES = "org.apache.spark.sql.execution.datasources"


def _made(jvm: Any, kind: Any) -> Any:
    """Call the constructor of a Java class that takes nothing."""
    new_array = _named(SparkContext, "_gateway").new_array
    constructor = kind.getDeclaredConstructor(new_array(jvm.java.lang.Class, 0))
    return constructor.newInstance(new_array(jvm.java.lang.Object, 0))


def ignore_accumulators(jvm: Any) -> None:
    """Have Spark keep silent about tasks with Python functions that cannot count for a program that has died."""
    # It would log an error with a stack for each of them; its scheduler logs no other errors that the query does not.
    log = jvm.org.apache.logging.log4j
    log.core.config.Configurator.setLevel("org.apache.spark.scheduler.DAGScheduler", log.Level.OFF)


def checkpoint_manager(spark: SparkSession) -> Any:
    """Return the session's ``StreamingCheckpointManager``, which can repartition state."""
    check_repartition()
    return spark._streamingCheckpointManager  # noqa: SLF001


def check_repartition() -> None:
    """Refuse a PySpark that cannot repartition state."""
    if not hasattr(SparkSession, "_streamingCheckpointManager"):
        raise InvalidSettings(
            f"PySpark {pyspark.__version__} cannot repartition the state of a query, or does it under another name: "
            "install PySpark 4.2 or 4.3 on this host."
        )


def _named(owner: Any, name: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError as error:
        kind = owner.__name__ if isinstance(owner, type) else type(owner).__name__
        raise InvalidSettings(
            f"PySpark {pyspark.__version__} has no {kind}.{name}, which this package relies on: install PySpark "
            f"{'.'.join(map(str, OLDEST))} to {'.'.join(map(str, NEWEST))}, or a newer hybrid-ha."
        ) from error
