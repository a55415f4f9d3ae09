"""Calls to real HTTP servers behind the guard, over real leaderships: through a failover, a zombie, a lost answer."""

import http.client
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ha.client import Client
from ha.jobmaster import Caller, CallRefused, CallUnknown, GuardedApplication, Verdict
from ha.jobmaster.call_errors import NotExecuted
from ha.jobmaster.exchange import connect
from leader.errors import InvalidName
from leader.lookup.answers import Answer
from store.clock import now
from tests.patience import PATIENCE_S
from tests.unit.ha.jobmaster.conftest import Lead

Serve = Callable[[Any], str]


def asked(address: str, headers: dict[str, str]) -> tuple[http.client.HTTPResponse, str]:
    """Send a request as any program may; return the answer and its body."""
    host, _, port = address.partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)
    connection.request("POST", "/", headers=headers)
    response = connection.getresponse()
    said = response.read().decode()
    connection.close()
    return response, said


class Counting:
    """A finder that can be behind: it repeats an old answer until a leader is reported."""

    def __init__(self, client: Client, behind: Answer | None = None) -> None:
        self.client = client
        self.behind = behind
        self.reports: list[str] = []

    def leader(self, job: str, timeout: float) -> Answer:
        return self.behind or self.client.leader(job, timeout)

    def report(self, job: str, session_id: str, timeout: float) -> Answer:
        self.reports.append(session_id)
        self.behind = None
        return self.client.report(job, session_id, timeout)


def test_the_leader_answers(lead: Lead, client: Client, job: str) -> None:
    master = lead()
    reply = Caller(client, job).http("POST", "/offsets", b"17", {"X-Any": "thing"})
    assert (reply.status, reply.body) == (201, b"done by 1")
    assert reply.headers["x-mine"] == "yes"
    assert (reply.master.epoch, reply.master.session_id) == (1, master.leadership.session_id)
    assert master.executed == [("/offsets", b"17")]
    assert master.leadership.check(reply.master.session_id, reply.master.epoch) is Verdict.ACCEPTED
    assert master.leadership.check(reply.master.session_id, 0) is Verdict.OLD


def test_the_next_leader_is_told_the_old_ones_session_is_over(lead: Lead, client: Client, job: str) -> None:
    """A zombie that knows that it leads no more says so to every request."""
    first = lead()
    before = client.leader(job)
    second = lead()
    headers = {"X-Ha-Session-Id": second.leadership.session_id, "X-Ha-Epoch": "2"}
    for given in (headers, {}):
        response, said = asked(before.endpoints["jobmaster"], given)
        assert (response.status, response.headers["X-Ha-Verdict"]) == (421, "not-leading")
        assert second.leadership.session_id not in said
    assert first.executed == []


def test_after_a_failover_the_call_is_executed_once_by_the_next_leader(lead: Lead, client: Client, job: str) -> None:
    first = lead()
    before = client.leader(job)
    second = lead()
    finder = Counting(client, behind=before)
    reply = Caller(finder, job).http("POST", "/offsets", b"1")  # the old one's port still answers: it is a zombie
    assert reply.body == b"done by 2"
    assert finder.reports == [first.leadership.session_id]
    assert (first.executed, second.executed) == ([], [("/offsets", b"1")])


def test_the_address_of_the_old_leader_may_be_the_new_ones(lead: Lead, client: Client, job: str) -> None:
    """Then the session id alone tells the two apart."""
    lead()
    before = client.leader(job)
    second = lead()
    assert second.leadership.epoch == 2
    now_at = client.leader(job).endpoints
    behind = Answer(job, before.epoch, before.session_id, now_at, before.source, 0.0, verified=True)
    finder = Counting(client, behind=behind)
    assert Caller(finder, job).http("GET", "/").body == b"done by 2"
    assert finder.reports == [before.session_id]
    assert len(second.executed) == 1


@pytest.mark.slow
def test_nobody_listens_until_the_deadline(lead: Lead, client: Client, job: str) -> None:
    master = lead()
    finder = Counting(client)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen; nor can anybody else
        master.leadership.confirm({"jobmaster": f"127.0.0.1:{bound.getsockname()[1]}"})
        began = now()
        with pytest.raises(CallRefused, match="Connection refused"):
            Caller(finder, job).http("POST", "/", timeout=2.0)
    assert now() - began >= 1.8  # it has used its time
    assert finder.reports  # and has said so


def test_an_answer_that_is_lost_is_not_asked_for_again(lead: Lead, client: Client, job: str) -> None:
    master = lead()
    with socket.create_server(("127.0.0.1", 0)) as server:
        master.leadership.confirm({"jobmaster": f"127.0.0.1:{server.getsockname()[1]}"})
        with pytest.raises(CallUnknown, match="is not known"):
            Caller(client, job).http("POST", "/", timeout=1.5)  # it is connected, and nobody ever answers
        connection, _ = server.accept()
        with connection:
            assert connection.recv(1000).startswith(b"POST / HTTP/1.1")
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()  # one attempt


def test_an_idempotent_call_is_sent_again(lead: Lead, client: Client, job: str, serve: Serve) -> None:
    master = lead()

    def fails_once(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        if not master.executed:
            master.executed.append(("failed", b""))
            start_response("500 Oh", [])  # not behind the guard: nobody knows who says this
            return []
        return GuardedApplication(master, master.leadership)(environ, start_response)

    master.leadership.confirm({"jobmaster": serve(fails_once)})
    reply = Caller(client, job).http("PUT", "/x", idempotent=True)
    assert (reply.status, [path for path, _ in master.executed]) == (201, ["failed", "/x"])


def test_one_that_stops_leading_while_it_executes_is_silent(lead: Lead, client: Client, job: str, serve: Serve) -> None:
    """A zombie's answer never counts. Only its successor can say whether its deeds do."""
    del serve
    first = lead()
    finder = Counting(client)
    first.meanwhile = first.leadership.end
    with pytest.raises(CallUnknown, match="The leadership ended while"):
        Caller(finder, job).http("POST", "/x")
    assert first.executed == [("/x", b"")]


def test_a_proxy_that_drops_the_headers_is_named_at_once(lead: Lead, client: Client, job: str, serve: Serve) -> None:
    master = lead()
    inner = GuardedApplication(master, master.leadership)

    attempts = []

    def drops(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        attempts.append(environ["PATH_INFO"])
        kept = {name: value for name, value in environ.items() if not name.startswith("HTTP_X_HA")}
        return inner(kept, start_response)

    master.leadership.confirm({"jobmaster": serve(drops)})
    with pytest.raises(CallRefused, match="names no leader: send X-Ha-Session-Id"):
        Caller(client, job).http("POST", "/", timeout=30.0)
    assert len(attempts) == 1
    assert master.executed == []


@pytest.mark.parametrize(
    ("method", "path", "headers", "said"),
    [
        ("post", "/", {}, "not a method"),
        ("POST", "x", {}, "not a path"),
        ("POST", "/a b", {}, "not a path"),
        ("POST", "/", {"X": "a\r\nY: b"}, "cannot be sent"),
        ("POST", "/", {"x-ha-epoch": "9"}, "the call's own"),
    ],
)
def test_an_unsent_request_fails(client: Client, method: str, path: str, headers: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Caller(client, "orders").http(method, path, b"", headers)


def test_an_address_that_cannot_be_called(lead: Lead, client: Client, job: str) -> None:
    lead().leadership.confirm({"jobmaster": "akka.tcp://flink@host:1"})
    with pytest.raises(InvalidName, match=r"publish it as host:port"):
        Caller(client, job).http("GET", "/")


def test_a_prefix_is_put_before_the_path(lead: Lead, client: Client, job: str) -> None:
    master = lead()
    address = client.leader(job).endpoints["jobmaster"]
    master.leadership.confirm({"jobmaster": f"http://{address}/api/"})
    Caller(client, job).http("GET", "/x")
    assert [path for path, _ in master.executed] == ["/api/x"]


def test_without_headers_a_request_is_rejected_with_the_present_leader(lead: Lead, client: Client, job: str) -> None:
    master = lead()
    response, said = asked(client.leader(job).endpoints["jobmaster"], {})
    assert response.status == 400
    assert master.leadership.session_id in said
    assert master.executed == []


def test_a_trickle_of_bytes_ends_at_the_deadline(lead: Lead, client: Client, job: str) -> None:
    """Each byte comes in time, but the last one never comes."""
    master, stop = lead(), threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def trickle() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not stop.wait(0.02):
                    try:
                        connection.sendall(b".")
                    except OSError:
                        return

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        master.leadership.confirm({"jobmaster": f"127.0.0.1:{server.getsockname()[1]}"})
        try:
            with pytest.raises(CallUnknown):
                Caller(client, job).http("GET", "/", timeout=1.5)
        finally:
            stop.set()
            thread.join(PATIENCE_S)


def test_a_name_that_nobody_knows_is_not_executed() -> None:
    with pytest.raises(NotExecuted, match="was not found"):
        connect("no-such-host.invalid", 1, now() + 2.0)
