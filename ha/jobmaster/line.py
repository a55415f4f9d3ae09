r"""The opening line, for protocols other than HTTP: one line each way, then the connection is the protocol's.

    caller:      hybrid-ha <job> <epoch> <session id>\n
    job master:  hybrid-ha <verdict> <epoch> <session id>\n

An accepted connection can outlive the leadership: its server must close it in ``leadership.on_revoked``.
"""

import re
import socket

from ha.jobmaster.connecting import connect
from ha.jobmaster.errors import NotExecuted
from ha.jobmaster.master import JobMaster, has_tls, reach
from ha.jobmaster.security import Security
from ha.jobmaster.verdict import Leading, Verdict, check
from store.clock import now

MAX_LINE_BYTES = 256
"""The length of a line: the longest job name, an epoch and a UUID fit."""

_CALL = re.compile(rb"hybrid-ha ([!-~]{1,128}) ([0-9]{1,18}) ([!-~]{1,36})\n")
_ANSWER = re.compile(rb"hybrid-ha ([a-z-]{1,20}) ([0-9]{1,18}) ([!-~]{1,36})\n")


def open_line(master: JobMaster, deadline: float, timeout: float, security: Security) -> socket.socket:
    """Connect to a job master, and return the connection once it has accepted.

    Args:
        master: the job master.
        deadline: boot-clock seconds.
        timeout: seconds for each operation on the connection afterwards.
        security: of TLS; no token is sent.

    Raises:
        InvalidName: its address cannot be called.
        NotExecuted: it did not accept; only the line was sent.
    """
    host, port, _ = reach(master)
    connection = connect(host, port, deadline, security.context(host, tls=has_tls(master)))
    try:
        _agree(connection, master, deadline)
    except OSError as error:
        connection.close()
        raise NotExecuted(f"{master.address} did not answer ({error})") from error
    except BaseException:
        connection.close()
        raise
    connection.deadline = float("inf")
    connection.settimeout(timeout)
    return connection


def _agree(connection: socket.socket, master: JobMaster, deadline: float) -> None:
    connection.sendall(f"hybrid-ha {master.job} {master.epoch} {master.session_id}\n".encode())
    match = _ANSWER.fullmatch(_line(connection, deadline))
    if match is None:
        raise NotExecuted(f"{master.address} does not know this protocol")
    verdict, epoch, session_id = (each.decode() for each in match.groups())
    if (verdict, session_id) != (Verdict.ACCEPTED.value, master.session_id):
        raise NotExecuted(f"{master.address} says: {verdict}, epoch {epoch}")


def admit(connection: socket.socket, leader: Leading, timeout: float = 5.0) -> Verdict:
    """Read the line of a caller that has connected to this job master, and answer it.

    Args:
        connection: just accepted; it stays open, and keeps its time-out.
        leader: this process's :class:`ha.leadership.leadership.Leadership`.
        timeout: seconds for both lines.

    Returns:
        The verdict: close the connection unless it is ``ACCEPTED``.

    Raises:
        OSError: the connection broke, or the line did not come in time.
    """
    before, deadline = connection.gettimeout(), now() + timeout
    try:
        match = _CALL.fullmatch(_line(connection, deadline))
        said = (match[3].decode(), match[2].decode()) if match and match[1].decode() == leader.job else (None, None)
        verdict = check(leader, *said)
        connection.settimeout(max(0.001, deadline - now()))
        connection.sendall(f"hybrid-ha {verdict.value} {leader.epoch} {leader.session_id}\n".encode())
    finally:
        connection.settimeout(before)
    return verdict


def _line(connection: socket.socket, deadline: float) -> bytes:
    """Receive up to the end of a line, and no byte more: what follows belongs to the protocol."""
    line = b""
    while not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
        rest = deadline - now()
        if rest <= 0:
            raise TimeoutError("the line did not come in time")
        connection.settimeout(rest)
        byte = connection.recv(1)
        if not byte:
            break
        line += byte
    return line
