"""Servers that want to know who asks: what is refused is said once, counted, and asked seldom."""

import importlib.util
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ha.sandbox.ports import free_ports
from ha.sandbox.secured import Certificate, key_store, make_authority, sign
from store import errors
from store.zookeeper import Children, Connection, Create, Delete, Exists, Get, Operation, Session, Set, Sync, ZooKeeper
from store.zookeeper.refusals import Reason
from store.zookeeper.security import Security
from tests.patience import PATIENCE_S
from tests.unit.ha.waiting import wait_until
from tests.unit.store.zookeeper.helpers import ASKED_S, Heard, Server, connected

pytestmark = pytest.mark.zookeeper

SENTENCE = "ZooKeeper does not attest this process: "
JAAS = 'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_alice="wonder"; };'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secured")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed (Debian: openssl)")
    return make_authority(folder / "keys")


@pytest.fixture(scope="module")
def strict(folder: Path) -> Iterator[Server]:
    options = (
        "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "sessionRequireClientSASLAuth=true",
    )
    jaas = folder / "jaas.conf"
    jaas.write_text(JAAS)
    server = Server(folder / "strict", [tuple(free_ports(3))], 1, *options)  # type: ignore[list-item]
    server.properties = [f"-Djava.security.auth.login.config={jaas}"]
    server.up()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def encrypted(folder: Path, authority: Certificate) -> Iterator[Server]:
    """A server with a second port that speaks TLS and wants a certificate; ``hosts`` is the plain one."""
    mine = sign(authority, folder / "keys", "server")
    port, secure = free_ports(2)
    options = (
        f"secureClientPort={secure}",
        "secureClientPortAddress=127.0.0.1",
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        f"ssl.keyStore.location={key_store(mine, 'secret')}",
        "ssl.keyStore.type=PKCS12",
        "ssl.keyStore.password=secret",
        f"ssl.trustStore.location={shutil.copy(authority.certificate, folder / 'authority.pem')}",
        "ssl.trustStore.type=PEM",
        "ssl.clientAuth=need",
    )
    server = Server(folder / "encrypted", [(port, 0, 0)], 1, *options)
    server.secure = f"127.0.0.1:{secure}"
    server.up()
    with connected(server.hosts):
        pass
    yield server
    server.kill()


def refused(zookeeper: ZooKeeper, reason: Reason, times: int = 1) -> None:
    wait_until(lambda: zookeeper.refusals[reason] >= times)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.message for each in caplog.records if each.message.startswith(SENTENCE)]


def test_a_server_that_wants_a_login_is_asked_seldom_and_told_of_once(
    strict: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    heard: list[Connection] = []
    zookeeper = ZooKeeper(strict.hosts, session_timeout=ASKED_S)
    try:
        zookeeper.add_listener(heard.append)
        zookeeper.start()
        refused(zookeeper, Reason.LOGIN_REQUIRED, 3)
        assert zookeeper._here().refusals.pause() >= 1.0, "each pause is longer than the one before"
        assert said(caplog) == [
            f"{SENTENCE}{strict.hosts} serves only clients that log in with SASL: set zookeeper_auth."
        ]
        assert not heard, "a connection that does not serve is none"
        with pytest.raises(errors.NotSent):
            zookeeper.call(Get("/"), 1)
    finally:
        zookeeper.close()


def test_a_server_that_wants_tls_is_asked_seldom_and_told_of_once(
    encrypted: Server, caplog: pytest.LogCaptureFixture
) -> None:
    zookeeper = ZooKeeper(encrypted.secure, session_timeout=ASKED_S)
    try:
        zookeeper.start()
        refused(zookeeper, Reason.TLS, 2)
        assert said(caplog) == [f"{SENTENCE}{encrypted.secure} speaks TLS only: set zookeeper_tls_ca."]
    finally:
        zookeeper.close()


with_sasl = pytest.mark.skipif(
    importlib.util.find_spec("puresasl") is None, reason="pure-sasl is missing: pip install 'hybrid-ha[kerberos]'"
)


def password(folder: Path, text: str) -> str:
    (folder / "password").write_text(text)
    return str(folder / "password")


@with_sasl
def test_a_password_is_read_anew_for_each_connection(
    strict: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "password"
    zookeeper = ZooKeeper(
        strict.hosts, session_timeout=ASKED_S, security=Security(auth="sasl-digest", credentials=str(path))
    )
    try:
        zookeeper.start()
        refused(zookeeper, Reason.CREDENTIALS)
        password(tmp_path, "alice:looking-glass")
        refused(zookeeper, Reason.LOGIN_FAILED)
        password(tmp_path, "alice:wonder")
        assert zookeeper.wait(PATIENCE_S) is Connection.CONNECTED
        zookeeper.call(Create("/mine", b"x"), PATIENCE_S)
        first, second = said(caplog)
        assert first == f"{SENTENCE}zookeeper_credentials: {path} cannot be read (No such file or directory)."
        assert second == f"{SENTENCE}{strict.hosts} does not accept the login: check zookeeper_credentials."
        assert not {"wonder", "looking-glass"} & set(caplog.text.replace(":", " ").replace("'", " ").split())
    finally:
        zookeeper.close()


@with_sasl
def test_a_login_that_fails_later_keeps_the_session(strict: Server, tmp_path: Path) -> None:
    security = Security(auth="sasl-digest", credentials=password(tmp_path, "alice:wonder"))
    with connected(strict.hosts, 7.0, security=security) as zookeeper:
        kept = zookeeper.session
        password(tmp_path, "alice:no")
        zookeeper._here()._kazoo.cut()
        refused(zookeeper, Reason.LOGIN_FAILED)
        password(tmp_path, "alice:wonder")
        assert zookeeper.wait(PATIENCE_S, Connection.CONNECTED) is Connection.CONNECTED
        assert zookeeper.session == kept


@pytest.fixture
def owner(encrypted: Server, authority: Certificate, folder: Path, tmp_path: Path) -> Iterator[ZooKeeper]:
    """A client that has made nodes over TLS, with a certificate and a password, for itself and one reader."""
    mine = sign(authority, folder / "keys", "owner")
    security = Security(
        auth="digest",
        credentials=password(tmp_path, "owner:secret"),
        ca=str(authority.certificate),
        certificate=str(mine.certificate),
        key=str(mine.key),
        acl="creator,digest:reader:BCvyqkgPlc4dRfu76YfAIpHOa3M=",
    )
    with connected(f"{encrypted.secure}/closed", security=security) as zookeeper:
        if zookeeper.call(Exists("/jobs/orders"), PATIENCE_S) is None:
            zookeeper.call(Create("/jobs/orders", b"leader", ephemeral=False, make_parents=True), PATIENCE_S)
        yield zookeeper


EVERYTHING: list[Operation[Any]] = [
    Get("/jobs/orders"), Children("/jobs"), Create("/jobs/forged"), Create("/sessions", ephemeral=False),
    Set("/jobs/orders", b"forged", -1), Delete("/jobs/orders", -1),
]  # fmt: skip


def test_a_stranger_is_refused_everything_and_has_no_effect(
    owner: ZooKeeper, encrypted: Server, caplog: pytest.LogCaptureFixture
) -> None:
    before = owner.call(Get("/jobs/orders"), PATIENCE_S)
    with connected(f"{encrypted.hosts}/closed") as stranger:
        for operation in EVERYTHING:
            with pytest.raises(errors.PermissionDenied):
                stranger.call(operation, PATIENCE_S)
        wait_until(lambda: stranger.refusals[Reason.NOT_ALLOWED] >= len(EVERYTHING))
    owner.call(Sync("/"), PATIENCE_S)
    assert owner.call(Get("/jobs/orders"), PATIENCE_S) == before
    assert owner.call(Children("/"), PATIENCE_S) == ["jobs"]
    assert owner.call(Children("/jobs"), PATIENCE_S) == ["orders"]
    assert len(said(caplog)) == 1, "once, whatever was not allowed"


def test_a_reader_that_was_named_may_read_and_no_more(owner: ZooKeeper, encrypted: Server, tmp_path: Path) -> None:
    security = Security(auth="digest", credentials=password(tmp_path, "reader:book"))
    with connected(f"{encrypted.hosts}/closed", security=security) as reader:
        assert reader.call(Get("/jobs/orders"), PATIENCE_S)[0] == b"leader"
        assert reader.call(Children("/jobs"), PATIENCE_S) == ["orders"]
        for operation in EVERYTHING[2:]:
            with pytest.raises(errors.PermissionDenied):
                reader.call(operation, PATIENCE_S)
    assert owner.call(Exists("/jobs/orders"), PATIENCE_S) is not None


def test_a_chroot_that_somebody_left_open_is_warned_of_once(
    encrypted: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with connected(f"{encrypted.hosts}/open") as stranger:
        stranger.call(Create("/x"), PATIENCE_S)
    security = Security(auth="digest", credentials=password(tmp_path, "owner:secret"))
    for chroot, warned in (("mine", 0), ("open", 1)):
        with connected(f"{encrypted.hosts}/{chroot}", security=security) as zookeeper:
            zookeeper.call(Exists("/"), PATIENCE_S)
            zookeeper._here()._make_chroot(zookeeper.session or Session(0, 1.0))  # as in another session
            zookeeper.call(Exists("/"), PATIENCE_S)
        found = [each.message for each in caplog.records if "is open to everybody" in each.message]
        assert len(found) == warned
    assert found[0].startswith(
        "The chroot /open in ZooKeeper is open to everybody, although zookeeper_acl is 'creator'"
    )


def test_a_server_that_the_authority_has_not_signed_is_not_believed(
    encrypted: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = make_authority(tmp_path)
    zookeeper = ZooKeeper(encrypted.secure, session_timeout=ASKED_S, security=Security(ca=str(other.certificate)))
    try:
        zookeeper.start()
        refused(zookeeper, Reason.TLS)
        wait_until(lambda: bool(said(caplog)))
        assert len(said(caplog)) == 1
        assert f"{SENTENCE}TLS with {encrypted.secure} failed (" in said(caplog)[0]
    finally:
        zookeeper.close()


def test_many_answers_over_tls_come_one_by_one(owner: ZooKeeper) -> None:
    """The kernel has nothing more to read when TLS has already taken several answers out of one packet."""
    heard = Heard()
    for number in range(1, 51):
        for _ in range(20):
            owner.submit(Get("/jobs/orders"), PATIENCE_S, heard)
        assert all(each.done for each in heard.wait(20 * number))
