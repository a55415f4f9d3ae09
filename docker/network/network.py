#!/usr/bin/env python3
"""Breaks the network of one container, and mends it again.

docker run --rm --network container:TARGET --cap-add NET_ADMIN hybrid-ha/network VERB ...

    cut out|in|both IP...                        drop what goes to, comes from these addresses
    degrade --delay-ms 300 --loss 0.2 [IP...]    delay and drop what goes to them, or to all, until this is stopped
    mend                                         undo all of it
    show                                         what is in force, with counters

Rules are kept in two chains of their own, so mending is exact. A delay is made by this program, because not every
kernel has the netem scheduler: the kernel hands it each packet's number (NFQUEUE), and it lets the packet go later.
When it dies, the kernel lets packets pass at once (queue-bypass), and losses stay until they are mended.
"""

# ruff: noqa: S607, T201  # it looks for programs on the PATH and talks to people

import argparse
import contextlib
import ipaddress
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator

OUT = "HYBRID_HA"
IN = "HYBRID_HA_IN"
HOOKS = {OUT: "OUTPUT", IN: "INPUT"}

LONGEST_DELAY_MS = 60_000

QUEUE = 83
QUEUE_LENGTH = 65_536
BUFFER_BYTES = 8_000_000

# From linux/netlink.h, linux/netfilter/nfnetlink.h and nfnetlink_queue.h.
NETLINK_NETFILTER = 12
NLMSG_ERROR = 2
NLM_F_REQUEST, NLM_F_ACK = 1, 4
NFQNL_MSG_PACKET, NFQNL_MSG_VERDICT, NFQNL_MSG_CONFIG = (3 << 8 | kind for kind in (0, 1, 2))
NFQA_CFG_CMD, NFQA_CFG_PARAMS, NFQA_CFG_QUEUE_MAXLEN, NFQA_CFG_MASK, NFQA_CFG_FLAGS = 1, 2, 3, 4, 5
NFQA_CFG_F_FAIL_OPEN, NFQA_CFG_F_GSO = 1, 4
NFQNL_CFG_CMD_BIND = 1
NFQNL_COPY_META = 1
NFQA_PACKET_HDR, NFQA_VERDICT_HDR = 1, 2
NF_ACCEPT = 1

NLMSG = struct.Struct("=IHHII")  # length, type, flags, sequence, port
NFGEN = struct.Struct("!BBH")  # family, version, queue
NLA = struct.Struct("=HH")  # length, type


class Queue:
    """The kernel's queue of packets that wait for a verdict."""

    def __init__(self, number: int) -> None:
        """Bind the queue.

        Raises:
            OSError: without NET_ADMIN, or if another program has it.
        """
        self._number = number
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        with contextlib.suppress(OSError):  # only a larger one is better
            self.socket.setsockopt(socket.SOL_SOCKET, 33, BUFFER_BYTES)  # SO_RCVBUFFORCE
        self.socket.bind((0, 0))
        self._configure(NFQA_CFG_CMD, struct.pack("!BxH", NFQNL_CFG_CMD_BIND, socket.AF_INET))
        self._configure(NFQA_CFG_PARAMS, struct.pack("!IB", 0, NFQNL_COPY_META))  # of packets only their numbers
        self._configure(NFQA_CFG_QUEUE_MAXLEN, struct.pack("!I", QUEUE_LENGTH))
        flags = struct.pack("!I", NFQA_CFG_F_FAIL_OPEN | NFQA_CFG_F_GSO)  # a full queue lets pass; big ones stay whole
        self._configure(NFQA_CFG_FLAGS, flags, attribute(NFQA_CFG_MASK, flags))

    def packets(self) -> Iterator[int]:
        """Numbers of the packets that have come; waits for the first one."""
        try:
            received = self.socket.recv(65_536)
        except OSError:  # the buffer ran over: the kernel has let pass what it could not tell
            return
        for kind, body in messages(received):
            if kind == NFQNL_MSG_PACKET:
                header = dict(attributes(body[NFGEN.size :]))[NFQA_PACKET_HDR]
                yield int.from_bytes(header[:4], "big")

    def accept(self, packet: int) -> None:
        """Let a packet go on."""
        verdict = attribute(NFQA_VERDICT_HDR, struct.pack("!II", NF_ACCEPT, packet))
        self.socket.send(self._message(NFQNL_MSG_VERDICT, verdict, NLM_F_REQUEST))

    def _configure(self, kind: int, value: bytes, more: bytes = b"") -> None:
        self.socket.send(self._message(NFQNL_MSG_CONFIG, attribute(kind, value) + more, NLM_F_REQUEST | NLM_F_ACK))
        for answer, body in messages(self.socket.recv(65_536)):
            if answer == NLMSG_ERROR and (error := -int.from_bytes(body[:4], sys.byteorder, signed=True)):
                raise OSError(error, "the kernel refuses a queue of packets")

    def _message(self, kind: int, body: bytes, flags: int) -> bytes:
        body = NFGEN.pack(socket.AF_UNSPEC, 0, self._number) + body
        return NLMSG.pack(NLMSG.size + len(body), kind, flags, 0, 0) + body


def attribute(kind: int, value: bytes) -> bytes:
    """Return a netlink attribute, padded to four bytes."""
    return NLA.pack(NLA.size + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Take netlink attributes apart."""
    while len(data) >= NLA.size:
        length, kind = NLA.unpack_from(data)
        yield kind & 0x3FFF, data[NLA.size : length]
        data = data[length + (-length % 4) :]


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Take netlink messages apart."""
    while len(data) >= NLMSG.size:
        length, kind, *_ = NLMSG.unpack_from(data)
        yield kind, data[NLMSG.size : length]
        data = data[length + (-length % 4) :]


def hold(queue: Queue, delay: float) -> None:
    """Let each packet go when the delay is over. It is the same for all, so the first that came is the first to go."""
    held: deque[tuple[float, int]] = deque()
    while True:
        wait = max(0.0, held[0][0] - time.monotonic()) if held else None
        readable, _, _ = select.select([queue.socket], [], [], wait)
        now = time.monotonic()
        while held and held[0][0] <= now:
            queue.accept(held.popleft()[1])
        if readable:
            held.extend((now + delay, packet) for packet in queue.packets())


def iptables(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run iptables; ends this program with one sentence if it fails and that matters."""
    ended = subprocess.run(["iptables", "-w", "5", *arguments], capture_output=True, text=True, check=False)
    if check and ended.returncode != 0:
        sys.exit(f"iptables {' '.join(arguments)} failed (is --cap-add NET_ADMIN there?): {ended.stderr.strip()}")
    return ended


def prepare() -> None:
    """Have the chains."""
    for chain, hook in HOOKS.items():
        iptables("-N", chain, check=False)
        if iptables("-C", hook, "-j", chain, check=False).returncode != 0:
            iptables("-I", hook, "-j", chain)


def cut(direction: str, addresses: list[str]) -> None:
    """Drop all packets in these directions."""
    prepare()
    for address in addresses:
        if direction in {"out", "both"}:
            iptables("-I", OUT, "-d", address, "-j", "DROP")
        if direction in {"in", "both"}:
            iptables("-I", IN, "-s", address, "-j", "DROP")


def degrade(delay: float, loss: float, addresses: list[str]) -> None:
    """Delay and lose packets until this program is stopped, which takes its rules away."""
    targets = [["-d", address] for address in addresses] or [["!", "-o", "lo"]]
    rules = []
    if loss:
        lost = ["-m", "statistic", "--mode", "random", "--probability", f"{loss:.6f}", "-j", "DROP"]
        rules += [[OUT, *target, *lost] for target in targets]
    if delay:
        late = ["-j", "NFQUEUE", "--queue-num", str(QUEUE), "--queue-bypass"]
        rules += [[OUT, *target, *late] for target in targets]
    prepare()
    try:
        queue = Queue(QUEUE)
    except OSError as error:
        sys.exit(f"{error}: is --cap-add NET_ADMIN there, and no other degrade running for this container?")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        for rule in rules:
            iptables("-A", *rule)
        print(f"Until this is stopped: {delay * 1000:g} ms later, {loss:.0%} lost.", flush=True)
        hold(queue, delay)
    except KeyboardInterrupt:
        pass
    finally:
        for rule in rules:
            iptables("-D", *rule, check=False)


def mend() -> None:
    """Take away everything that this program ever did to this network."""
    for chain, hook in HOOKS.items():
        while iptables("-D", hook, "-j", chain, check=False).returncode == 0:
            pass
        iptables("-F", chain, check=False)
        iptables("-X", chain, check=False)


def show() -> None:
    """Print the rules in force, with how many packets they met."""
    for chain in HOOKS:
        print(iptables("-nvxL", chain, check=False).stdout.strip() or f"{chain}: nothing")


def address(text: str) -> str:
    """An IPv4 address or network, checked."""
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an IPv4 address; `docker inspect` tells them") from None


def milliseconds(text: str) -> float:
    """A delay in seconds, of at least nothing."""
    if not 0 <= float(text) <= LONGEST_DELAY_MS:
        raise argparse.ArgumentTypeError(f"a delay is 0 to {LONGEST_DELAY_MS} ms")
    return float(text) / 1000


def share(text: str) -> float:
    """A probability."""
    if not 0 <= float(text) <= 1:
        raise argparse.ArgumentTypeError("a loss is 0 to 1")
    return float(text)


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("cut")
    verb.add_argument("direction", choices=["out", "in", "both"])
    verb.add_argument("addresses", nargs="+", type=address, metavar="IP")
    verb = verbs.add_parser("degrade")
    verb.add_argument("--delay-ms", dest="delay", type=milliseconds, default=0.0)
    verb.add_argument("--loss", type=share, default=0.0)
    verb.add_argument("addresses", nargs="*", type=address, metavar="IP")
    verbs.add_parser("mend")
    verbs.add_parser("show")
    options = vars(parser.parse_args())
    {"cut": cut, "degrade": degrade, "mend": mend, "show": show}[options.pop("verb")](**options)


if __name__ == "__main__":
    main()
