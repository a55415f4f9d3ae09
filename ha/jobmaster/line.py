r"""The opening line, for protocols other than HTTP: one line each way, then the connection is the protocol's.

    caller:      hybrid-ha <job> <epoch> <session id>[ <token>]\n
    job master:  hybrid-ha <verdict> <epoch> <session id>\n

This is the caller's side; :mod:`ha.jobmaster.admitting` is the job master's.
"""

import re
import socket

from ha.jobmaster.connecting import connect
from ha.jobmaster.errors import NotExecuted
from ha.jobmaster.master import JobMaster, has_tls, reach
from ha.jobmaster.security import Security
from ha.jobmaster.verdict import Verdict
from store.clock import now

MAX_LINE_BYTES = 4096
"""The length of a line: the longest job name, an epoch, a UUID and a long token fit."""

_ANSWER = re.compile(rb"hybrid-ha ([a-z-]{1,20}) ([0-9]{1,18}) ([!-~]{1,36})\n")


def open_line(master: JobMaster, deadline: float, timeout: float, security: Security) -> socket.socket:
    """Connect to a job master, and return the connection once it has accepted.

    Args:
        master: the job master.
        deadline: boot-clock seconds.
        timeout: seconds for each operation on the connection afterwards.
        security: of TLS and tokens.

    Raises:
        InvalidName: its address cannot be called.
        NotExecuted: it did not accept; only the line was sent.
    """
    host, port, _ = reach(master)
    context = security.context(host, tls=has_tls(master))  # refuses to show a token without TLS
    call = " ".join(("hybrid-ha", master.job, str(master.epoch), master.session_id, *security.shown())) + "\n"
    if len(call) > MAX_LINE_BYTES:
        raise NotExecuted("jobmaster_token is too long for the opening line: use a shorter one", in_vain=True)
    connection = connect(host, port, deadline, context)
    try:
        _agree(connection, master, call.encode(), deadline)
    except OSError as error:
        connection.close()
        raise NotExecuted(f"{master.address} did not answer ({error})") from error
    except BaseException:
        connection.close()
        raise
    connection.deadline = float("inf")
    connection.settimeout(timeout)
    return connection


def _agree(connection: socket.socket, master: JobMaster, call: bytes, deadline: float) -> None:
    connection.sendall(call)
    match = _ANSWER.fullmatch(receive_line(connection, deadline))
    if match is None:
        raise NotExecuted(f"{master.address} does not know this protocol")
    verdict, epoch, session_id = (each.decode() for each in match.groups())
    if (verdict, session_id) != (Verdict.ACCEPTED.value, master.session_id):
        denied = verdict == Verdict.DENIED.value
        said = "it needs a token of the role operate: see jobmaster_token" if denied else f"{verdict}, epoch {epoch}"
        raise NotExecuted(f"{master.address} says: {said}", in_vain=denied)


def receive_line(connection: socket.socket, deadline: float) -> bytes:
    """Receive up to the end of a line, and no byte more: what follows belongs to the protocol.

    Raises:
        OSError: the connection broke, or the line did not come in time.
    """
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
