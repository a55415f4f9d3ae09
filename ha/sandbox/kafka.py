"""A Kafka broker that is its own controller (KRaft): its configuration, its storage, and whether it serves."""

import base64
import uuid
from pathlib import Path

from ha.sandbox.launcher import LaunchedProgram
from ha.sandbox.ports import LOOPBACK, listens
from ha.sandbox.state import Server

PARTITIONS = 3  # of a topic that is made by the first who writes to it


def configure(server: Server, data: Path) -> Path:
    """Write the broker's configuration into its data directory; return the file."""
    home, ports = data / server.name, server.ports
    home.mkdir(parents=True, exist_ok=True)
    path = home / "server.properties"
    settings = {
        "process.roles": "broker,controller",
        "node.id": server.number,
        "controller.quorum.voters": f"{server.number}@{LOOPBACK}:{ports['controller']}",
        "listeners": f"BROKER://{LOOPBACK}:{ports['broker']},CONTROLLER://{LOOPBACK}:{ports['controller']}",
        "advertised.listeners": f"BROKER://{LOOPBACK}:{ports['broker']}",
        "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "BROKER",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": home / "store",
        "num.partitions": PARTITIONS,
        # There is one broker, and a group need not wait for its second consumer.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.dedupe.buffer.size": 2 << 20,  # of 128 MB, more than the whole heap is here
    }
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    return path


def formatted(server: Server, data: Path) -> bool:
    return (data / server.name / "store" / "meta.properties").exists()


def formatting(configuration: Path, jars: list[Path]) -> LaunchedProgram:
    """Return how to make the broker's storage, which is done once."""
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    # An id that began with a hyphen would be taken for an option.
    arguments = ("format", f"--cluster-id={cluster}", "--config", str(configuration))
    return LaunchedProgram("kafka.tools.StorageTool", arguments, jars=tuple(jars))


def program(configuration: Path, jars: list[Path]) -> LaunchedProgram:
    return LaunchedProgram("kafka.Kafka", (str(configuration),), jars=tuple(jars))


def not_ready(server: Server) -> str | None:
    """Return what keeps a broker from serving; None if nothing does. It listens once it does."""
    return None if listens(server.ports["broker"]) else "it does not listen yet"
