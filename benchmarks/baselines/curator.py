"""Curator driven from Python: a Java virtual machine with PySpark's own jars, and a client set up as the manual says.

"Getting Started": "For most cases, you should use: ``new ExponentialBackoffRetry(1000, 3)``"; so the client does. Its
connection timeout, 15 s by default, is half of the session timeout here: it must be shorter than that to be of use.
"""

import logging
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from ha.sandbox.jars import spark_jars

JARS = (
    *("curator-client", "curator-framework", "curator-recipes", "zookeeper", "zookeeper-jute"),
    *("slf4j-api", "log4j-api", "log4j-core", "log4j-slf4j2-impl"),
    *("netty-handler", "netty-common", "netty-buffer", "netty-transport", "netty-resolver", "netty-codec-base"),
)
JAVA_OPTIONS = (
    *("-Xmx64m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData"),
    *("-Djava.net.preferIPv4Stack=true", "-Dlog4j2.level=WARN"),
)
RETRY_MS = 1000
ENDS_WITHIN_S = 120.0  # Its standard input has ended, and so it ends
RETRIES = 3
MS = 1000


class CuratorError(Exception):
    """A Java exception, with its text and stack trace."""


class Curator:
    """A virtual machine and the client in it."""

    def __init__(self, gateway: Any, zookeeper: str, session_timeout: float) -> None:
        self.jvm = gateway.jvm
        curator = self.jvm.org.apache.curator
        self.client = curator.framework.CuratorFrameworkFactory.newClient(
            zookeeper,
            int(session_timeout * MS),
            int(session_timeout * MS / 2),
            curator.retry.ExponentialBackoffRetry(RETRY_MS, RETRIES),
        )
        self.client.start()


@contextmanager
def connected(zookeeper: str, session_timeout: float) -> Iterator[Curator]:
    """Start a virtual machine with a client; at the end, close the session and stop both."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs, at length, what it raises as well
    gateway = JavaGateway.launch_gateway(
        jarpath=str(_jar("py4j")),
        classpath=":".join(str(_jar(name)) for name in JARS),
        javaopts=list(JAVA_OPTIONS),
        java_path=None,  # that of JAVA_HOME, else the one on the search path
        die_on_exit=True,
        redirect_stdout=_standard_error(),
        redirect_stderr=_standard_error(),
        create_new_process_group=True,  # a terminal's Ctrl-C is for the contender alone
        enable_auth=True,
    )
    try:
        curator = Curator(gateway, zookeeper, session_timeout)
        try:
            yield curator
        finally:
            with suppress(Py4JNetworkError):  # the machine is gone, and its session will expire
                curator.client.close()
    except Py4JJavaError as error:
        raise CuratorError(str(error)) from None  # while there is a machine to ask for its text
    finally:
        gateway.java_process.stdin.close()
        try:
            gateway.java_process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            gateway.java_process.kill()
            gateway.java_process.wait(ENDS_WITHIN_S)


def error_name(error: Any) -> str:
    """Return the simple name of the Java exception that a Python one stands for, such as ``NoNodeException``."""
    return str(error.java_exception.getClass().getSimpleName())


def _standard_error() -> TextIO:
    """A copy: py4j closes what it is given when the machine ends."""
    return os.fdopen(os.dup(2), "w", buffering=1, encoding="utf-8", errors="replace")  # a line at a time


def _jar(name: str) -> Path:
    return next(iter(sorted(spark_jars().glob(f"{name}-[0-9]*.jar"))))
