"""TCP connections to job masters: one line each way, and then the connection is the protocol's."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from ha.client import Client
from ha.jobmaster import Caller, CallRefused, Verdict, admit
from ha.jobmaster.line import MAX_LINE_BYTES
from ha.jobmaster.verdict import Leading
from leader.lookup.answers import Answer
from store.clock import now
from tests.unit.ha.jobmaster.conftest import Lead

Listen = Callable[[Leading], tuple[str, list[Verdict]]]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Echo on admitted connections; returns the address, and the verdict on each connection."""
    with ExitStack() as stack:

        def start(leader: Leading) -> tuple[str, list[Verdict]]:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            said: list[Verdict] = []

            def serve() -> None:
                with suppress(OSError):  # the end of the test
                    while True:
                        connection, _ = server.accept()
                        with connection:
                            connection.settimeout(10.0)
                            said.append(admit(connection, leader, 2.0))
                            if said[-1] is Verdict.ACCEPTED:
                                connection.sendall(connection.recv(100).upper())

            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            stack.callback(thread.join, 10)
            stack.callback(server.shutdown, socket.SHUT_RDWR)
            return f"127.0.0.1:{server.getsockname()[1]}", said

        yield start


def test_a_connection_that_the_leader_has_accepted(lead: Lead, client: Client, job: str, listen: Listen) -> None:
    leadership = lead().leadership
    address, said = listen(leadership)
    leadership.confirm({"raw": address})
    with Caller(client, job, "raw").connect(timeout=10.0) as connection:
        assert connection.gettimeout() == 10.0
        connection.sendall(b"hello")
        assert connection.recv(100) == b"HELLO"
    assert said == [Verdict.ACCEPTED]


def test_a_line_of_an_older_session_is_refused_and_the_next_one_accepted(
    lead: Lead, client: Client, job: str, listen: Listen
) -> None:
    lead()
    before = client.leader(job)
    leadership = lead().leadership
    address, said = listen(leadership)
    leadership.confirm({"raw": address})
    reports = []

    class Behind:
        def leader(self, job: str, timeout: float) -> Answer:
            del job, timeout
            return Answer(
                before.job, 1, before.session_id, {"raw": address}, before.source, age=0.0, verified=True, stale=False
            )

        def report(self, job: str, session_id: str, timeout: float) -> Answer:
            reports.append(session_id)
            return client.report(job, session_id, timeout)

    with Caller(Behind(), job, "raw").connect() as connection:
        connection.sendall(b"again")
        assert connection.recv(100) == b"AGAIN"
    assert said == [Verdict.OLD, Verdict.ACCEPTED]
    assert reports == [before.session_id]


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/1.1\r\n",
        b"\n",
        b"x" * MAX_LINE_BYTES,
        b"hybrid-ha JOB 1 SESSION one more\n",
        b"hybrid-ha other 1 SESSION\n",
    ],
)
def test_a_malformed_line_is_refused(lead: Lead, listen: Listen, job: str, line: bytes) -> None:
    leadership = lead().leadership
    address, _ = listen(leadership)
    line = line.replace(b"JOB", job.encode()).replace(b"SESSION", leadership.session_id.encode())
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(line)
        assert connection.recv(100).startswith(b"hybrid-ha missing 1 ")


def test_one_that_says_nothing_is_waited_for_no_longer_than_asked(lead: Lead) -> None:
    leadership = lead().leadership
    ours, theirs = socket.socketpair()
    began = now()
    with ours, theirs, pytest.raises(TimeoutError):
        admit(ours, leadership, 0.2)
    assert now() - began >= 0.2


@pytest.mark.slow
def test_a_server_of_another_protocol_is_refused_until_the_deadline(lead: Lead, client: Client, job: str) -> None:
    leadership = lead().leadership
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(b"220 mail.example\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        leadership.confirm({"raw": f"127.0.0.1:{server.getsockname()[1]}"})
        with pytest.raises(CallRefused, match=r"does not know this protocol|did not answer"):
            Caller(client, job, "raw").connect(timeout=2.0)
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)
