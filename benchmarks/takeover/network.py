"""Hosts that can be lost: network namespaces of this machine, each on its own cable to one bridge.

To lose a host is to pull its cable: its processes go on, and their packets are dropped in both directions. The servers
listen on loopback only, so packets from the bridge are translated to loopback. This needs root, ``ip`` and
``iptables``.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from ha.sandbox.ports import LOOPBACK

BRIDGE = "habench"
NETWORK = "10.213.7"
GATEWAY = f"{NETWORK}.1"
RULE = ("PREROUTING", "-i", BRIDGE, "-d", GATEWAY, "-p", "tcp", "-j", "DNAT", "--to-destination", LOOPBACK)
NAMESPACES = Path("/run/netns")
FIRST = 11
LOCK = Path("/run/habench.lock")
MOST = 200  # Most hosts at the same time


class NoNetwork(Exception):
    """Namespaces cannot be created here; the text says why."""


class LostHost:
    """A host that can be lost."""

    def __init__(self, number: int) -> None:
        self._name, self._cable = f"{BRIDGE}-{number}", f"{BRIDGE}{number}"
        address = f"{NETWORK}.{FIRST + number}/24"
        _ip("netns", "add", self._name)
        _ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self._name)
        _ip("-n", self._name, "addr", "add", address, "dev", "eth0")
        for device in ("eth0", "lo"):
            _ip("-n", self._name, "link", "set", device, "up")
        _ip("link", "set", self._cable, "master", BRIDGE, "up")

    def command(self, words: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self._name, *words]

    def lose(self) -> None:
        _ip("link", "set", self._cable, "down")

    def restore(self) -> None:
        _ip("link", "set", self._cable, "up")
        # An address resolution from before is about to fail: a connection attempt at that moment gets "no route".
        _ip("-n", self._name, "neigh", "flush", "dev", "eth0")


class Network:
    """The bridge, and the hosts on it."""

    def __init__(self) -> None:
        self._numbers = count()

    def host(self) -> LostHost:
        number = next(self._numbers)
        if number >= MOST:
            raise NoNetwork(f"there are {MOST} hosts already")
        return LostHost(number)

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return these variables for a process on such a host: with the bridge as the servers' address."""
        return {name: value.replace(LOOPBACK, GATEWAY) for name, value in variables.items()}


@contextmanager
def network() -> Iterator[Network]:
    """Create the bridge; at the end remove it and all hosts, whose processes must have ended by then."""
    if os.geteuid() != 0:
        raise NoNetwork("it needs root")
    if missing := [tool for tool in ("ip", "iptables") if shutil.which(tool) is None]:
        raise NoNetwork(f"there is no {missing[0]}")
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _take(lock)
        yield from _made()
    finally:
        os.close(lock)


def _take(lock: int) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise NoNetwork("another benchmark on this machine uses it") from None


def _made() -> Iterator[Network]:
    _clear()  # left over from an interrupted run
    _ip("link", "add", BRIDGE, "type", "bridge")
    try:
        _ip("addr", "add", f"{GATEWAY}/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        try:
            Path(f"/proc/sys/net/ipv4/conf/{BRIDGE}/route_localnet").write_text("1", encoding="ascii")
        except OSError as error:
            raise NoNetwork(f"loopback cannot be reached over a bridge ({error.strerror})") from error
        _run("iptables", "-t", "nat", "-A", *RULE)
        yield Network()
    finally:
        _clear()


def _clear() -> None:
    """Remove the bridge and everything that depends on it, if present."""
    for host in NAMESPACES.glob(f"{BRIDGE}-*"):
        with suppress(NoNetwork):
            _ip("netns", "delete", host.name)
    with suppress(NoNetwork):
        _run("iptables", "-t", "nat", "-D", *RULE)
    with suppress(NoNetwork):
        _ip("link", "delete", BRIDGE)


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode != 0:
        raise NoNetwork(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
