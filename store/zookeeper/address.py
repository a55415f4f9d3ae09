"""Address of a ZooKeeper ensemble, ``host:port,host:port/chroot``, and the paths that ZooKeeper accepts."""

import re

import msgspec

from store.errors import Invalid

DEFAULT_PORT = 2181
MAX_PORT = 65535
MAX_LABEL = 63
MAX_HOST = 253

# Characters that ZooKeeper's own PathUtils refuses; surrogates are among them, so an accepted path can be encoded.
_REFUSED = re.compile("[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]")
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?")
_IPV6 = re.compile(r"(?=[^%]*:)[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?")

DEFAULT_CHROOT = "/hybrid-ha"  # where the nodes are if an address names no other place


class Address(msgspec.Struct, frozen=True):
    """A ZooKeeper ensemble, and our directory in it."""

    # host and port of each server; one is picked at random at every attempt to connect
    servers: tuple[tuple[str, int], ...]
    chroot: str  # the path that is put before all others; empty for ZooKeeper's own root

    def __str__(self) -> str:
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.servers)
        return hosts + self.chroot


def parse(text: str, default_chroot: str) -> Address:
    """Read ``host:port,host:port/chroot``; Invalid says in one sentence how to correct it."""
    # The port defaults to 2181, the chroot to the given one; a final `/` is ZooKeeper's root; IPv6 in brackets.
    if not text.strip():
        raise Invalid("The list of ZooKeeper servers is empty: give it as host:port,host:port/chroot.")
    if re.search(r"\s", text):
        raise Invalid(f"The ZooKeeper servers {text!r} contain white space: separate servers by a comma alone.")
    hosts, slash, rest = text.partition("/")
    servers = tuple(_server(part, text) for part in hosts.split(","))
    return Address(servers, _chroot("/" + rest if slash else default_chroot))


def _server(part: str, text: str) -> tuple[str, int]:
    if not part:
        raise Invalid(f"A server is missing in {text!r}: write host:port between two commas, and none at the end.")
    if part.startswith("["):
        host, bracket, tail = part[1:].partition("]")
        if not bracket or not _IPV6.fullmatch(host) or tail[:1] not in ("", ":"):
            raise Invalid(f"{part!r} is not an IPv6 address: write it as [::1]:2181.")
        return host, _port(tail[1:], part) if tail else DEFAULT_PORT
    host, colon, port = part.partition(":")
    if ":" in port:
        raise Invalid(f"{part!r} has more than one colon: put an IPv6 address in brackets, as in [::1]:2181.")
    labels = host.removesuffix(".").split(".")
    if len(host) > MAX_HOST or not all(_LABEL.fullmatch(label) and len(label) <= MAX_LABEL for label in labels):
        raise Invalid(f"{host!r} in {part!r} is not a host name: use letters, digits, hyphens and dots.")
    return host, _port(port, part) if colon else DEFAULT_PORT


def _port(port: str, part: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", port):
        raise Invalid(f"The port in {part!r} is not a number: write host:port, as in {part.rpartition(':')[0]}:2181.")
    if not 1 <= int(port) <= MAX_PORT:
        raise Invalid(f"The port in {part!r} is out of range: it must be between 1 and {MAX_PORT}.")
    return int(port)


def _chroot(path: str) -> str:
    path = path.removesuffix("/")
    if path:
        check_path(path, "chroot")
    return path


def check_path(path: str, what: str = "path") -> None:
    """Raise Invalid, which says how to correct it, unless ZooKeeper accepts this absolute path."""
    if not path.startswith("/"):
        raise Invalid(f"The ZooKeeper {what} {path!r} is not absolute: start it with a slash.")
    if path == "/":
        return
    names = path[1:].split("/")
    if "" in names:
        raise Invalid(f"The ZooKeeper {what} {path!r} has an empty name: remove the extra slash.")
    if "." in names or ".." in names:
        raise Invalid(f"The ZooKeeper {what} {path!r} is relative: write it without '.' and '..'.")
    if _REFUSED.search(path):
        raise Invalid(f"The ZooKeeper {what} {path!r} has a character that ZooKeeper refuses: use printable ones.")


def ancestors(path: str) -> list[str]:
    """Return the directories above an absolute path, topmost first, without the root: ``/a/b/c`` has /a and /a/b."""
    names = path.split("/")[1:-1]
    return ["/" + "/".join(names[: end + 1]) for end in range(len(names))]
