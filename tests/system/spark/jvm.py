"""The JVM of this process's Spark session, which PySpark itself starts and stops without any limit."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark import SparkContext, java_gateway
from pyspark.sql import SparkSession

from tests.limits import HANGS_S, at_most


@contextmanager
def jvm_within(limit_s: float = HANGS_S) -> Iterator[None]:
    """Kill the JVM that is started in the block if that takes longer: PySpark waits for its port as long as it lives.

    A JVM that is there but does not answer is waited for as well, by a socket without a limit.
    """
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    def kill() -> None:
        for each in started:
            each.kill()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java_gateway, "Popen", Noted)
        try:
            with at_most(limit_s, kill):
                yield
        finally:
            for each in started:
                if each.poll() is not None and each.stdin is not None:
                    each.stdin.close()


def end(session: SparkSession, limit_s: float = HANGS_S) -> None:
    """Stop the session and its JVM; kill that if it does not stop, as its answers have no limit either."""
    gateway = SparkContext._gateway
    assert gateway is not None
    try:
        with at_most(limit_s, gateway.proc.kill):
            session.stop()
            gateway.shutdown()
    finally:
        gateway.proc.stdin.close()  # the JVM ends with its standard input
        SparkContext._gateway = SparkContext._jvm = None
        try:
            gateway.proc.wait(20)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
            gateway.proc.wait(limit_s)
            raise
