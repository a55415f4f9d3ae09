"""ZooKeeper servers: their configuration, and their answers about their state."""

import re
import socket
from pathlib import Path

from ha.sandbox.launcher import LaunchedProgram
from ha.sandbox.ports import LOOPBACK
from ha.sandbox.secured import Secured
from ha.sandbox.state import Server, State

TICK_MS = 500
MIN_SESSION_TIMEOUT_MS = 1_000
MAX_SESSION_TIMEOUT_MS = 40_000

_INIT_LIMIT_TICKS = 20  # 10 s for a follower to connect and catch up: a busy laptop starts three JVMs at once
_SYNC_LIMIT_TICKS = 6  # 3 s until a silent follower or leader is given up
_ANSWER_TIMEOUT_S = 1.0


def configure(server: Server, state: State, data: Path) -> Path:
    """Write a server's configuration into its data directory; return the file."""
    home, ensemble = data / server.name, state.of("zookeeper")
    (home / "store").mkdir(parents=True, exist_ok=True)
    lines = [
        f"tickTime={TICK_MS}",
        f"minSessionTimeout={MIN_SESSION_TIMEOUT_MS}",
        f"maxSessionTimeout={MAX_SESSION_TIMEOUT_MS}",
        f"initLimit={_INIT_LIMIT_TICKS}",
        f"syncLimit={_SYNC_LIMIT_TICKS}",
        f"dataDir={home / 'store'}",
        f"clientPort={server.ports['client']}",
        f"clientPortAddress={LOOPBACK}",
        "maxClientCnxns=0",
        "admin.enableServer=false",
        "4lw.commands.whitelist=ruok,srvr,stat,mntr,isro",
    ]
    if len(ensemble) > 1:
        (home / "store" / "myid").write_text(f"{server.number}\n", encoding="ascii")
        # Without local sessions a read-only server of 3.9 refuses every session, even one that only wants to read; a
        # session becomes an ordinary one when it creates an ephemeral node.
        lines += ["localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"]
        lines += [
            f"server.{each.number}={LOOPBACK}:{each.ports['quorum']}:{each.ports['election']}" for each in ensemble
        ]
    if state.secured:
        lines += Secured(state).zookeeper_lines(server)
    path = home / "zoo.cfg"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def program(server: Server, state: State, data: Path) -> LaunchedProgram:
    properties = {
        # A server that lost its quorum goes on answering reads to clients that accept that.
        "readonlymode.enabled": "true",
        # Its logs grow in steps of this many KB, instead of 64 MB per start.
        "zookeeper.preAllocSize": "1024",
        **(Secured(state).zookeeper_properties() if state.secured else {}),
    }
    main, configuration = "org.apache.zookeeper.server.quorum.QuorumPeerMain", data / server.name / "zoo.cfg"
    return LaunchedProgram(main, (str(configuration),), properties)


def mode(server: Server) -> str | None:
    """Return ``leader``, ``follower``, ``standalone`` or ``read-only``; None if it does not serve."""
    chunks = []
    try:
        with socket.create_connection((LOOPBACK, server.ports["client"]), _ANSWER_TIMEOUT_S) as connection:
            connection.sendall(b"srvr")
            while chunk := connection.recv(65_536):
                chunks.append(chunk)
    except OSError:
        return None
    said = re.search(r"^Mode: (.*)$", b"".join(chunks).decode("utf-8", errors="replace"), re.MULTILINE)
    return said[1] if said else None


def not_ready(server: Server) -> str | None:
    """Return what keeps a server from serving reads and writes; None if nothing does."""
    current = mode(server)
    if current is None:
        return "it does not serve yet"
    return "it has no quorum and only serves reads" if current == "read-only" else None
