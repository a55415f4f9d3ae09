"""Checks of the servers: which NameNode is active, and how ZooKeeper is, as each server says itself."""

import json
import re
import socket
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ha.config.settings import Settings
from ha.doctor.finding import Finding, failed, ok, warning
from ha.groups.placement.load import session_of
from store.clock import now
from store.errors import Invalid, NotFound, StoreError
from store.hadoop_errors import configuration, namenodes
from store.zookeeper import Connection, Get, Sync, ZooKeeper

if TYPE_CHECKING:
    import requests

ANSWER_WITHIN_S = 2.0
MAX_ANSWER_BYTES = 100_000
STATUS = "/jmx?qry=Hadoop:service=NameNode,name=NameNodeStatus"
NAMENODES = "namenodes"
ZOOKEEPER = "zookeeper"
SLOW_S = 0.1


def hadoop() -> Mapping[str, str]:
    """Return Hadoop's settings; none if they cannot be read, which the file system's check reports."""
    try:
        return configuration()
    except Invalid:
        return {}


def check_namenodes(files: str, ca: str = "") -> Iterator[Finding]:
    """Yield the mode of each NameNode behind a nameservice, as its own web server says it.

    Args:
        files: URI of the file system.
        ca: file with the authorities that sign the servers' certificates; empty for those of this host.
    """
    parts = urlsplit(files)
    if parts.scheme not in {"hdfs", "webhdfs", "swebhdfs"} or not parts.netloc or parts.port is not None:
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
        with session.get(server + STATUS, timeout=ANSWER_WITHIN_S, stream=True) as answer:
            if answer.status_code != HTTPStatus.OK:
                return f"unknown (HTTP {answer.status_code})"
            said = answer.raw.read(MAX_ANSWER_BYTES, decode_content=True)
        return str(json.loads(said)["beans"][0]["State"])
    except (OSError, ValueError, LookupError, TypeError) as error:  # those of requests are errors of the system
        return f"unknown ({type(error).__name__})"


def check_zookeeper(settings: Settings, zookeeper: ZooKeeper | None) -> Iterator[Finding]:
    """Yield how ZooKeeper is: each server's mode, the session, the latency of a confirmation, and who may write."""
    if zookeeper is None:
        yield warning(
            ZOOKEEPER,
            "There is none.",
            "Set `zookeeper`: without it, a crash is noticed after short_ttl, and each reader asks the file system.",
        )
        return
    zookeeper.start()
    if zookeeper.wait(settings.session_timeout) is not Connection.CONNECTED:
        refused = ", ".join(f"{reason.value}" for reason in zookeeper.refusals) or "no server answers"
        remedy = "Check `zookeeper`, its logins and the network. Jobs go on without it."
        yield failed(ZOOKEEPER, f"{settings.zookeeper} does not serve this process: {refused}.", remedy)
        return
    session = zookeeper.session
    granted = session.timeout if session is not None else settings.session_timeout
    if granted != settings.session_timeout:
        yield warning(
            "session",
            f"ZooKeeper grants a session timeout of {granted:g} s; session_timeout is {settings.session_timeout:g} s.",
            "Change session_timeout, or maxSessionTimeout of the servers.",
        )
    yield _latency(zookeeper, settings.timing.session_timeout)
    if settings.zookeeper_security.ca:
        yield ok("ensemble", "Its servers are asked over TLS; they say their modes on their admin ports only.")
    else:
        yield _ensemble(zookeeper)
    yield _access(settings)


def _ensemble(zookeeper: ZooKeeper) -> Finding:
    modes = [(f"{host}:{port}", _server_mode(host, port)) for host, port in zookeeper.address.servers]
    text = ", ".join(f"{server} {mode}" for server, mode in modes) + "."
    if any(mode == "silent" for _, mode in modes):
        return warning("ensemble", text, "Start the silent ones, or allow `srvr` there (4lw.commands.whitelist).")
    return ok("ensemble", text)


def _latency(zookeeper: ZooKeeper, timeout: float) -> Finding:
    started = now()
    try:
        zookeeper.call(Sync("/"), timeout)
        zookeeper.call(Get("/"), timeout)
    except NotFound:
        return ok(ZOOKEEPER, "It answers; its chroot does not exist yet.")
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
        return "silent"
    mode = re.search(r"^Mode: (\w+)", answer, re.MULTILINE)
    return mode[1] if mode else "silent"


def _access(settings: Settings) -> Finding:
    if settings.zookeeper_security.closed:
        return ok("access", "Nodes are made so that only this login may change them.")
    return warning(
        "access",
        "Everybody who reaches ZooKeeper may write its nodes.",
        "Set zookeeper_auth or zookeeper_tls_certificate, or let only trusted hosts reach it: see docs/security.md.",
    )
