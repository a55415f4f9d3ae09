"""Jars of Kafka: those of a broker, and those with which Spark reads topics."""

from collections.abc import Callable
from pathlib import Path

from ha.sandbox.bundle import Bundle, fetched
from ha.sandbox.jars import spark_jars

LOGGING = ("slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core")
"""Of PySpark's jars: Kafka itself comes without what writes its log."""

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


def class_path(java: Path, progress: Callable[[str], None]) -> list[Path]:
    """Return the jars to run a broker with; fetch what is missing.

    Raises:
        SandboxError: as :func:`fetched`.
    """
    logging = [next(spark_jars().glob(f"{name}-[0-9]*.jar")) for name in LOGGING]
    return [*logging, *fetched(BROKER, java, progress)]
