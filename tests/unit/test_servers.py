"""A server of the sandbox that is gone ends the run, and is named."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ha.sandbox import Sandbox
from ha.sandbox.server_process import condition, send, spawn, wait_gone
from ha.sandbox.state import USUAL_TICKET_LIFE, Directory, State, new_state
from tests.servers import SHOWN, exit_if_lost, lost

pytestmark = pytest.mark.programs


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Directory]:
    """A sandbox's, whose servers sleep."""
    made = Directory(tmp_path / "sandbox")
    made.root.mkdir()
    made.make(private=False)
    state = new_state("somebody", 1, 1, "", USUAL_TICKET_LIFE)
    for server in state.servers:
        server.process = spawn(["/bin/sleep", "600"], {}, made.log(server.name))
        made.log(server.name).write_text("".join(f"line {number}\n" for number in range(100)))
    state.add_kafka()  # as if somebody were about to start it
    made.save(state)
    yield made
    for server in state.servers:
        send(server.process, signal.SIGKILL)
        wait_gone(server.process, 30)


def kill(directory: Directory, name: str) -> None:
    process = loaded(directory).named(name).process
    assert send(process, signal.SIGKILL)
    assert wait_gone(process, 30)


def loaded(directory: Directory) -> State:
    state = directory.load()
    assert state is not None
    return state


def test_servers_that_live_disturb_nobody(directory: Directory) -> None:
    assert condition(loaded(directory).named("kafka-1").process) == "down"
    exit_if_lost(Sandbox(directory.root))


@pytest.mark.parametrize("name", ["namenode-1", "zookeeper-1"])
def test_a_server_that_is_gone_is_named_with_the_end_of_its_log(directory: Directory, name: str) -> None:
    kill(directory, name)
    with pytest.raises(pytest.exit.Exception, match=f"{name} of the shared sandbox is gone") as ended:
        exit_if_lost(Sandbox(directory.root))
    assert ended.value.returncode == 3
    assert ended.value.msg.splitlines()[1:] == [f"line {number}" for number in range(100 - SHOWN, 100)]


def test_one_that_was_started_again_is_there(directory: Directory) -> None:
    kill(directory, "namenode-1")
    state = loaded(directory)
    state.named("namenode-1").process = spawn(["/bin/sleep", "600"], {}, directory.log("namenode-1"))
    directory.save(state)
    try:
        assert not lost(Sandbox(directory.root))
    finally:
        kill(directory, "namenode-1")


def test_a_sandbox_and_a_log_that_are_gone_are_said(directory: Directory, tmp_path: Path) -> None:
    assert lost(Sandbox(tmp_path / "nowhere")).endswith("is gone.")
    kill(directory, "datanode-1")
    directory.log("datanode-1").unlink()
    assert "it cannot be read" in lost(Sandbox(directory.root))
