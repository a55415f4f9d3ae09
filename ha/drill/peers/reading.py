"""Looks up a peer's leader again and again until its process ends; the answers go into the history (``HA_HISTORY``).

    python -m ha.drill.peers.reading kazoo|curator JOB --every S --timeout S

It asks what users of the two recipes ask: who comes first in the election. ``Election.contenders()[0]`` and
``LeaderLatch.getLeader()`` are the same two reads, of the parent's children and of the first child's data, but they do
not say which node it was, and the history wants its number; so the two reads are made here, with the same clients.

Both calls may block for as long as ZooKeeper is away, so each lookup is bounded from outside: by a time limit on
kazoo's asynchronous calls, by a thread that is left to itself for Curator's. What is not back by then counts as
``unreachable``. With the bare recipes, which have no time limit, a reader would hang instead.
"""

import argparse
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.retry import KazooRetry
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from ha.drill.peers import election
from ha.drill.peers.curator import Curator, connected, error_name
from ha.drill.peers.guarded import end_on_signals
from ha.history.events import LookedUp
from ha.history.opening import open_history
from ha.logs import configure
from ha.settings import Settings, load
from store.clock import now

STUCK = 8
"""Lookups through Curator that may be waiting for ZooKeeper at once; further ones wait for these."""

RETRY = 1.0
"""Longest time between two tries to connect, in seconds."""


@dataclass(frozen=True)
class Leader:
    """Who comes first in an election: its node's name, and what it calls itself."""

    node: str
    contender: str


Look = Callable[[str, float], Leader | None]
"""Returns who leads the job, None if nobody contends; it is given so many seconds.

Raises:
    TimeoutError: that was too short, or ZooKeeper was away.
"""


@contextmanager
def kazoo_look(settings: Settings) -> Iterator[Look]:
    """Connect with kazoo, in the background; return what looks."""
    retry = KazooRetry(max_tries=-1, max_delay=RETRY)
    client = KazooClient(settings.zookeeper, timeout=settings.session_timeout, connection_retry=retry)
    client.start_async()

    def look(job: str, timeout: float) -> Leader | None:
        end, path = now() + timeout, election.path("kazoo", job)
        try:
            for node in election.in_order(client.get_children_async(path).get(timeout=timeout)):
                try:
                    data, _ = client.get_async(f"{path}/{node}").get(timeout=max(0.0, end - now()))
                except NoNodeError:
                    continue  # it has left meanwhile
                return Leader(node, data.decode())
        except NoNodeError:
            return None
        except (KazooException, client.handler.timeout_exception) as error:
            raise TimeoutError(repr(error)) from error
        return None

    try:
        yield look
    finally:
        client.stop()
        client.close()


@contextmanager
def curator_look(settings: Settings) -> Iterator[Look]:
    """Connect with Curator, in the background; return what looks."""
    with connected(settings.zookeeper, settings.session_timeout) as curator:
        threads = ThreadPoolExecutor(STUCK, "lookup")

        def look(job: str, timeout: float) -> Leader | None:
            answer = threads.submit(_first, curator, election.path("curator", job))
            try:
                return answer.result(timeout)
            except Py4JJavaError as error:
                raise TimeoutError(error_name(error)) from error
            finally:
                answer.cancel()  # if no thread has begun

        try:
            yield look
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _first(curator: Curator, path: str) -> Leader | None:
    nodes = _there(curator.client.getChildren().forPath, path) or ()
    for node in election.in_order(nodes):
        if (data := _there(curator.client.getData().forPath, f"{path}/{node}")) is not None:
            return Leader(node, bytes(data).decode())
    return None  # or all have left meanwhile


def _there(read: Callable[[str], Any], path: str) -> Any:
    """What is there; None if there is no such node."""
    try:
        return read(path)
    except Py4JJavaError as error:
        if error_name(error) == "NoNodeException":
            return None
        raise


class Reader:
    """Looks up, and writes down what it was told."""

    def __init__(self, settings: Settings, look: Look) -> None:
        """Ask nothing yet.

        Args:
            settings: of which ``history`` and ``contender`` are used, as the reader's name.
            look: asks.
        """
        self._history = open_history(settings.history, settings.contender)
        self._name = f"{settings.contender}-{os.getpid()}"
        self._look = look

    def look(self, job: str, timeout: float) -> LookedUp:
        """Look up once; return what was written down.

        Args:
            job: the job's name.
            timeout: seconds.
        """
        at = now()
        try:
            leader = self._look(job, timeout)
        except TimeoutError:
            event = LookedUp(at, job, now(), timeout, self._name, "unreachable")
        else:
            if leader is None:
                event = LookedUp(at, job, now(), timeout, self._name, "none")
            else:
                number, endpoints = election.epoch(leader.node), {"jobmaster": leader.contender}
                told = (number, leader.node, endpoints, "zookeeper")
                event = LookedUp(at, job, now(), timeout, self._name, "leader", *told)
        self._history.write(event)
        return event


LOOKS = {"kazoo": kazoo_look, "curator": curator_look}


def main() -> int:
    """Ask for ever."""
    parser = argparse.ArgumentParser(description="Ask who leads.")
    parser.add_argument("peer", choices=sorted(LOOKS))
    parser.add_argument("job")
    parser.add_argument("--every", type=float, default=0.2, metavar="S", help="seconds between two (%(default)s)")
    parser.add_argument("--timeout", type=float, default=2.0, metavar="S", help="seconds for each (%(default)s)")
    options = parser.parse_args()
    settings = load()
    configure(level="INFO", style="text")
    end_on_signals()
    pause = threading.Event()
    with LOOKS[options.peer](settings) as look:
        reader = Reader(settings, look)
        while True:
            reader.look(options.job, options.timeout)
            pause.wait(options.every)


if __name__ == "__main__":
    sys.exit(main())
