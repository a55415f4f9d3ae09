"""Checks of the servers: which NameNode is active, and how ZooKeeper is, as each server says itself."""

import logging
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ha.config.settings import Settings
from ha.doctor.finding import Finding, failed, ok, warning
from ha.placement.load import STATUS, beans, session_of
from store.clock import now
from store.errors import Invalid, NotFound, PermissionDenied, StoreError
from store.hadoop_errors import configuration, namenodes
from store.traits import traits
from store.zookeeper import Connection, Get, Sync, ZooKeeper, refusals
from store.zookeeper.refusals import Reason

if TYPE_CHECKING:
    import requests

ANSWER_WITHIN_S = 2.0
NAMENODES = "namenodes"
ZOOKEEPER = "zookeeper"
SLOW_S = 0.1
SILENT = "silent"

UNREACHED = "Check that a ZooKeeper server listens at `zookeeper`, and that this host reaches it."

REMEDIES = {
    Reason.LOGIN_REQUIRED: "Set zookeeper_auth and zookeeper_credentials: the servers ask for a login.",
    Reason.LOGIN_FAILED: "Check zookeeper_auth, and what this process logs in with.",
    Reason.CREDENTIALS: "Mend that file, or the setting that names it.",
    Reason.TLS: "Check zookeeper_tls_ca and the port: both sides must speak TLS, and know the other's certificate.",
    Reason.NOT_ALLOWED: "Log in as the one who made the chroot, or let its access list allow this process.",
}


def hadoop() -> Mapping[str, str]:
    """Return Hadoop's settings; none if they cannot be read, which the file system's check reports."""
    try:
        return configuration()
    except Invalid:
        return {}


def check_namenodes(files: str, ca: str = "") -> Iterator[Finding]:
    """Yield the mode of each NameNode behind a nameservice, as its own web server says it."""
    # `files`: URI of the file system. `ca`: file with the authorities that sign the servers' certificates; empty for
    # those of this host.
    parts = urlsplit(files)
    if not traits(files).address or not parts.netloc or parts.port is not None:
        return
    known = hadoop()
    scheme = "https" if known.get("dfs.http.policy") == "HTTPS_ONLY" else "http"
    try:
        found = namenodes(known, parts.netloc, f"{scheme}-address")
        session = session_of(known, ca)
    except Invalid as error:
        yield warning(NAMENODES, f"{error}", f"Add dfs.namenode.{scheme}-address of each NameNode to see their modes.")
        return
    except ImportError:
        found_out = "NameNodes with Kerberos cannot be asked for their modes."
        yield warning(NAMENODES, found_out, "To see them: pip install 'hybrid-ha[kerberos]'.")
        return
    with session:
        modes = [(address, _mode(session, f"{scheme}://{address}")) for address in found]
    text = ", ".join(f"{address} {mode}" for address, mode in modes) + "."
    active = sum(mode == "active" for _, mode in modes)
    if any(mode.startswith("unknown") for _, mode in modes):
        yield warning(NAMENODES, text, "Look at the one that does not answer; a takeover of HDFS needs both.")
    elif active == 1:
        yield ok(NAMENODES, text)
    else:
        yield failed(NAMENODES, text, "Exactly one must be active: see `hdfs haadmin -getAllServiceState`.")


def _mode(session: "requests.Session", server: str) -> str:
    try:
        return str(beans(session, server, STATUS)[0]["State"])
    except (OSError, ValueError, LookupError, TypeError) as error:  # those of requests are errors of the system
        return f"unknown ({error if f'{error}'.startswith('HTTP ') else type(error).__name__})"


def check_zookeeper(settings: Settings, zookeeper: ZooKeeper | None) -> Iterator[Finding]:
    """Yield how ZooKeeper is: each server's mode, the session, the latency of a confirmation, and who may write."""
    if zookeeper is None:
        yield warning(
            ZOOKEEPER,
            "There is none.",
            "Set `zookeeper`: without it, a crash is noticed after short_ttl, and each reader asks the file system.",
        )
        return
    said: list[str] = []
    with _heard(said):
        zookeeper.start()
        state = zookeeper.wait(settings.leadership.session_timeout)
    if state is not Connection.CONNECTED:
        refused = " ".join(said) or "no ZooKeeper server answers."
        settings_of = [REMEDIES[each] for each, count in zookeeper.refusals.items() if count]
        if zookeeper.refusals[Reason.TLS] and any(_server_mode(*each) != SILENT for each in zookeeper.address.servers):
            settings_of = [
                "They speak no TLS at that port: name their secureClientPort, or leave zookeeper_tls_ca out."
            ]
        remedy = f"{' '.join(settings_of) or UNREACHED} Jobs go on without it."
        yield failed(ZOOKEEPER, f"{settings.stores.zookeeper} does not serve this process: {refused}", remedy)
        return
    session = zookeeper.session
    wanted = settings.leadership.session_timeout
    granted = session.timeout if session is not None else wanted
    if granted != wanted:
        yield warning(
            "session",
            f"ZooKeeper grants a session timeout of {granted:g} s; session_timeout is {wanted:g} s.",
            f"Change session_timeout, or {'min' if granted > wanted else 'max'}SessionTimeout of the servers.",
        )
    yield _latency(zookeeper, settings.leadership.timing.session_timeout)
    if settings.stores.zookeeper_security.ca:
        yield ok("ensemble", "Its servers are asked over TLS; they say their modes on their admin ports only.")
    else:
        yield _ensemble(zookeeper)
    yield _access(settings)


@contextmanager
def _heard(said: list[str]) -> Iterator[None]:
    """Take what the client says of refusals, each once, from the log into the report."""

    def hear(record: logging.LogRecord) -> bool:
        said.append(record.getMessage().partition(": ")[2])
        return False

    refusals.log.addFilter(hear)
    try:
        yield
    finally:
        refusals.log.removeFilter(hear)


def _ensemble(zookeeper: ZooKeeper) -> Finding:
    modes = [(f"{host}:{port}", _server_mode(host, port)) for host, port in zookeeper.address.servers]
    text = ", ".join(f"{server} {mode}" for server, mode in modes) + "."
    if any(mode == SILENT for _, mode in modes):
        return warning("ensemble", text, "Start the silent ones, or allow `srvr` there (4lw.commands.whitelist).")
    return ok("ensemble", text)


def _latency(zookeeper: ZooKeeper, timeout: float) -> Finding:
    started = now()
    try:
        zookeeper.call(Sync("/"), timeout)
        zookeeper.call(Get("/"), timeout)
    except NotFound:
        return ok(ZOOKEEPER, "It answers; its chroot does not exist yet.")
    except PermissionDenied as error:
        return failed(ZOOKEEPER, f"{zookeeper.address} cannot be used: {error}", REMEDIES[Reason.NOT_ALLOWED])
    except StoreError as error:
        return failed(ZOOKEEPER, f"A confirmation failed: {error}", "Look at the servers' logs.")
    took = now() - started
    found = f"A confirmation (sync and read) took {took * 1000:.1f} ms."
    if took < SLOW_S:
        return ok(ZOOKEEPER, found)
    return warning(ZOOKEEPER, found, "Look at the disks of the ensemble: each sync waits for all of its log.")


def _server_mode(host: str, port: int) -> str:
    try:
        with socket.create_connection((host, port), ANSWER_WITHIN_S) as asked:
            asked.settimeout(ANSWER_WITHIN_S)
            asked.sendall(b"srvr")
            answer = asked.recv(4096).decode(errors="replace")
    except OSError:
        return SILENT
    mode = re.search(r"^Mode: (\w+)", answer, re.MULTILINE)
    return mode[1] if mode else SILENT


def _access(settings: Settings) -> Finding:
    if settings.stores.zookeeper_security.closed:
        return ok("access", "Nodes are made so that only this login may change them.")
    return warning(
        "access",
        "Everybody who reaches ZooKeeper may write its nodes.",
        "Set zookeeper_auth or zookeeper_tls_certificate, or let only trusted hosts reach it: see docs/security.md.",
    )
