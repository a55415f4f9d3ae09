"""Traits: what a store is like, by the scheme of its URIs. A new store is a row here, and a driver."""

import re
from typing import NamedTuple

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):")


class Traits(NamedTuple):
    """One kind of store."""

    local: bool = False  # whether it is a file system of this host, which processes of other hosts do not see
    # what Hadoop's settings call the address of a NameNode that its URIs name; empty without NameNodes
    address: str = ""
    encrypted: bool = False  # whether it is reached by HTTPS


BY_SCHEME = {
    "": Traits(local=True),
    "file": Traits(local=True),
    "hdfs": Traits(address="rpc-address"),
    "webhdfs": Traits(address="http-address"),
    "swebhdfs": Traits(address="http-address", encrypted=True),
}
"""A path alone is one of this host. What ``viewfs`` mounts is another one of these."""


def traits(uri: str) -> Traits:
    """Return those of the store of a URI, or of the first of several; for an unknown one none of them is true."""
    found = _SCHEME.match(uri)
    return BY_SCHEME.get(found[1] if found else "", Traits())
