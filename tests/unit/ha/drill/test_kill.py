"""Which processes a drill kills: a driver by what it reads, never the sidecar that has started it."""

import pytest

from ha.drill.kill import _is_driver, _is_jvm

JVM = ["/usr/bin/java", "-cp", "x", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]


@pytest.mark.parametrize("option", ["--input", "--topic"])
def test_a_driver_is_known_by_what_it_reads(option: str) -> None:
    assert _is_driver(["python", "job.py", option, "here"])


@pytest.mark.parametrize(
    "command",
    [
        ["python", "-m", "ha.cli", "run", "orders", "--", "python", "job.py", "--input", "here"],
        ["python", "-m", "pyspark.daemon"],
        [*JVM, "job.py", "--input", "here"],
    ],
    ids=["sidecar", "worker", "jvm"],
)
def test_nothing_else_is_a_driver(command: list[str]) -> None:
    assert not _is_driver(command)


def test_a_jvm_is_that_of_spark() -> None:
    assert _is_jvm(JVM)
    assert not _is_jvm(["python", *JVM])
    assert not _is_jvm(["/usr/bin/java", "-cp", "x", "kafka.Kafka"])
