"""Paths that every driver accepts, checked in one place: a name accepted on one file system is accepted on all."""

import re

from store.errors import Invalid
from store.files import MAX_COMPONENT_BYTES

STAGING = ".staging"  # names that begin with this are the drivers' own: half-written files on their way to their place

# Nearly every path of the protocol looks like this, and one match is cheaper than looking at each component.
_PLAIN_COMPONENT = r"[A-Za-z0-9_=~+@%-][A-Za-z0-9._=~+@%-]{0,254}"
_PLAIN = re.compile(rf"{_PLAIN_COMPONENT}(?:/{_PLAIN_COMPONENT})*")

_FIRST_PRINTABLE = 0x20
_DELETE = 0x7F
_SURROGATES = range(0xD800, 0xE000)


def check(path: str, *, root: bool = False) -> str:
    """Return the path, below a driver's root, if every driver accepts it, else Invalid; an empty one with ``root``."""
    if _PLAIN.fullmatch(path) or (root and not path):
        return path
    if not path:
        raise Invalid("The root itself cannot be the object of this operation.")
    for component in path.split("/"):
        _check_component(component, path)
    return path


def _check_component(component: str, path: str) -> None:
    if component in {"", ".", ".."}:
        raise Invalid(f"The path {path!r} has an empty, '.' or '..' component; paths are relative and normalised.")
    if ":" in component:
        raise Invalid(f"The name {component!r} has a colon, which HDFS refuses in names; escape it.")
    if component.startswith(STAGING):
        raise Invalid(f"The name {component!r} begins with {STAGING!r}, which is kept for the drivers' own files.")
    for character in component:
        code = ord(character)
        if code < _FIRST_PRINTABLE or code == _DELETE or code in _SURROGATES:
            raise Invalid(f"The name {component!r} has a control character of ASCII or a lone surrogate; escape it.")
    size = len(component.encode())
    if size > MAX_COMPONENT_BYTES:
        raise Invalid(f"The name {component[:40]!r}... has {size} bytes; at most {MAX_COMPONENT_BYTES} are possible.")


def hidden(name: str) -> bool:
    """Return whether an entry is a driver's own, left out of listings."""
    return name.startswith(STAGING)


def parent(path: str) -> str:
    """Return the path of the directory that holds the entry; the empty path is the root."""
    return path.rpartition("/")[0]


def sibling(path: str, name: str) -> str:
    """Return the path of an entry called ``name`` in the same directory."""
    above = parent(path)
    return f"{above}/{name}" if above else name
