"""When the next leader can be found: readers that are told of changes, one for each system, in this process.

Each writes down when it was first told of a contender as the leader of a job, on the host's boot clock.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.retry import KazooRetry

import ha
from ha.drill.peers import election
from store.clock import now

_silent = logging.getLogger("benchmarks.takeover.kazoo")
_silent.setLevel(logging.CRITICAL)  # during an outage it has something to say all the time

RETRY = 1.0
"""Longest time between two tries to connect, in seconds."""


class Reader(Protocol):
    """Follows jobs."""

    def follow(self, job: str) -> None:
        """Be told of this job's leaders from now on."""

    def found(self, job: str, contender: str) -> float | None:
        """When this contender was first found to lead the job; None if it has not been."""

    def close(self) -> None:
        """Follow nothing more."""


class HereReader:
    """This project's client, as it comes, but without an agent."""

    def __init__(self, environment: Mapping[str, str], session_timeout: float) -> None:
        """Connect in the background.

        Args:
            environment: ``HA_FILES`` and ``HA_ZOOKEEPER``.
            session_timeout: seconds.
        """
        self._client = ha.connect(
            files=environment["HA_FILES"],
            zookeeper=environment["HA_ZOOKEEPER"],
            session_timeout=session_timeout,
            snapshots="off",
        )
        self._found: dict[tuple[str, str], float] = {}

    def follow(self, job: str) -> None:
        """See :class:`Reader`."""
        threading.Thread(target=self._follow, args=(job,), name=f"reader-{job}", daemon=True).start()

    def _follow(self, job: str) -> None:
        for answer in self._client.watch(job):
            if answer is not None:
                contender = answer.endpoints["jobmaster"].partition(":")[0]
                self._found.setdefault((job, contender), now())

    def found(self, job: str, contender: str) -> float | None:
        """See :class:`Reader`."""
        return self._found.get((job, contender))

    def close(self) -> None:
        """See :class:`Reader`."""
        self._client.close()


class ElectionReader:
    """Watches who comes first in the elections of a peer; with kazoo, in either case: the nodes say the same."""

    def __init__(self, peer: str, environment: Mapping[str, str], session_timeout: float) -> None:
        """Connect.

        Args:
            peer: ``kazoo`` or ``curator``.
            environment: ``HA_ZOOKEEPER``.
            session_timeout: seconds.
        """
        self._peer = peer
        retries = [KazooRetry(max_tries=-1, max_delay=RETRY) for _ in range(2)]
        self._client = KazooClient(
            environment["HA_ZOOKEEPER"],
            timeout=session_timeout,
            connection_retry=retries[0],
            command_retry=retries[1],
            logger=_silent,
        )
        self._client.start()
        self._found: dict[tuple[str, str], float] = {}

    def follow(self, job: str) -> None:
        """See :class:`Reader`."""
        path = election.path(self._peer, job)
        self._client.ensure_path(path)
        self._client.ChildrenWatch(path, self._told(job, path))

    def _told(self, job: str, path: str) -> Callable[[list[str]], Any]:
        def told(nodes: list[str]) -> None:
            for node in election.in_order(nodes):
                try:
                    data, _ = self._client.get(f"{path}/{node}")
                except NoNodeError:
                    continue  # it has left meanwhile
                except KazooException:
                    return  # the watch goes off again once there is a connection
                self._found.setdefault((job, data.decode()), now())
                return

        return told

    def found(self, job: str, contender: str) -> float | None:
        """See :class:`Reader`."""
        return self._found.get((job, contender))

    def close(self) -> None:
        """See :class:`Reader`."""
        self._client.stop()
        self._client.close()
