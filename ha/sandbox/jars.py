"""Jars of the servers: PySpark's own, and one that Spark's Ivy fetches."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

from ha.sandbox.cache import cache_directory, cached, sha256
from ha.sandbox.faster_starts import repack
from ha.sandbox.ivy import retrieve
from ha.sandbox.polling import SandboxError

HADOOP_VERSION = "3.5.0"
MINICLUSTER = f"hadoop-client-minicluster-{HADOOP_VERSION}.jar"
MINICLUSTER_SHA256 = "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c"

_CLIENT = "hadoop-client-api"
_NEEDED = (
    # Jars that NameNode, DataNode, JournalNode and ZooKeeper load; all 290 jars of PySpark would slow the start.
    "audience-annotations",
    "commons-cli",
    "commons-io",
    "commons-lang3",
    "hadoop-client-runtime",
    "jackson-annotations",
    "jackson-core",
    "jackson-databind",
    "jcl-over-slf4j",
    "leveldbjni-all",
    "log4j-1.2-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "metrics-core",
    "netty-buffer",
    "netty-codec-base",
    "netty-common",
    "netty-handler",
    "netty-resolver",
    "netty-transport",
    "netty-transport-classes-epoll",
    "netty-transport-native-unix-common",
    "slf4j-api",
    "snappy-java",
    "zookeeper",
    "zookeeper-jute",
)


def classpath(java: Path, progress: Callable[[str], None]) -> list[Path]:
    """Return the jars to run the servers with; fetch what is missing.

    Args:
        java: the Java to run Ivy with.
        progress: reports slow steps, in one sentence each.

    Raises:
        SandboxError: PySpark is not installed, or the fetch failed.
    """
    spark = spark_jars()
    found = {_artifact(path): path for path in sorted(spark.glob("*.jar"))}
    missing = [name for name in (_CLIENT, *_NEEDED) if name not in found]
    if missing:
        raise SandboxError(f"PySpark's jars in {spark} lack {', '.join(missing)}: install pyspark 4.3 again.")
    repacked = repack(found[_CLIENT], lambda: minicluster(java, spark, progress), progress)
    return [*repacked, *(found[name] for name in _NEEDED)]


def spark_jars() -> Path:
    """Return PySpark's folder of jars, without importing PySpark.

    Raises:
        SandboxError: PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec is not None and spec.origin is not None else None
    if folder is None or not folder.is_dir():
        raise SandboxError("The sandbox takes its servers from PySpark's jars: pip install 'hybrid-ha[spark]'.")
    return folder


def minicluster(java: Path, spark: Path, progress: Callable[[str], None]) -> Path:
    """Return the cached jar of Hadoop's servers, fetched if it is missing or damaged.

    Args:
        java: the Java to run Ivy with.
        spark: PySpark's folder of jars, where Ivy is.
        progress: is told about a fetch.

    Raises:
        SandboxError: there is no network, the checksum is wrong, or the cache cannot be used.
    """

    def fetch(folder: Path) -> None:
        progress(f"Fetching {MINICLUSTER} (56 MB, once)")
        _fetch(java, spark, folder)

    return cached(cache_directory() / MINICLUSTER, fetch)


def _artifact(jar: Path) -> str:
    """Return a jar's name without its version."""
    return jar.name.removesuffix(".jar").removesuffix(".Final").rsplit("-", 1)[0]


def _fetch(java: Path, spark: Path, folder: Path) -> None:
    retrieve(java, spark, folder, [("org.apache.hadoop", "hadoop-client-minicluster", HADOOP_VERSION)])
    if not (folder / MINICLUSTER).exists():
        raise SandboxError(f"{MINICLUSTER} could not be fetched: Ivy has brought something else.")
    digest = sha256(folder / MINICLUSTER)
    if digest != MINICLUSTER_SHA256:
        raise SandboxError(
            f"The fetched {MINICLUSTER} has the wrong SHA-256 checksum ({digest}): it was damaged on the way, "
            "or somebody changed it."
        )
