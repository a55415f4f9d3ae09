"""Reader that looks up a baseline's leader again and again; the answers go into the history (``HA_HISTORY``).

    python -m benchmarks.baselines.reading kazoo|curator JOB --every S --timeout S

It asks what users of the two recipes ask: who comes first in the election. ``Election.contenders()[0]`` and
``LeaderLatch.getLeader()`` read the parent's children and the first child's data, but they do not return the node's
name. The history needs its number, so the reader makes the same two reads itself, with the same clients.

Both calls may block for as long as ZooKeeper is away, so each lookup gets a limit from outside: a timeout on kazoo's
asynchronous calls, and a thread that is left behind for Curator's. A later answer counts as ``unreachable``. With the
bare recipes, which have no timeout, a reader would hang instead.
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
from py4j.protocol import Py4JJavaError

from benchmarks.baselines import election
from benchmarks.baselines.contender import end_on_signals
from benchmarks.baselines.curator import Curator, connected, error_name
from ha.config.log import configure
from ha.config.settings import Settings
from ha.config.sources import load
from ha.config.stores import open_history
from ha.history.events import LookedUp
from store.clock import now

MAX_BLOCKED = 8  # Lookups through Curator that may wait for ZooKeeper at once; further ones wait for these
RETRY_S = 1.0  # Longest pause between two attempts to connect


@dataclass(frozen=True)
class Leader:
    """First contender of an election: the name of its node, and its own name."""

    node: str
    contender: str


Lookup = Callable[[str, float], Leader | None]
"""Takes a job and a timeout in seconds; returns the leader, None if nobody contends.

Raises:
    TimeoutError: the answer took too long, or ZooKeeper was away.
"""


@contextmanager
def kazoo_lookup(settings: Settings) -> Iterator[Lookup]:
    """Connect with kazoo in the background; return the lookup."""
    retry = KazooRetry(max_tries=-1, max_delay=RETRY_S)
    client = KazooClient(settings.stores.zookeeper, timeout=settings.leadership.session_timeout, connection_retry=retry)
    client.start_async()

    def lookup(job: str, timeout: float) -> Leader | None:
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
        yield lookup
    finally:
        client.stop()
        client.close()


@contextmanager
def curator_lookup(settings: Settings) -> Iterator[Lookup]:
    """Connect with Curator in the background; return the lookup."""
    with connected(settings.stores.zookeeper, settings.leadership.session_timeout) as curator:
        threads = ThreadPoolExecutor(MAX_BLOCKED, "lookup")

        def lookup(job: str, timeout: float) -> Leader | None:
            answer = threads.submit(_first, curator, election.path("curator", job))
            try:
                return answer.result(timeout)
            except Py4JJavaError as error:
                raise TimeoutError(error_name(error)) from error
            finally:
                answer.cancel()  # has an effect if no thread has begun

        try:
            yield lookup
        finally:
            threads.shutdown(wait=False, cancel_futures=True)


def _first(curator: Curator, path: str) -> Leader | None:
    nodes = _read_if_present(curator.client.getChildren().forPath, path) or ()
    for node in election.in_order(nodes):
        if (data := _read_if_present(curator.client.getData().forPath, f"{path}/{node}")) is not None:
            return Leader(node, bytes(data).decode())
    return None  # or all have left meanwhile


def _read_if_present(read: Callable[[str], Any], path: str) -> Any:
    """The answer of a read; None if there is no such node."""
    try:
        return read(path)
    except Py4JJavaError as error:
        if error_name(error) == "NoNodeException":
            return None
        raise


class Reader:
    """Looks up, and writes the answers into the history."""

    def __init__(self, settings: Settings, lookup: Lookup) -> None:
        self._history = open_history(settings.stores.history, settings.leadership.contender)
        self._name = f"{settings.leadership.contender}-{os.getpid()}"
        self._lookup = lookup

    def look(self, job: str, timeout: float) -> LookedUp:
        """Look up once; return the event that was written."""
        at = now()
        said: tuple[Any, ...] = ("none",)
        try:
            if leader := self._lookup(job, timeout):
                endpoints = {"jobmaster": leader.contender}
                said = ("leader", election.epoch(leader.node), leader.node, endpoints, "zookeeper")
        except TimeoutError:
            said = ("unreachable",)
        event = LookedUp(at, job, now(), timeout, self._name, *said)
        self._history.write(event)
        return event


LOOKUPS = {"kazoo": kazoo_lookup, "curator": curator_lookup}


def main() -> int:
    parser = argparse.ArgumentParser(description="Ask who leads.")
    parser.add_argument("baseline", choices=sorted(LOOKUPS))
    parser.add_argument("job")
    parser.add_argument("--every", type=float, default=0.2, metavar="S", help="seconds between two lookups")
    parser.add_argument("--timeout", type=float, default=2.0, metavar="S", help="seconds that each may take")
    options = parser.parse_args()
    settings = load()
    configure(level="INFO", style="text")
    end_on_signals()
    pause = threading.Event()
    with LOOKUPS[options.baseline](settings) as lookup:
        reader = Reader(settings, lookup)
        while True:
            reader.look(options.job, options.timeout)
            pause.wait(options.every)


if __name__ == "__main__":
    sys.exit(main())
