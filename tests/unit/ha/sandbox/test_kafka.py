"""The sandbox's Kafka: it is added to a sandbox, never to a secure one, and its storage is made once."""

from pathlib import Path

import pytest

from ha.sandbox import Sandbox, SandboxError, kafka
from ha.sandbox.state import Directory, new_state


def test_a_broker_is_added_with_ports_of_its_own(tmp_path: Path) -> None:
    state = new_state("somebody", 1, 1)
    state.add_kafka()
    (broker,) = state.of("kafka")
    ports = [port for server in state.servers for port in server.ports.values()]
    assert len(set(ports)) == len(ports)
    text = kafka.configure(broker, tmp_path).read_text()
    assert f"advertised.listeners=BROKER://127.0.0.1:{broker.ports['broker']}\n" in text
    assert f"controller.quorum.voters=1@127.0.0.1:{broker.ports['controller']}\n" in text


def test_its_storage_is_made_once(tmp_path: Path) -> None:
    state = new_state("somebody", 1, 1)
    state.add_kafka()
    (broker,) = state.of("kafka")
    assert not kafka.formatted(broker, tmp_path)
    made = kafka.formatting(kafka.configure(broker, tmp_path), [tmp_path / "kafka.jar"])
    assert made.arguments[0] == "format"
    assert len(made.arguments[1].removeprefix("--cluster-id=")) == 22
    (tmp_path / "kafka-1" / "store").mkdir()
    (tmp_path / "kafka-1" / "store" / "meta.properties").touch()
    assert kafka.formatted(broker, tmp_path)


def test_a_secure_sandbox_has_none(tmp_path: Path) -> None:
    Directory(tmp_path).save(new_state("somebody", 1, 1, secured=str(tmp_path / "secured")))
    with pytest.raises(SandboxError, match="A secure sandbox has no Kafka"):
        Sandbox(tmp_path).up(kafka=True)
    state = Directory(tmp_path).load()
    assert state is not None
    assert not state.of("kafka")


def test_a_sandbox_without_one_names_none(tmp_path: Path) -> None:
    Directory(tmp_path).save(new_state("somebody", 1, 1))
    assert not [name for name in Sandbox(tmp_path).environment() if "KAFKA" in name]
