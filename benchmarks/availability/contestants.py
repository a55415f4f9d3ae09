"""Contestants of the availability benchmark: readers of this project and of common alternatives, all of one record."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from kazoo.client import KazooClient
from kazoo.retry import KazooRetry

import ha
from benchmarks.baselines.curator import connected
from leader.layout.information import decode
from leader.layout.znodes import leader_path

JOB = "orders"
NODE = "/hybrid-ha" + leader_path(JOB)

TIMEOUT = 2.0  # Timeout of a lookup in seconds; passed to every contestant that takes one
SESSION_TIMEOUT = 10.0
RECONNECT = 1.0  # Longest pause in seconds between two attempts to connect: kazoo's own default grows to an hour

Ask = Callable[[], int]  # Returns the epoch of the leader; may raise anything, or block
OWN_SESSION = "here, without an agent"
AGENT = "here, with an agent"
KAZOO = "kazoo get"
RETRYING = "kazoo get, with KazooRetry"
CURATOR = "Curator cache"


@contextmanager
def _here(**settings: str) -> Iterator[Ask]:
    with ha.connect(**settings) as client:
        yield lambda: client.leader(JOB, TIMEOUT).epoch


@contextmanager
def _kazoo() -> Iterator[Ask]:
    """Start a client that reconnects at once; return its ``get``, which has no time-out."""
    with _kazoo_client(None) as client:
        yield lambda: _epoch(client.get(NODE)[0])


@contextmanager
def _retrying() -> Iterator[Ask]:
    """Do the same through ``client.retry``, which retries until the timeout."""
    retry = KazooRetry(max_tries=-1, max_delay=RECONNECT, deadline=TIMEOUT)
    with _kazoo_client(retry) as client:
        yield lambda: _epoch(client.retry(client.get, NODE)[0])


@contextmanager
def _curator() -> Iterator[Ask]:
    """Start a ``CuratorCache``: it watches the node and answers from memory, even without a connection."""
    with connected(_zookeeper(), SESSION_TIMEOUT) as curator:
        caches = curator.jvm.org.apache.curator.framework.recipes.cache.CuratorCache
        cache = caches.builder(curator.client, NODE).build()
        cache.start()
        try:
            yield lambda: _epoch(bytes(cache.get(NODE).get().getData()))
        finally:
            cache.close()


CONTESTANTS: Mapping[str, Callable[[], AbstractContextManager[Ask]]] = {
    OWN_SESSION: lambda: _here(snapshots="off"),
    AGENT: _here,
    KAZOO: _kazoo,
    RETRYING: _retrying,
    CURATOR: _curator,
}

OURS = (OWN_SESSION, AGENT)


@contextmanager
def _kazoo_client(retry: KazooRetry | None) -> Iterator[KazooClient]:
    again = KazooRetry(max_tries=-1, max_delay=RECONNECT)
    client = KazooClient(_zookeeper(), timeout=SESSION_TIMEOUT, connection_retry=again, command_retry=retry)
    client.start()
    try:
        yield client
    finally:
        client.stop()
        client.close()


def _zookeeper() -> str:
    return ha.connect(snapshots="off").settings.stores.zookeeper


def _epoch(data: bytes) -> int:
    information = decode(data, JOB)
    if information is None:
        raise ValueError("This is not leader information.")
    return information.epoch
