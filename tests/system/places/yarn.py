"""A real YARN on this host: a ResourceManager and a NodeManager of Hadoop, from the sandbox's jars."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from ha.hosts.cache import cache_directory, cached, sha256
from ha.hosts.java import find_java
from ha.sandbox.jars import MINICLUSTER, fetched, spark_jars
from ha.sandbox.polling import SandboxError, until
from ha.sandbox.ports import LOOPBACK, free_ports
from ha.sandbox.server_process import send, spawn, wait_gone
from tests.system.spark.cluster import FLAGS, HOME, clean_environment

BOUNCY_CASTLE = {
    "bcprov-jdk18on": "14cde2fdfaa8890480a8e5b67aceef0c90f96682c1e23c133bafdc9e0b3255ce",
    "bcpkix-jdk18on": "bdc723e20834832ac6af136cb5b5ff05e43b71d4fa151cc6510d9212ee086e63",
    "bcutil-jdk18on": "4420691958ad1c0ba275a6d6d8a6317adbdbdc9277055b6a72aa89c88cda8c7d",
}
"""Jars that a ResourceManager needs and PySpark has not, with their SHA-256 checksums."""
BOUNCY_CASTLE_VERSION = "1.82"

SERVER = "org.apache.hadoop.yarn.server"
UP_S = 120.0
FETCH_S = 300.0


@dataclass(frozen=True, slots=True)
class Yarn:
    """A cluster.

    Attributes:
        folder: for its files and those of its applications.
        web: address of the ResourceManager's web interface.
    """

    folder: Path
    web: str

    @property
    def environment(self) -> dict[str, str]:
        return {**clean_environment(), "HADOOP_CONF_DIR": str(self.folder / "conf"), "PYSPARK_PYTHON": sys.executable}

    def submit(self, mode: str, files: str, *program: str) -> list[str]:
        root = str(Path(__file__).parents[3])
        small = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
        settings = {
            "spark.yarn.stagingDir": (self.folder / "staging").as_uri(),
            "spark.yarn.jars": f"local:{HOME}/jars/*",
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.yarn.maxAppAttempts": "3",
            "spark.yarn.am.memory": "512m",
            "spark.yarn.appMasterEnv.HA_FILES": files,
            "spark.yarn.appMasterEnv.PYTHONPATH": root,
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": sys.executable,
            "spark.executorEnv.PYTHONPATH": root,
            "spark.executor.instances": "1",
            "spark.driver.extraJavaOptions": small,
            "spark.executor.extraJavaOptions": small,
            "spark.sql.shuffle.partitions": "1",
            "spark.ui.enabled": "false",
        }
        options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        memory = ("--driver-memory", "512m", "--executor-memory", "512m")
        return [f"{HOME}/bin/spark-submit", "--master", "yarn", "--deploy-mode", mode, *memory, *options, *program]

    def kill_all(self) -> None:
        for each in (self._asked("apps?states=NEW,SUBMITTED,ACCEPTED,RUNNING")["apps"] or {}).get("app", []):
            request = urllib.request.Request(  # noqa: S310  # our own
                f"{self.web}/ws/v1/cluster/apps/{each['id']}/state?user.name={os.environ.get('USER', 'root')}",
                b'{"state":"KILLED"}',
                {"Content-Type": "application/json"},
                method="PUT",
            )
            urllib.request.urlopen(request, timeout=20).close()  # noqa: S310

    def hosts(self) -> list[str]:
        return [each["nodeHostName"] for each in self._asked("nodes")["nodes"]["node"]]

    def logged(self, line: str) -> bool:
        return any(
            line in each.read_text(errors="replace") for each in self.folder.glob("logs/*/*/*") if each.is_file()
        )

    def obstacle(self) -> str | None:
        """Return what keeps the cluster from running applications; None if nothing does."""
        try:
            nodes = self._asked("nodes")["nodes"] or {}
        except OSError as error:
            return f"it does not answer: {error}"
        return None if any(each["state"] == "RUNNING" for each in nodes.get("node", [])) else f"its nodes are {nodes}"

    def _asked(self, what: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.web}/ws/v1/cluster/{what}", timeout=20) as answer:  # noqa: S310
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def yarn(folder: Path) -> Iterator[Yarn]:
    conf = folder / "conf"
    conf.mkdir(parents=True)
    ports = [f"{LOOPBACK}:{port}" for port in free_ports(8)]
    names = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
    manager = {f"yarn.resourcemanager.{name}": ports[number] for number, name in enumerate(names)}
    node = {
        f"yarn.nodemanager.{name}": port
        for name, port in zip(("address", "localizer.address", "webapp.address"), ports[5:], strict=True)
    }
    further = {
        "yarn.resourcemanager.hostname": LOOPBACK,
        "yarn.resourcemanager.scheduler.class": f"{SERVER}.resourcemanager.scheduler.fifo.FifoScheduler",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.hostname": LOOPBACK,
        "yarn.nodemanager.resource.memory-mb": "6144",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
    }
    (conf / "yarn-site.xml").write_text(_xml({**manager, **node, **further}))
    (conf / "core-site.xml").write_text(_xml({"fs.defaultFS": "file:///"}))
    made = Yarn(folder, f"http://{manager['yarn.resourcemanager.webapp.address']}")
    with ExitStack() as stack:
        stack.enter_context(_server(folder, f"{SERVER}.resourcemanager.ResourceManager"))
        stack.enter_context(_server(folder, f"{SERVER}.nodemanager.NodeManager"))
        until(made.obstacle, UP_S, "YARN is not there")
        yield made
        made.kill_all()


@contextmanager
def _server(folder: Path, main: str) -> Iterator[None]:
    path = [folder / "conf", _minicluster(), HOME / "jars" / "*", *_bouncy_castle()]
    opens = "--add-opens=java.base/java.lang=ALL-UNNAMED"
    command = [str(find_java().path), *FLAGS, opens, "-cp", os.pathsep.join(map(str, path)), main]
    process = spawn(command, clean_environment(), folder / f"{main.rpartition('.')[2]}.log")
    try:
        yield
    finally:
        send(process, signal.SIGTERM)
        if not wait_gone(process, 20.0):
            send(process, signal.SIGKILL)
            wait_gone(process, 20.0)


def _minicluster() -> Path:
    return fetched(MINICLUSTER, find_java().path, print)[0]


def _bouncy_castle() -> list[Path]:
    return [
        cached(
            cache_directory() / f"{name}-{BOUNCY_CASTLE_VERSION}.jar",
            lambda folder, name=name, digest=digest: _fetch(folder, name, digest),  # type: ignore[misc]
        )
        for name, digest in BOUNCY_CASTLE.items()
    ]


def _fetch(folder: Path, name: str, digest: str) -> None:
    ivy = next(iter(sorted(spark_jars().glob("ivy-*.jar"))))
    command = [
        *(str(find_java().path), f"-Divy.home={folder}/ivy", f"-Divy.default.ivy.user.dir={folder}/ivy"),
        *("-jar", str(ivy), "-cache", f"{folder}/ivy", "-notransitive", "-m2compatible"),
        *("-dependency", "org.bouncycastle", name, BOUNCY_CASTLE_VERSION),
        *("-confs", "default", "-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
    ]
    subprocess.run(command, capture_output=True, timeout=FETCH_S, check=True)
    found = sha256(folder / f"{name}-{BOUNCY_CASTLE_VERSION}.jar")
    if found != digest:
        raise SandboxError(f"The fetched {name} has the wrong SHA-256 checksum ({found}).")


def _xml(values: Mapping[str, str]) -> str:
    lines = [
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in values.items()
    ]
    return "\n".join(["<configuration>", *lines, "</configuration>", ""])
