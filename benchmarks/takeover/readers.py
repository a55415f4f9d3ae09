"""Readers that watch for the next leader, one for each system, in this process.

Each records when it was first told of a contender as the leader of a job, on the host's boot clock.
"""

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.retry import KazooRetry

import ha
from benchmarks.baselines import election
from ha.drill.sandbox_environment import Process
from store.clock import now

_silent = logging.getLogger("benchmarks.takeover.kazoo")
_silent.setLevel(logging.CRITICAL)  # it logs all the time during an outage

RETRY = 1.0
"""Longest pause between two attempts to connect, in seconds."""


class Reader(Protocol):
    """Follows jobs."""

    def follow(self, job: str) -> None:
        """Watch this job's leaders from now on."""

    def found(self, job: str, contender: str) -> float | None:
        """Return when this contender was first found to lead the job; None if it was not."""

    def close(self) -> None:
        """Stop watching."""


class HereReader:
    """Reader with this project's client: default settings, but no agent unless it is given the snapshots of one."""

    def __init__(self, environment: Mapping[str, str], session_timeout: float, snapshots: str = "off") -> None:
        """Connect in the background.

        Args:
            environment: ``HA_FILES`` and ``HA_ZOOKEEPER``.
            session_timeout: seconds.
            snapshots: directory of its host's agent.
        """
        self._client = ha.connect(
            files=environment["HA_FILES"],
            zookeeper=environment["HA_ZOOKEEPER"],
            session_timeout=session_timeout,
            snapshots=snapshots,
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


class AgentReader(HereReader):
    """The same on the host of an agent, which is a process of its own."""

    def __init__(
        self, environment: Mapping[str, str], variables: Mapping[str, str], timeout: float, folder: Path
    ) -> None:
        """Start the agent, and connect to it.

        Args:
            environment: ``HA_FILES`` and ``HA_ZOOKEEPER``.
            variables: all of the agent's environment variables.
            timeout: of a session, in seconds.
            folder: for the agent's output and its snapshots; it exists.
        """
        snapshots = f"{folder / 'snapshots'}"
        command = [sys.executable, "-m", "ha.cli", "agent"]
        self._agent = Process("agent", command, {**variables, "HA_SNAPSHOTS": snapshots}, folder)
        super().__init__(environment, timeout, snapshots)

    def close(self) -> None:
        """See :class:`Reader`."""
        super().close()
        self._agent.end()


class ElectionReader:
    """Watches the first contender in the elections of a baseline; kazoo reads both, since their nodes are alike."""

    def __init__(self, baseline: str, environment: Mapping[str, str], session_timeout: float) -> None:
        """Connect.

        Args:
            baseline: ``kazoo`` or ``curator``.
            environment: ``HA_ZOOKEEPER``.
            session_timeout: seconds.
        """
        self._baseline = baseline
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
        path = election.path(self._baseline, job)
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
