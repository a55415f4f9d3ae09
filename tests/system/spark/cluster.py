"""A real standalone cluster of Spark: a master and workers, from PySpark's own jars, on free ports of loopback."""

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from ha.hosts.java import find_java
from ha.sandbox.polling import until
from ha.sandbox.ports import LOOPBACK, free_ports
from ha.sandbox.server_process import send, spawn, wait_gone
from tests.patience import PATIENCE_S

HOME = Path(pyspark.__file__).parent

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"

FLAGS = ("-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


@dataclass(frozen=True, slots=True)
class Worker:
    host: str = LOOPBACK  # an address of loopback; Spark takes different ones for different hosts
    cores: int = 2  # that it offers
    # of its environment; its executors and their Python workers inherit them
    variables: Mapping[str, str] = field(default_factory=dict)


def clean_environment(host: str = LOOPBACK) -> dict[str, str]:
    """Return this process's environment without our settings: tasks learn everything from Spark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HA_")}
    root = str(Path(__file__).parents[3])
    return {
        **kept,
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": host,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH")))),
    }


@contextmanager
def standalone(folder: Path, interface: int | None = None, workers: Sequence[Worker] = (Worker(),)) -> Iterator[str]:
    """Start a master and its workers, in a folder that exists; yields ``spark://host:port``.

    The master's web interface listens on the port ``interface``, and lets everybody decommission workers.
    """
    (port,) = free_ports(1)
    interface = interface or free_ports(1)[0]
    address = f"spark://{LOOPBACK}:{port}"
    master = ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(interface))
    with ExitStack() as stack:
        stack.enter_context(_daemon(folder, "master", Worker(), (MASTER, *master), "I have been elected leader!"))
        for number, each in enumerate(workers):
            name = f"worker-{number}"
            arguments = ("--host", each.host, "--cores", str(each.cores), "--memory", "1g", "--webui-port", "0")
            command = (WORKER, *arguments, "--work-dir", str(folder / name), address)
            stack.enter_context(_daemon(folder, name, each, command, "Successfully registered with master"))
        yield address


@contextmanager
def _daemon(folder: Path, name: str, worker: Worker, arguments: tuple[str, ...], said: str) -> Iterator[None]:
    log = folder / f"{name}.log"
    command = [
        str(find_java().path), *FLAGS, "-Dspark.decommission.enabled=true", "-cp", f"{HOME / 'jars'}/*", *arguments,
    ]  # fmt: skip
    # Without it the launcher of executors looks for a source tree; Spark's own scripts set it.
    scala = next((HOME / "jars").glob("spark-core_*.jar")).name.removeprefix("spark-core_").partition("-")[0]
    variables = {**clean_environment(worker.host), "SPARK_SCALA_VERSION": scala, **worker.variables}
    process = spawn(command, variables, log)
    try:

        def obstacle() -> str | None:
            text = log.read_text(errors="replace")
            return None if said in text else f"it has not said {said!r}, but: {text[-500:]}"

        until(obstacle, PATIENCE_S, f"Spark's {name} is not there")
        yield
    finally:
        send(process, signal.SIGTERM)
        if not wait_gone(process, 20.0):
            send(process, signal.SIGKILL)
            wait_gone(process, 20.0)
