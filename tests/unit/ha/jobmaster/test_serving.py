"""The server of a job master, and its callers: TLS, tokens, bounds; over real leaderships and sockets."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import ha
from ha.client import Client
from ha.jobmaster import Caller, CallRefused, CallUnknown, Security, serve, serving
from leader.lookup.answers import Answer
from tests.patience import PATIENCE_S
from tests.unit.ha.certificates import Pair, make_certificate
from tests.unit.ha.jobmaster.serving import Master

READ, OPERATE = "a-token-that-reads", "a-token-that-operates"

Serving = Callable[..., Master]


@pytest.fixture
def leadership(root: str, job: str) -> Iterator[ha.Leadership]:
    with ha.lead(job, timeout=PATIENCE_S, files=root, zookeeper="") as led:
        yield led


@pytest.fixture
def start(leadership: ha.Leadership, root: str) -> Iterator[Serving]:
    with ExitStack() as stack:

        def begin(scheme: str = "", **settings: Any) -> Master:
            master = Master(leadership)
            told = {name: str(value) for name, value in settings.items()}
            server = stack.enter_context(serve(master, leadership, "127.0.0.1:0", files=root, **told))
            leadership.confirm({"jobmaster": f"{scheme}{server.address}"})
            return master

        yield begin


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    folder = tmp_path_factory.mktemp("certificates")
    return [make_certificate(folder, name) for name in ("one", "other")]


@pytest.fixture
def secured(start: Serving, pairs: list[Pair], tmp_path: Path) -> Master:
    for name, token in (("read", READ), ("operate", OPERATE)):
        (tmp_path / name).write_text(token)
    return start(
        "https://",
        http_certificate=pairs[0].certificate,
        http_key=pairs[0].key,
        http_read_tokens=tmp_path / "read",
        http_operate_tokens=tmp_path / "operate",
    )


class Knows:
    """A finder that needs no time: a call of a short time-out is tried at least once, on a busy machine too."""

    def __init__(self, client: Client, job: str) -> None:
        self._answer = client.leader(job)

    def leader(self, job: str, timeout: float) -> Answer:
        del job, timeout
        return self._answer

    def report(self, job: str, session_id: str, timeout: float) -> Answer:
        del job, session_id, timeout
        return self._answer


def calling(client: Client | Knows, job: str, pair: Pair, token: Path | str = "") -> Caller:
    return Caller(client, job, security=Security(ca=str(pair.certificate), token=str(token)))


def test_the_leader_answers(start: Serving, client: Client, job: str) -> None:
    master = start()
    reply = Caller(client, job).http("POST", "/off%20sets?a=1", b"17", {"X-Any": "thing"})
    assert (reply.status, reply.body, reply.headers["x-mine"]) == (201, b"done by 1", "yes")
    assert master.executed == [("/off sets", b"17")]


def test_callers_differ_by_token(secured: Master, client: Client, job: str, pairs: list[Pair], tmp_path: Path) -> None:
    reads, operates = (calling(client, job, pairs[0], tmp_path / name) for name in ("read", "operate"))
    assert reads.http("GET", "/").status == 201
    assert operates.http("POST", "/", b"x").status == 201
    with pytest.raises(CallRefused, match="needs a token of the role operate"):
        reads.http("POST", "/", b"y", timeout=PATIENCE_S)
    with pytest.raises(CallRefused, match="Send a token"):
        calling(client, job, pairs[0]).http("GET", "/", timeout=PATIENCE_S)
    assert secured.executed == [("/", b""), ("/", b"x")]


def test_a_changed_token_is_read(secured: Master, client: Client, job: str, pairs: list[Pair], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("not-the-token-that-operates")
    caller = calling(client, job, pairs[0], tmp_path / "mine")
    with pytest.raises(CallRefused, match="Send a token"):
        caller.http("POST", "/")
    (tmp_path / "mine").write_text(OPERATE + "\n")
    assert caller.http("POST", "/").status == 201
    (tmp_path / "mine").write_text("two words")
    with pytest.raises(CallRefused, match="jobmaster_token cannot be read"):
        calling(Knows(client, job), job, pairs[0], tmp_path / "mine").http("POST", "/", timeout=1.5)
    assert len(secured.executed) == 1


def test_the_application_does_not_see_the_token(
    secured: Master, client: Client, job: str, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    answer = Master.__call__

    def note(master: Master, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        seen.append(environ)
        return answer(master, environ, start_response)

    monkeypatch.setattr(Master, "__call__", note)
    calling(client, job, pairs[0], tmp_path / "read").http("GET", "/")
    assert secured.executed
    assert "HTTP_X_HA_SESSION_ID" in seen[0]
    assert READ not in str(seen[0])


def test_a_server_without_proof_gets_nothing(secured: Master, client: Client, job: str, pairs: list[Pair]) -> None:
    with pytest.raises(CallRefused, match=r"TLS with 127.0.0.1:[0-9]+ failed"):
        calling(Knows(client, job), job, pairs[1]).http("POST", "/", timeout=1.5)
    with pytest.raises(CallRefused, match=r"TLS with 127.0.0.1:[0-9]+ failed"):
        Caller(Knows(client, job), job).http("POST", "/", timeout=1.5)
    assert secured.executed == []


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_an_address_without_tls_is_not_called_where_tls_is_expected(
    scheme: str, start: Serving, client: Client, job: str, pairs: list[Pair], tmp_path: Path
) -> None:
    """Somebody may have forged it."""
    master = start(scheme)
    (tmp_path / "mine").write_text(OPERATE)
    for security in (Security(ca=str(pairs[0].certificate)), Security(token=str(tmp_path / "mine"))):
        with pytest.raises(CallRefused, match="is published without https://"):
            Caller(Knows(client, job), job, security=security).http("POST", "/", timeout=1.5)
    assert master.executed == []


def test_security_is_in_the_settings(secured: Master, root: str, job: str, pairs: list[Pair], tmp_path: Path) -> None:
    told = {"jobmaster_ca": str(pairs[0].certificate), "jobmaster_token": str(tmp_path / "operate")}
    with ha.connect(files=root, zookeeper="", **told) as client:
        assert Caller(client, job).http("POST", "/").status == 201
        with pytest.raises(ValueError, match="jobmaster_token has its place"):
            Caller(client, job).http("POST", "/", headers={"authorization": "Bearer mine"})
    assert len(secured.executed) == 1


def test_a_client_may_need_a_certificate(
    start: Serving, client: Client, job: str, pairs: list[Pair], tmp_path: Path
) -> None:
    one, other = pairs
    start("https://", http_certificate=one.certificate, http_key=one.key, http_client_ca=other.certificate)
    own = Security(ca=str(one.certificate), certificate=str(other.certificate), key=str(other.key))
    assert Caller(client, job, security=own).http("POST", "/").status == 201
    (tmp_path / "none").write_text("none")
    wrong = Security(ca=str(one.certificate), certificate=str(tmp_path / "none"))
    with pytest.raises(CallRefused, match="cannot be read"):
        Caller(Knows(client, job), job, security=wrong).http("POST", "/", timeout=1.5)


def test_a_long_body_is_refused(start: Serving, client: Client, job: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MAX_BODY_BYTES", 10)
    master = start()
    assert Caller(client, job).http("POST", "/", b"0123456789").status == 201
    with pytest.raises(CallRefused, match="A request may have 10 bytes"):
        Caller(client, job).http("POST", "/", b"0123456789a", timeout=PATIENCE_S)
    assert len(master.executed) == 1


@pytest.mark.parametrize("handshakes", [False, True])
def test_a_server_that_falls_silent_is_left_in_time(
    handshakes: bool, leadership: ha.Leadership, client: Client, job: str, pairs: list[Pair]
) -> None:
    """Before the request was sent nothing can have been executed; afterwards it is unknown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pairs[0].certificate, pairs[0].key)
    held: list[socket.socket] = []

    def accept(server: socket.socket) -> None:
        connection, _ = server.accept()
        held.append(context.wrap_socket(connection, server_side=True) if handshakes else connection)

    with socket.create_server(("127.0.0.1", 0)) as server:
        leadership.confirm({"jobmaster": f"https://127.0.0.1:{server.getsockname()[1]}"})
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        with pytest.raises(CallUnknown if handshakes else CallRefused):
            calling(Knows(client, job), job, pairs[0]).http("POST", "/", timeout=1.5)
    for each in held:
        each.close()
