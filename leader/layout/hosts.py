"""Hosts in the names of contenders: whose order it is, and which two names may be one host. Pure."""

import re

OWN = re.compile(r"(?P<host>.+)-[0-9]+-[0-9a-f]{6}")
"""The name that a process gives itself: its host's, its process id, and letters drawn at its start."""


def own_name(host: str, pid: int, letters: str) -> str:
    """Return the name of a process that was given none."""
    return f"{host}-{pid}-{letters}"


def host_of(contender: str) -> str:
    """Return the host in the name of a process that has named itself; of another name all of it."""
    own = OWN.fullmatch(contender)
    return own["host"] if own else contender


def covers(name: str, contender: str) -> bool:
    """Whether an order for a name holds for a contender: the name is its own, or its host's."""
    return name in (contender, host_of(contender))


def alike(one: str, other: str) -> bool:
    """Whether two names may be one host: case does not count, nor does a domain that one of them leaves out."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    return short == long or ("." not in short and not short.isdigit() and long.startswith(f"{short}."))
