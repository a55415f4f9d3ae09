"""Addresses to listen on: reads ``host:port``, and binds a socket to it."""

import re
import socket

from leader.errors import InvalidSettings
from leader.layout.contact import MAX_PORT

BACKLOG = 128

_IPV6 = r"[0-9A-Fa-f:.]+(?:%[A-Za-z0-9._-]+)?"
_LISTEN = re.compile(rf"([A-Za-z0-9._-]+|{_IPV6}|\[{_IPV6}\]):(0|[1-9][0-9]{{0,4}})")
"""A host name, an IPv4 address, or an IPv6 address with or without brackets; then the port."""


def parse_listen(listen: str, name: str = "listen") -> tuple[str, int]:
    """Read ``host:port``; error messages call the setting ``name``. InvalidSettings: it has another form."""
    match = _LISTEN.fullmatch(listen)
    if not match or int(match[2]) > MAX_PORT:
        raise InvalidSettings(f"{name} is {listen!r}: it must be host:port, such as 127.0.0.1:8300.")
    return match[1].strip("[]"), int(match[2])


def bind(listen: str, what: str, name: str = "listen") -> socket.socket:
    """Listen on ``host:port``; port 0 takes a free one."""
    # InvalidSettings: it is not an address, or is in use; the message begins with ``what``.
    host, port = parse_listen(listen, name)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except (OSError, UnicodeError) as error:  # UnicodeError: not even a host's name
        bound.close()
        reason = error.strerror if isinstance(error, OSError) else "it is not a host name"
        raise InvalidSettings(f"{what} cannot listen on {listen}: {reason}; choose another port.") from error
    return bound
