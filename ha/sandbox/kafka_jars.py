"""Jars of Kafka: those of a broker, and those with which Spark reads topics; and how any bundle of jars is fetched."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ha.sandbox.cache import cache_directory, cached_folder
from ha.sandbox.ivy import Module, retrieve
from ha.sandbox.jars import spark_jars

LOGGING = ("slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core")
"""Of PySpark's jars: Kafka itself comes without what writes its log."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Jars that are fetched together, once.

    Attributes:
        name: of their folder in the cache.
        modules: those to fetch.
        transitive: whether all that they need is fetched as well.
        digest: see :func:`ha.sandbox.cache.digest_of`.
        megabytes: their size, for people.
    """

    name: str
    modules: tuple[Module, ...]
    transitive: bool
    digest: str
    megabytes: int


BROKER = Bundle(
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


def fetched(bundle: Bundle, java: Path, progress: Callable[[str], None]) -> list[Path]:
    """Return the jars of a bundle; fetch them if they are missing or damaged.

    Args:
        bundle: which ones.
        java: the Java to run Ivy with.
        progress: is told about a fetch.

    Raises:
        SandboxError: PySpark is not installed, there is no network, or something else was fetched.
    """

    def fetch(folder: Path) -> None:
        progress(f"Fetching {bundle.name} ({bundle.megabytes} MB, once)")
        retrieve(java, spark_jars(), folder, bundle.modules, transitive=bundle.transitive)

    return cached_folder(cache_directory() / bundle.name, bundle.digest, fetch)


def class_path(java: Path, progress: Callable[[str], None]) -> list[Path]:
    """Return the jars to run a broker with; fetch what is missing.

    Raises:
        SandboxError: as :func:`fetched`.
    """
    logging = [next(spark_jars().glob(f"{name}-[0-9]*.jar")) for name in LOGGING]
    return [*logging, *fetched(BROKER, java, progress)]
