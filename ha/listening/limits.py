"""The limit of connections: how many one listening socket may hold, so that descriptors are left for the stores."""

import resource

MOST = 1024  # more are never needed, whatever the system allows
LEAST = 8  # so many are allowed even where the system allows next to nothing

SHARE = 4
"""A listening socket may hold this part of all descriptors. A process has at most two such sockets, so half of all
descriptors are left for the stores, the command and the program's own files."""


def most_connections() -> int:
    """Return the number of connections that one listening socket of this process may hold."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(LEAST, min(MOST, soft // SHARE))
