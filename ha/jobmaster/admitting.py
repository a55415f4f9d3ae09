"""Admitting: the job master's side of the opening line. A caller is answered first, and then has the connection.

Where tokens are set, a connection needs one of the role "operate": nobody knows here what it will be used for.
An accepted connection can outlive the leadership: its server must close it in ``leadership.on_revoked``.
"""

import re
import socket
from functools import lru_cache
from typing import Any

from ha.config.sources import load
from ha.jobmaster.line import receive_line
from ha.jobmaster.verdict import Leading, Verdict, check
from ha.listening.access import tokens_of
from ha.listening.tokens import Role
from store.clock import now

_CALL = re.compile(rb"hybrid-ha ([!-~]{1,128}) ([0-9]{1,18}) ([!-~]{1,36})(?: ([!-~]+))?\n")

_tokens = lru_cache(maxsize=16)(tokens_of)


def admit(connection: socket.socket, leader: Leading, timeout: float = 5.0, **settings: Any) -> Verdict:
    """Read the line of a caller that has connected to this job master, and answer it.

    Args:
        connection: just accepted; it stays open, and keeps its time-out.
        leader: this process's :class:`ha.leadership.leadership.Leadership`.
        timeout: seconds for both lines.
        settings: those whose names begin with ``http_``; default: as everywhere, the environment's and the file's.

    Returns:
        The verdict: close the connection unless it is ``ACCEPTED``.

    Raises:
        InvalidSettings: a setting is wrong, or a file of tokens cannot be read.
        OSError: the connection broke, or the line did not come in time.
    """
    found = load(settings)
    tokens = _tokens(found.http_read_tokens, found.http_operate_tokens)
    before, deadline = connection.gettimeout(), now() + timeout
    try:
        match = _CALL.fullmatch(receive_line(connection, deadline))
        job, epoch, session_id, token = (each.decode() for each in match.groups(b"")) if match else ("", "", "", "")
        if tokens.wanted and tokens.role_of(f"Bearer {token}") is not Role.OPERATE:
            verdict, present = Verdict.DENIED, "0 -"
        else:
            verdict = check(leader, *((session_id, epoch) if job == leader.job else (None, None)))
            present = f"{leader.epoch} {leader.session_id}"
        connection.settimeout(max(0.001, deadline - now()))
        connection.sendall(f"hybrid-ha {verdict.value} {present}\n".encode())
    finally:
        connection.settimeout(before)
    return verdict
