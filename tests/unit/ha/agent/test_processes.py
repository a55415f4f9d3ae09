"""LeaderProcesses, with real connections: the end of a process is reported once, and only if it has been met."""

import os
import socket
import threading
from contextlib import suppress

import pytest

from ha.agent.processes import LeaderProcesses, processes_of
from ha.config.settings import Settings
from ha.config.sources import load
from leader.layout.contact import ContactAddress
from tests.patience import PATIENCE_S

WORD = "ab" * 16


class Process:
    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.contact = ContactAddress("127.0.0.1", self.listening.getsockname()[1], WORD)
        self.connection: socket.socket | None = None

    def greet(self) -> None:
        self.listening.settimeout(PATIENCE_S)
        self.connection, _ = self.listening.accept()
        self.connection.sendall(self.contact.greeting)

    def end(self) -> None:
        self.listening.close()
        if self.connection is not None:
            self.connection.close()


@pytest.fixture
def process() -> Process:
    return Process()


def test_the_end_of_a_process_is_reported(process: Process) -> None:
    gone = threading.Event()
    heard: list[ContactAddress] = []

    def on_gone(contact: ContactAddress) -> None:
        heard.append(contact)
        gone.set()

    processes = LeaderProcesses(30.0)
    processes.follow(process.contact, on_gone)
    process.greet()
    assert not gone.is_set()
    process.end()
    assert gone.wait(PATIENCE_S)
    processes.leave(process.contact, on_gone)
    assert heard == [process.contact]


def test_who_has_left_hears_nothing(process: Process) -> None:
    heard: list[ContactAddress] = []
    processes = LeaderProcesses(30.0)
    processes.follow(process.contact, heard.append)
    process.greet()
    processes.leave(process.contact, heard.append)
    assert process.connection is not None
    process.connection.settimeout(PATIENCE_S)
    with suppress(ConnectionResetError):  # it is closed before the greeting was read
        assert process.connection.recv(1) == b"", "the connection is closed"
    process.end()
    assert not heard


def test_a_forked_child_follows_with_a_thread_of_its_own(process: Process) -> None:
    processes = LeaderProcesses(30.0)
    processes.follow(process.contact, lambda _: None)
    process.greet()
    child = os.fork()
    if child == 0:
        try:
            process.end()  # this child's copies of the descriptors
            processes.forked()
            gone = threading.Event()
            processes.follow(process.contact, lambda _: gone.set())
            os._exit(0 if gone.wait(PATIENCE_S) else 1)
        except BaseException:  # noqa: BLE001  # whatever it is, the child must not run the other tests
            os._exit(2)
    first = process.connection
    process.greet()
    process.end()
    assert first is not None
    first.close()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(("suspicion", "follows"), [("true", True), ("false", False)])
def test_the_setting_suspicion_switches_it_off(suspicion: str, follows: bool) -> None:
    settings: Settings = load({"suspicion": suspicion})
    assert (processes_of(settings) is not None) is follows
