"""What happens to simulated processes, in these tests' words: all they need to know of the simulator's insides."""

from leader.information import LeaderInformation, decode
from tests.leader.arena import Arena
from tests.simulation.process import Process

ZOOKEEPER, FILES = "zookeeper", "files"


def cut(process: Process, store: str, *, there: bool = True, back: bool = True) -> None:
    """Requests no longer arrive (``there``), answers no longer come back (``back``); nobody is told."""
    link = process.files_link
    if store == ZOOKEEPER:
        assert process.client is not None
        link = process.client.link
    link.there, link.back = not there, not back


def mend(process: Process, store: str) -> None:
    """All messages arrive again, and a client that has given up tries again."""
    cut(process, store, there=False, back=False)
    if store == ZOOKEEPER and process.client is not None:
        process.client.connect()


def disconnect(process: Process) -> None:
    """The connection to ZooKeeper breaks, and the process knows."""
    process.cut_off_zookeeper()


def said(process: Process) -> list[str]:
    """What it has logged."""
    return [str(sentence) for _, what, sentence in process.history if what == "said"]


def in_copy(arena: Arena) -> LeaderInformation:
    """What readers find in ZooKeeper."""
    found = decode(arena.copy, "orders")
    assert found is not None
    return found
