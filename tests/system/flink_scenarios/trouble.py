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


class Deaf:
    def asked(self, job: str, successor: str) -> None:
        pass

    def requested(self, job: str) -> None:
        pass

    def believed(self, job: str, leads_until: float, holds_until: float) -> None:
        pass

    def published(self, job: str, information: LeaderInformation) -> None:
        pass

    def suspected(self, job: str, contender: str) -> None:
        pass

    def said(self, job: str, sentence: str, **_: object) -> None:
        pass


def in_copy(arena: Arena) -> LeaderInformation:
    found = decode(arena.copy, "orders")
    assert found is not None
    return found
