"""Trouble: faults of simulated processes. These tests use nothing else of the simulator's internals."""

from leader.layout.information import LeaderInformation, decode
from tests.system.simulation.process import Process
from tests.unit.leader.arena import Arena

ZOOKEEPER, FILES = "zookeeper", "files"


def cut(process: Process, store: str, *, there: bool = True, back: bool = True) -> None:
    """Drop requests (``there``) or answers (``back``) silently."""
    link = process.files_link
    if store == ZOOKEEPER:
        assert process.client is not None
        link = process.client.link
    link.there, link.back = not there, not back


def mend(process: Process, store: str) -> None:
    """Let all messages arrive again; a client that has given up tries again."""
    cut(process, store, there=False, back=False)
    if store == ZOOKEEPER and process.client is not None:
        process.client.connect()


def disconnect(process: Process) -> None:
    """Break the connection to ZooKeeper; the process knows."""
    process.cut_off_zookeeper()


def said(process: Process) -> list[str]:
    """Return its log."""
    return [str(sentence) for _, what, sentence in process.history if what == "said"]


def in_copy(arena: Arena) -> LeaderInformation:
    """Return the record that readers find in ZooKeeper."""
    found = decode(arena.copy, "orders")
    assert found is not None
    return found
