"""Access to the HTTP API over real sockets: TLS, tokens, networks."""

import http.client
import logging
import socket
import ssl
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from ha.api.http_api import HttpApi
from ha.api.process import StatusSource
from ha.config.server_access import access_of
from ha.config.settings import Settings
from ha.listening import tokens
from leader.errors import InvalidSettings
from tests.patience import PATIENCE_S
from tests.unit.ha.certificates import Pair, make_certificate
from tests.unit.ha.programs import Workplace

READ, OPERATE = "a-token-that-reads", "a-token-that-operates"


def get(port: int, path: str, token: str = "", tls: ssl.SSLContext | None = None) -> int:
    """Ask; returns the status."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection = (
        http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_S, context=tls)
        if tls
        else http.client.HTTPConnection("localhost", port, timeout=PATIENCE_S)
    )
    try:
        connection.request("GET", path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


class Served:
    def __init__(self, listen: str = "127.0.0.1:0", **settings: Any) -> None:
        process = SimpleNamespace(statuses=dict, metrics=SimpleNamespace(registry=CollectorRegistry()))
        self._api = HttpApi(cast(StatusSource, process), listen, None, access_of(Settings.of(**settings)))
        self._api.start()
        self.port = int(self._api.address.rpartition(":")[2])

    def get(self, path: str, token: str = "", tls: ssl.SSLContext | None = None) -> int:
        return get(self.port, path, token, tls)

    def close(self) -> None:
        self._api.close()


@pytest.fixture
def serve(unthrottled: None) -> Iterator[Any]:
    del unthrottled
    made: list[Served] = []

    def start(**settings: Any) -> Served:
        made.append(Served(**{name: str(value) for name, value in settings.items()}))
        return made[-1]

    yield start
    for each in made:
        each.close()


def replace(path: Path, text: str) -> None:
    """Write another file in place of this one, as programs that renew credentials do."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").replace(path)


def test_without_files_of_tokens_none_is_needed(serve: Any) -> None:
    assert serve().get("/metrics") == 200


def test_each_request_but_health_needs_a_token(serve: Any, tmp_path: Path) -> None:
    (tmp_path / "read").write_text(f"# Prometheus\n\n{READ}\n")
    (tmp_path / "operate").write_text(OPERATE)
    served = serve(http_read_tokens=tmp_path / "read", http_operate_tokens=tmp_path / "operate")
    assert served.get("/livez") == 200
    for path in ("/api/v1/jobs", "/metrics", "/api/v1/jobs/orders", "/livez/", "/nothing"):
        assert served.get(path) == 401
        assert served.get(path, READ + "x") == 401
    assert [served.get("/metrics", each) for each in (READ, OPERATE)] == [200, 200]


@pytest.mark.parametrize("header", ["", "Basic " + READ, READ, "Bearer", "Bearer # Prometheus", "Bearer " + READ[:-1]])
def test_what_is_no_token(header: str, tmp_path: Path) -> None:
    (tmp_path / "read").write_text(f"# Prometheus\n{READ}\n")
    known = tokens.Tokens({tokens.Role.READ: ("http_read_tokens", str(tmp_path / "read"))})
    assert known.role_of(header) is None
    assert known.role_of(f"bearer {READ}") is tokens.Role.READ


@pytest.mark.parametrize(("characters", "enough"), [(15, False), (16, True)])
def test_a_token_has_at_least_so_many_characters(characters: int, enough: bool, tmp_path: Path) -> None:
    (tmp_path / "read").write_text("x" * characters)
    with nullcontext() if enough else pytest.raises(ValueError, match="at least 16"):
        assert len(tokens.read_tokens(str(tmp_path / "read"))) == 1


def test_a_token_of_two_roles_has_the_higher_one(tmp_path: Path) -> None:
    (tmp_path / "both").write_text(READ)
    known = tokens.Tokens({role: (role.name, str(tmp_path / "both")) for role in tokens.Role})
    assert known.role_of(f"Bearer {READ}") is tokens.Role.OPERATE


def test_a_changed_file_of_tokens_is_read_again(serve: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "read"
    file.write_text(READ)
    served = serve(http_read_tokens=file)
    replace(file, "another-token-that-reads")
    assert [served.get("/metrics", each) for each in (READ, "another-token-that-reads")] == [401, 200]
    file.unlink()
    assert served.get("/metrics", "another-token-that-reads") == 401, "what cannot be read counts no more"
    replace(file, READ)
    assert served.get("/metrics", READ) == 200
    assert READ not in caplog.text
    assert "http_read_tokens cannot be read any more: No such file or directory" in caplog.text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("short", "line 1 is no token"),
        (f"{READ}\na b c d e f g h i j k", "line 2 is no token"),
        ("x" * 200_000, "100,000"),
    ],
)
def test_a_file_that_has_something_else_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "read").write_text(text)
    with pytest.raises(InvalidSettings, match=reason) as caught:
        access_of(Settings.of(http_read_tokens=str(tmp_path / "read")))
    assert text[:20] not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    for settings in (Settings.of(http_read_tokens=missing), Settings.of(http_certificate=missing)):
        with pytest.raises(InvalidSettings, match="No such file"):
            access_of(settings)


def test_no_comparison_of_tokens_ends_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[bytes] = []
    (tmp_path / "read").write_text("\n".join(f"token-with-number-{number}" for number in range(5)))
    known = tokens.Tokens({tokens.Role.READ: ("http_read_tokens", str(tmp_path / "read"))})

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(other)
        return one == other

    monkeypatch.setattr("hmac.compare_digest", compare)
    for number in range(5):
        assert known.role_of(f"Bearer token-with-number-{number}")
    assert len(compared) == 25


def test_tokens_in_the_clear_are_warned_of(tmp_path: Path, pairs: list[Pair], caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "read").write_text(READ)
    pair = pairs[0]
    tls = {"http_certificate": str(pair.certificate), "http_key": str(pair.key)}
    for listen, told, warned in (("0.0.0.0:0", {}, True), ("127.0.0.1:0", {}, False), ("0.0.0.0:0", tls, False)):
        caplog.clear()
        served = Served(listen, http_read_tokens=str(tmp_path / "read"), **told)
        served.close()
        assert ("can be overheard" in caplog.text) is warned


@pytest.mark.parametrize(
    ("listen", "told", "warned"),
    [
        ("0.0.0.0:0", {}, True),
        ("127.0.0.1:0", {}, False),
        ("0.0.0.0:0", {"http_networks": "10.0.0.0/8"}, False),
        ("0.0.0.0:0", {"http_read_tokens": "read"}, False),
        ("0.0.0.0:0", {"http_certificate": "certificate", "http_key": "key"}, True),
        ("0.0.0.0:0", {"http_certificate": "certificate", "http_key": "key", "http_client_ca": "ca"}, False),
    ],
)
def test_a_server_that_answers_everybody_warns(
    listen: str, told: dict[str, str], warned: bool, tmp_path: Path, pairs: list[Pair], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "read").write_text(READ)
    pair = pairs[0]
    files = {"read": tmp_path / "read", "certificate": pair.certificate, "key": pair.key, "ca": pair.certificate}
    Served(listen, **{name: str(files.get(value, value)) for name, value in told.items()}).close()
    assert ("answers everybody who can connect: set http_read_tokens" in caplog.text) is warned


def test_a_daemon_does_what_its_settings_say_and_shows_no_token(workplace: Workplace) -> None:
    (workplace.work / "tokens").write_text(READ)
    daemon = workplace.ha("host", "daemon", "orders", HA_HTTP_READ_TOKENS="tokens", HA_LISTEN="127.0.0.1:0")
    daemon.until_said("The HTTP API answers")
    port = int(daemon.said.partition("http://127.0.0.1:")[2].split(".")[0])
    assert [get(port, path, READ) for path in ("/livez", "/api/v1/jobs")] == [200, 200]
    assert [get(port, path, "another-token-of-mine") for path in ("/livez", "/api/v1/jobs")] == [200, 401]
    for shown in (daemon.said, *(Path(f"/proc/{daemon.pid}/{name}").read_text() for name in ("environ", "cmdline"))):
        assert READ not in shown


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    folder = tmp_path_factory.mktemp("certificates")
    return [make_certificate(folder, name) for name in ("one", "other", "client")]


def trusting(pair: Pair, own: Pair | None = None) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=str(pair.certificate))
    if own is not None:
        made.load_cert_chain(own.certificate, own.key)
    return made


def test_with_a_certificate_there_is_tls_only(serve: Any, pairs: list[Pair]) -> None:
    one, other, _ = pairs
    served = serve(http_certificate=one.certificate, http_key=one.key)
    assert served.get("/livez", tls=trusting(one)) == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        served.get("/livez", tls=trusting(other))
    with pytest.raises((http.client.HTTPException, OSError)):
        served.get("/livez")
    old = trusting(one)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert served.get("/livez", tls=old) == 200


def test_new_certificates_count(
    serve: Any, pairs: list[Pair], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one, other, _ = pairs
    present = Pair(tmp_path / "certificate", tmp_path / "key")
    replace(present.certificate, one.certificate.read_text())
    replace(present.key, one.key.read_text())
    served = serve(http_certificate=present.certificate, http_key=present.key)
    assert served.get("/livez", tls=trusting(one)) == 200
    replace(present.certificate, other.certificate.read_text())
    assert served.get("/livez", tls=trusting(one)) == 200, "the new key is not there yet"
    assert "cannot be used" in caplog.text
    replace(present.key, other.key.read_text())
    assert served.get("/livez", tls=trusting(other)) == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        served.get("/livez", tls=trusting(one))


def test_a_client_may_need_a_certificate(serve: Any, pairs: list[Pair], tmp_path: Path) -> None:
    one, other, client = pairs
    authority = tmp_path / "authority"
    replace(authority, client.certificate.read_text())
    served = serve(http_certificate=one.certificate, http_key=one.key, http_client_ca=authority)
    assert served.get("/livez", tls=trusting(one, client)) == 200
    for wrong in (None, other):
        with pytest.raises((ssl.SSLError, http.client.HTTPException, OSError)):
            served.get("/livez", tls=trusting(one, wrong))
    replace(authority, other.certificate.read_text())
    assert served.get("/livez", tls=trusting(one, other)) == 200
    with pytest.raises((ssl.SSLError, http.client.HTTPException, OSError)):
        served.get("/livez", tls=trusting(one, client))


def test_a_key_of_another_certificate_is_refused(pairs: list[Pair]) -> None:
    one, other, _ = pairs
    with pytest.raises(InvalidSettings, match="KEY_VALUES_MISMATCH"):
        access_of(Settings.of(http_certificate=str(one.certificate), http_key=str(other.key)))


def test_half_a_handshake_ends_in_a_flood(serve: Any, pairs: list[Pair], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ha.listening.server.most_connections", lambda: 2)
    one = pairs[0]
    served = serve(http_certificate=one.certificate, http_key=one.key)
    silent = [socket.create_connection(("localhost", served.port), PATIENCE_S) for _ in range(10)]
    assert served.get("/livez", tls=trusting(one)) == 200
    assert silent[0].recv(1) == b""
    for each in silent:
        each.close()


def test_only_networks_that_are_allowed_are_answered(serve: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert serve(http_networks="10.0.0.0/8, 127.0.0.1").get("/livez") == 200
    with caplog.at_level(logging.WARNING):
        foreign = serve(http_networks="10.0.0.0/8,::/0")
        for _ in range(3):
            with pytest.raises((http.client.HTTPException, OSError)):
                foreign.get("/livez")
    assert [record.message for record in caplog.records] == [
        "The HTTP API has turned away 127.0.0.1: its network is not in http_networks."
    ]


def test_an_address_of_ipv4_may_be_written_as_one_of_ipv6() -> None:
    access = access_of(Settings.of(http_networks="10.0.0.0/8"))
    assert [access.admits(each) for each in ("10.1.2.3", "::ffff:10.1.2.3", "11.1.2.3", "::1", "fe80::1%lo")] == [
        True, True, False, False, False,
    ]  # fmt: skip
