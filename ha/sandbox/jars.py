"""Jars of the servers: PySpark's own, and bundles that its Ivy fetches from the package registry that it knows."""

import importlib.util
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ha.hosts.cache import cache_directory, cached_folder
from ha.sandbox.faster_starts import repack
from ha.sandbox.polling import SandboxError, ran

FETCH_TIMEOUT_S = 300
PAUSE_S = 5.0  # between two of three tries

Module = tuple[str, str, str]  # organisation, module and revision


@dataclass(frozen=True, slots=True)
class Bundle:
    """Jars that are fetched together, once, and known by their digest."""

    name: str  # of their folder in the cache
    modules: tuple[Module, ...]
    transitive: bool  # whether all that they need is fetched as well
    digest: str  # see ha.hosts.cache.digest_of
    megabytes: int  # their size, for people


MINICLUSTER = Bundle(
    "hadoop-client-minicluster-3.5.0",
    (("org.apache.hadoop", "hadoop-client-minicluster", "3.5.0"),),
    transitive=False,
    digest="3cebd04022d42144ea5e5e870b43f63894a282b3d06ce55e855addc0d23284fa",
    megabytes=56,
)
"""Hadoop's servers."""

KAFKA = Bundle(
    "kafka-4.1.1",
    (("org.apache.kafka", "kafka_2.13", "4.1.1"),),
    transitive=True,
    digest="db0e7b45f86a3c02b605405befb51352dd42d2913276849e741797bf0bd6d7f5",
    megabytes=44,
)

CONNECTOR = Bundle(
    "spark-sql-kafka-4.2.0",
    (
        ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
        ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.2.0"),
        ("org.apache.kafka", "kafka-clients", "3.9.2"),
        ("org.apache.commons", "commons-pool2", "2.13.1"),
    ),
    transitive=False,
    digest="fca370d8f105f9b7b4184a1a77c9aec48d62615422429166e6c0e6c5e8e10683",
    megabytes=10,
)
"""For Spark 4.3 there is none in the registry; this one works with it."""

_CLIENT = "hadoop-client-api"
# Jars that NameNode, DataNode, JournalNode and ZooKeeper load; all 290 jars of PySpark would slow the start.
_NEEDED = (
    "audience-annotations", "commons-cli", "commons-io", "commons-lang3", "hadoop-client-runtime",
    "jackson-annotations", "jackson-core", "jackson-databind", "jcl-over-slf4j", "leveldbjni-all", "log4j-1.2-api",
    "log4j-api", "log4j-core", "log4j-slf4j2-impl", "metrics-core", "netty-buffer", "netty-codec-base", "netty-common",
    "netty-handler", "netty-resolver", "netty-transport", "netty-transport-classes-epoll",
    "netty-transport-native-unix-common", "slf4j-api", "snappy-java", "zookeeper", "zookeeper-jute",
)  # fmt: skip
_KAFKA_LOGGING = ("slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core")
"""Of PySpark's jars: Kafka itself comes without what writes its log."""


def spark_jars() -> Path:
    """Return PySpark's folder of jars, without importing PySpark."""
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec is not None and spec.origin is not None else None
    if folder is None or not folder.is_dir():
        raise SandboxError("The sandbox takes its servers from PySpark's jars: pip install 'hybrid-ha[spark]'.")
    return folder


def classpath(java: Path, progress: Callable[[str], None]) -> list[Path]:
    """Return the jars to run the servers of Hadoop and ZooKeeper with; fetch what is missing."""
    spark = spark_jars()
    found = {path.stem.removesuffix(".Final").rsplit("-", 1)[0]: path for path in sorted(spark.glob("*.jar"))}
    missing = [name for name in (_CLIENT, *_NEEDED) if name not in found]
    if missing:
        raise SandboxError(f"PySpark's jars in {spark} lack {', '.join(missing)}: install pyspark 4.3 again.")
    repacked = repack(found[_CLIENT], lambda: fetched(MINICLUSTER, java, progress)[0], progress)
    return [*repacked, *(found[name] for name in _NEEDED)]


def kafka_classpath(java: Path, progress: Callable[[str], None]) -> list[Path]:
    """Return the jars to run a broker with; fetch what is missing."""
    logging = [next(spark_jars().glob(f"{name}-[0-9]*.jar")) for name in _KAFKA_LOGGING]
    return [*logging, *fetched(KAFKA, java, progress)]


def fetched(bundle: Bundle, java: Path, progress: Callable[[str], None]) -> list[Path]:
    """Return the jars of a bundle; fetch them, with Ivy, if they are missing or damaged."""

    def fetch(folder: Path) -> None:
        progress(f"Fetching {bundle.name} ({bundle.megabytes} MB, once)")
        _retrieve(java, folder, bundle)

    return cached_folder(cache_directory() / bundle.name, bundle.digest, fetch)


def _retrieve(java: Path, folder: Path, bundle: Bundle) -> None:
    spark = spark_jars()
    ivy = next(iter(sorted(spark.glob("ivy-*.jar"))), None)
    if ivy is None:
        raise SandboxError(f"PySpark's jars in {spark} lack Ivy: install pyspark 4.3 again.")
    name = ", ".join(f"{module}-{revision}" for _, module, revision in bundle.modules)
    # Ivy writes everything there: it leaves nothing in the user's home.
    with tempfile.TemporaryDirectory(prefix="ivy-", dir=folder.parent) as home:
        wanted = Path(home, "wanted.xml")
        wanted.write_text(_description(bundle), encoding="utf-8")
        command = [
            *(str(java), f"-Divy.home={home}", f"-Divy.default.ivy.user.dir={home}"),
            *("-jar", str(ivy), "-cache", home, "-m2compatible", "-ivy", str(wanted), "-confs", "default"),
            *("-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"),
        ]
        for pause in (PAUSE_S, PAUSE_S, 0.0):  # a registry may fail for a moment
            ended = ran(f"Fetching {name}", command, FETCH_TIMEOUT_S)
            if ended.returncode == 0:
                break
            threading.Event().wait(pause)
    if ended.returncode != 0:
        raise SandboxError(f"{name} could not be fetched, is there a network? {_reason(ended)}")


def _description(bundle: Bundle) -> str:
    """Return an Ivy file that depends on the modules of a bundle."""
    wanted = "".join(
        f'<dependency org={quoteattr(organisation)} name={quoteattr(name)} rev={quoteattr(revision)} conf="default" '
        f'transitive="{str(bundle.transitive).lower()}"/>'
        for organisation, name, revision in bundle.modules
    )
    return (
        '<ivy-module version="2.0"><info organisation="ha" module="sandbox"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
    )


def _reason(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the first informative line of Ivy's output."""
    telling = ("Host ", "UnknownHost", "ERROR", "not found", "onnection", "timed out", "SSL", "FAILED", "rror:")
    lines = [line.strip() for line in (ended.stdout + ended.stderr).splitlines()]
    said = [line for line in lines if any(word in line for word in telling)]
    return f"Ivy says: {said[0]}" if said else f"Ivy ended with exit code {ended.returncode} and gave no reason."
