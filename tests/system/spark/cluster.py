"""A real standalone cluster of Spark: a master and workers, from PySpark's own jars, on free ports of loopback."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from ha.sandbox.java import find_java
from ha.sandbox.polling import until
from ha.sandbox.ports import LOOPBACK, free_ports
from ha.sandbox.process import send, spawn, wait_gone

HOME = Path(pyspark.__file__).parent

UP_S = 60.0
"""Seconds that a JVM may take to listen; on a busy machine Java takes its time."""

FLAGS = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


def clean_environment() -> dict[str, str]:
    """Return this process's environment without our settings: tasks learn everything from Spark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HA_")}
    root = str(Path(__file__).parents[3])
    return {
        **kept,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))),
    }


@contextmanager
def standalone(folder: Path, interface: int | None = None, workers: int = 1) -> Iterator[str]:
    """Start a master and workers of two cores each; yields ``spark://host:port``.

    The master's web interface listens on the port ``interface``, and lets everybody decommission workers.
    """
    (port,) = free_ports(1)
    interface = interface or free_ports(1)[0]
    address = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as stack:
        common = ("--host", LOOPBACK)
        stack.enter_context(
            _daemon(
                folder,
                "master",
                ("org.apache.spark.deploy.master.Master", *common, "--port", str(port), "--webui-port", str(interface)),
                "I have been elected leader!",
            )
        )
        worker = ("org.apache.spark.deploy.worker.Worker", *common, "--cores", "2", "--memory", "1g")
        for number in range(workers):
            place = ("--webui-port", "0", "--work-dir", str(folder / f"work-{number}"), address)
            said = "Successfully registered with master"
            stack.enter_context(_daemon(folder, f"worker-{number}", (*worker, *place), said))
        yield address


@contextmanager
def _daemon(folder: Path, name: str, arguments: tuple[str, ...], said: str) -> Iterator[None]:
    log = folder / f"{name}.log"
    command = [
        str(find_java().path),
        *FLAGS,
        "-Dspark.decommission.enabled=true",
        "-cp",
        f"{HOME / 'jars'}/*",
        *arguments,
    ]
    # Without it the launcher of executors looks for a source tree; Spark's own scripts set it.
    scala = next((HOME / "jars").glob("spark-core_*.jar")).name.removeprefix("spark-core_").partition("-")[0]
    process = spawn(command, {**clean_environment(), "SPARK_SCALA_VERSION": scala}, log)
    try:

        def obstacle() -> str | None:
            text = log.read_text(errors="replace")
            return None if said in text else f"it has not said {said!r}, but: {text[-500:]}"

        until(obstacle, UP_S, f"Spark's {name} is not there")
        yield
    finally:
        send(process, signal.SIGTERM)
        if not wait_gone(process, 20.0):
            send(process, signal.SIGKILL)
            wait_gone(process, 20.0)
