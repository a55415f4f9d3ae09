"""Request counters of the servers, as they report them."""

import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import requests

from store.clock import now

BEAN = "Hadoop:service=NameNode,name=RpcDetailedActivityForPort*"
OF_CLIENTS = ("getListing", "rename", "rename2", "mkdirs", "delete", "getFileInfo", "create", "complete", "addBlock")
"""Methods that clients call; all others are the DataNode's."""

COUNTS = "NumOps"
PACKETS = "zk_packets_received"
TIMEOUT = 10.0
UPDATE_WITHIN_S = 60.0


def namenode(webhdfs: str) -> Counter[str]:
    """Return how often each method was called since the NameNode was started."""
    address = webhdfs.removeprefix("webhdfs://").partition("/")[0]
    answer = requests.get(f"http://{address}/jmx", params={"qry": BEAN}, timeout=TIMEOUT).json()
    return calls(answer["beans"])


def counted(webhdfs: str) -> int:
    """Return the calls of clients until now: waits until the NameNode brings its counters up to date, each 10 s."""
    # TimeoutError: it does not within UPDATE_WITHIN_S.
    before, end = namenode(webhdfs).total(), now() + UPDATE_WITHIN_S
    while (found := namenode(webhdfs).total()) == before:
        if now() > end:
            raise TimeoutError(f"The NameNode at {webhdfs} brings its counters not up to date.")
        time.sleep(0.1)
    return found


def calls(beans: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """Return the calls of clients by method, from the NameNode's beans."""
    found: Counter[str] = Counter()
    for bean in beans:
        for method in OF_CLIENTS:
            found[method] += int(bean.get(f"{method[0].upper()}{method[1:]}{COUNTS}", 0))
    return +found


def zookeeper(address: str) -> int:
    """Return how many packets the server has received from its clients: requests and heartbeats."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), TIMEOUT) as connection:
        connection.sendall(b"mntr")
        said = b"".join(iter(lambda: connection.recv(65_536), b""))
    return packets(said.decode())


def packets(said: str) -> int:
    """Return the packets received, from the answer to ``mntr``."""
    for line in said.splitlines():
        name, _, value = line.partition("\t")
        if name == PACKETS:
            return int(value)
    raise ValueError(f"ZooKeeper's answer contains no {PACKETS}: {said[:100]!r}.")
