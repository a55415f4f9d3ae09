"""Two hosts on this machine: network namespaces with names, homes and shared memory of their own, and a wire between.

Servers of the sandbox listen on the loopback of this machine. So for each of their ports a relay listens where hosts
look for it: on the wire, under the host name ``stores``, and on the loopback of each host, because a NameNode tells
clients the address of its DataNode. A process of this test holds all relays.
"""

import asyncio
import ctypes
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

IP = shutil.which("ip") or "ip"
COMMAND_S = 20
NETWORK = "10.213.77"
STORES = "stores"
_CLONE_NEWNET = 0x40000000
_BUFFER = 1 << 16

# A host sees its own name and host table, and shares no memory with others. Its first argument is a directory.
_ENTER = (
    'hostname "$HOST" && mount --bind "$1/hosts" /etc/hosts && mount -t tmpfs shm /dev/shm && cd "$1" && shift '
    '&& exec "$@"'
)


class Unavailable(Exception):
    """This machine makes no hosts; the text says why."""


class Host:
    def __init__(self, name: str, space: str, folder: Path) -> None:
        self.name, self.space, self.folder = name, space, folder
        (folder / "home").mkdir(parents=True)

    def command(self, script: str) -> list[str]:
        enter = ["ip", "netns", "exec", self.space, "unshare", "--uts", "--mount", "sh", "-c", _ENTER, "sh"]
        return [*enter, str(self.folder), "bash", "-euo", "pipefail", "-c", script]

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of this host's processes: nothing of this project's settings is inherited."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HA_", "HADOOP_", "PYTHON"))}
        return {**kept, "HOME": str(self.folder / "home"), "HOST": self.name, **variables}

    def processes(self) -> list[int]:
        found = subprocess.run(
            [IP, "netns", "pids", self.space], capture_output=True, text=True, timeout=COMMAND_S, check=True
        )
        return [int(line) for line in found.stdout.split()]


@contextmanager
def hosts(folder: Path, names: Iterable[str], ports: Iterable[int]) -> Iterator[list[Host]]:
    """Make hosts that reach each other, and the servers on these ports; afterwards nothing is left of them.

    Raises:
        Unavailable: there are no namespaces here, or not for this user.
    """
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
        raise Unavailable("Hosts are network namespaces: they need root, `ip` (iproute2) and `unshare`.")
    # The wire is in a namespace of its own: this machine's packet filter has no say there, and its links do not change.
    middle = f"ha{os.getpid()}"
    made: list[Host] = []
    try:
        try:
            _ip("netns", "add", middle)
            _ip("-n", middle, "link", "add", "wire", "type", "bridge")
            _up(middle, "wire", 254)
            for number, name in enumerate(names, 1):
                made.append(Host(name, f"{middle}-{name}", folder / name))
                _connect(middle, made[-1], number)
        except subprocess.CalledProcessError as error:
            raise Unavailable(f"No network can be made here: {error.stderr.strip()}") from error
        table = "".join(f"{NETWORK}.{number} {host.name}\n" for number, host in enumerate(made, 1))
        for host in made:
            (host.folder / "hosts").write_text(f"127.0.0.1 localhost\n{NETWORK}.254 {STORES}\n{table}")
        with _relays(middle, made, list(ports)):
            yield made
    finally:
        for host in made:
            end(host)
        for space in (*(host.space for host in made), middle):
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", space)


def end(host: Host) -> None:
    """Kill what still runs on a host, as the loss of its power does."""
    with suppress(subprocess.CalledProcessError):
        for pid in host.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, 9)


def _connect(middle: str, host: Host, number: int) -> None:
    plug = f"plug{number}"
    _ip("netns", "add", host.space)
    _ip("link", "add", "wire", "netns", host.space, "type", "veth", "peer", "name", plug, "netns", middle)
    _ip("-n", middle, "link", "set", plug, "master", "wire", "up")
    _up(host.space, "wire", number)


def _up(space: str, link: str, number: int) -> None:
    _ip("-n", space, "addr", "add", f"{NETWORK}.{number}/24", "dev", link)
    for each in ("lo", link):
        _ip("-n", space, "link", "set", each, "up")


def _ip(*arguments: str) -> None:
    subprocess.run([IP, *arguments], check=True, capture_output=True, text=True, timeout=COMMAND_S)


@contextmanager
def _relays(middle: str, made: list[Host], ports: list[int]) -> Iterator[None]:
    listening: list[tuple[socket.socket, int]] = []
    for space, address in [(middle, f"{NETWORK}.254"), *((host.space, "127.0.0.1") for host in made)]:
        with _inside(space):
            listening += [(_listen(address, port), port) for port in ports]
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_serve, args=(loop, listening), name="relays", daemon=True)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(COMMAND_S)
        for each, _ in listening:
            each.close()


@contextmanager
def _inside(space: str) -> Iterator[None]:
    """Be in a namespace for a moment, with this thread: a socket that is made there stays there."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open("rb") as here, Path("/run/netns", space).open("rb") as there:
        if libc.setns(there.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            libc.setns(here.fileno(), _CLONE_NEWNET)


def _listen(address: str, port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((address, port))
    made.listen()
    return made


def _serve(loop: asyncio.AbstractEventLoop, listening: list[tuple[socket.socket, int]]) -> None:
    servers = [loop.run_until_complete(asyncio.start_server(_relay_to(port), sock=each)) for each, port in listening]
    loop.run_forever()
    for server in servers:
        server.close()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))
    loop.run_until_complete(asyncio.sleep(0.1))  # transports that were aborted close their sockets
    loop.close()


def _relay_to(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            inwards, outwards = await asyncio.open_connection("127.0.0.1", port)
            writers.append(outwards)
            await asyncio.gather(_copy(reader, outwards), _copy(inwards, writer))
        except (OSError, asyncio.CancelledError):  # the server is down, or the hosts are taken down
            return
        finally:
            for each in writers:
                each.transport.abort()

    return relay


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_BUFFER):
            writer.write(data)
            await writer.drain()
    writer.close()
