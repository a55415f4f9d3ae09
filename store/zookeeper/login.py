"""Login: kazoo's arguments for a connection, and the meaning of a failed attempt for the login and for TLS."""

import socket
import ssl
from collections.abc import Iterable, Iterator
from typing import Any

from kazoo.exceptions import AuthFailedError, SessionClosedRequireSaslError
from kazoo.protocol.connection import SASLException
from kazoo.security import CREATOR_ALL_ACL, Permissions, make_acl

from store.zookeeper.refusals import Reason
from store.zookeeper.security import DIGEST, KERBEROS, SASL_DIGEST, CredentialsError, Security, read_credentials

PROBE_S = 0.5  # for asking one server whether it speaks TLS; the connection thread does nothing else meanwhile
SERVICE = "zookeeper"  # first part of the servers' Kerberos principal, as ZooKeeper's own client has it
Refusal = tuple[Reason, str]


def auth_data(security: Security) -> set[tuple[str, str]]:
    """Return what is sent after a connection was made, without SASL; CredentialsError for a bad password file."""
    return {("digest", ":".join(read_credentials(security.credentials)))} if security.auth == DIGEST else set()


def sasl_options(security: Security) -> dict[str, str] | None:
    """Return how to log in with SASL, None without; CredentialsError for a bad password file."""
    if security.auth == KERBEROS:
        return {"mechanism": "GSSAPI", "service": SERVICE}
    if security.auth != SASL_DIGEST:
        return None
    user, password = read_credentials(security.credentials)
    return {"mechanism": "DIGEST-MD5", "service": SERVICE, "username": user, "password": password}


def tls_context(security: Security) -> ssl.SSLContext:
    """Return how to speak TLS: only the named authority is trusted, and a server's name must be right."""
    # CredentialsError: a file cannot be used.
    path = security.ca
    try:
        context = ssl.create_default_context(cafile=path)
        if security.certificate:
            path = security.certificate
            context.load_cert_chain(security.certificate, security.key or None, password="")
    except (OSError, ValueError) as error:  # ssl's own are OSErrors
        raise CredentialsError(f"{path} or its key cannot be used for TLS ({_shown(error)}).") from error
    return context


def access_list(security: Security) -> list[Any] | None:
    """Return who may do what with the nodes that this process makes; None if everybody may do everything."""
    if not security.closed:
        return None
    return [*CREATOR_ALL_ACL, *(make_acl(scheme, who, read=True) for scheme, who in security.reader_ids())]


def is_open(acls: Iterable[Any]) -> bool:
    """Return whether an access list lets everybody do more than read."""
    return any(each.id.scheme == "world" and each.perms & ~Permissions.READ for each in acls)


def refusal_of(error: BaseException, server: str, *, tls: bool, sasl: bool) -> Refusal | None:
    """Return why this server did not take the connection; None if the error is none of a login or of TLS."""
    if isinstance(error, CredentialsError):
        return Reason.CREDENTIALS, str(error)
    chain = list(_chain(error))
    return _of_tls(chain, server, tls) or _of_login(chain, server, sasl)


def _of_tls(chain: list[BaseException], server: str, tls: bool) -> Refusal | None:
    ours = next((each for each in chain if isinstance(each, ssl.SSLError)), None)
    if ours is not None:
        return Reason.TLS, f"TLS with {server} failed ({_shown(ours)}): check the certificates of both sides."
    if tls and any(isinstance(each, ConnectionResetError) for each in chain):
        return Reason.TLS, f"{server} ended the connection when TLS began: it may speak none at this port."
    return None


def _of_login(chain: list[BaseException], server: str, sasl: bool) -> Refusal | None:
    if any(isinstance(each, SessionClosedRequireSaslError) for each in chain):
        if sasl:  # this is what a server says to a wrong password, too
            return Reason.LOGIN_FAILED, f"{server} does not accept the login: check zookeeper_credentials."
        return Reason.LOGIN_REQUIRED, f"{server} serves only clients that log in with SASL: set zookeeper_auth."
    if any(isinstance(each, AuthFailedError | SASLException) for each in chain):
        return Reason.LOGIN_FAILED, f"the login at {server} failed ({_shown(chain[-1])}): check zookeeper_auth."
    return None


def wants_tls(host: str, port: int) -> Refusal | None:
    """Ask a server that has ended a plain connection without a word whether it speaks TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is sent and nothing is believed
    try:
        with socket.create_connection((host, port), PROBE_S) as plain:
            plain.settimeout(PROBE_S)
            context.wrap_socket(plain).close()
    except ssl.SSLError as error:
        if "ALERT" not in (error.reason or ""):
            return None
    except OSError:
        return None
    return Reason.TLS, f"{host}:{port} speaks TLS only: set zookeeper_tls_ca."


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Return the error and its causes, the last one first in time."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _shown(error: BaseException) -> str:
    reason = getattr(error, "verify_message", None) or getattr(error, "reason", None) or str(error)
    return str(reason or type(error).__name__)
