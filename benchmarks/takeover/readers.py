"""Readers that watch for the next leader, one for each system, in this process."""

import logging
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.retry import KazooRetry

import ha
from benchmarks.baselines import election
from ha.drill.sandbox_environment import Process
from store.clock import now

_silent = logging.getLogger("benchmarks.takeover.kazoo")
_silent.setLevel(logging.CRITICAL)  # it logs all the time during an outage

RETRY = 1.0  # Longest pause between two attempts to connect, in seconds


class Reader:
    """Follows jobs with a client, and notes when each contender was first found to lead."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._found: dict[tuple[str, str], float] = {}

    def follow(self, job: str) -> None:
        raise NotImplementedError

    def note(self, job: str, contender: str) -> None:
        self._found.setdefault((job, contender), now())

    def found(self, job: str, contender: str) -> float | None:
        """Return when this contender was first found to lead the job; None if it was not."""
        return self._found.get((job, contender))

    def close(self) -> None:
        self._client.close()


class HereReader(Reader):
    """Reader with this project's client: default settings, but no agent unless it is given the snapshots of one."""

    def __init__(self, environment: Mapping[str, str], session_timeout: float, snapshots: str = "off") -> None:
        files, zookeeper = environment["HA_FILES"], environment["HA_ZOOKEEPER"]
        super().__init__(
            ha.connect(files=files, zookeeper=zookeeper, session_timeout=session_timeout, snapshots=snapshots)
        )

    def follow(self, job: str) -> None:
        threading.Thread(target=self._follow, args=(job,), name=f"reader-{job}", daemon=True).start()

    def _follow(self, job: str) -> None:
        for answer in self._client.watch(job):
            if answer is not None:
                self.note(job, answer.endpoints["jobmaster"].partition(":")[0])


class AgentReader(HereReader):
    """The same on the host of an agent, which is a process of its own."""

    def __init__(
        self, environment: Mapping[str, str], variables: Mapping[str, str], timeout: float, folder: Path
    ) -> None:
        snapshots = f"{folder / 'snapshots'}"
        command = [sys.executable, "-m", "ha.cli", "host", "agent"]
        self._agent = Process("agent", command, {**variables, "HA_SNAPSHOTS": snapshots}, folder)
        super().__init__(environment, timeout, snapshots)

    def close(self) -> None:
        super().close()
        self._agent.end()


class ElectionReader(Reader):
    """Watches the first contender in the elections of a baseline; kazoo reads both, since their nodes are alike."""

    def __init__(self, baseline: str, environment: Mapping[str, str], session_timeout: float) -> None:
        self._baseline = baseline
        retries = [KazooRetry(max_tries=-1, max_delay=RETRY) for _ in range(2)]
        options = {"timeout": session_timeout, "connection_retry": retries[0], "command_retry": retries[1]}
        super().__init__(KazooClient(environment["HA_ZOOKEEPER"], logger=_silent, **options))
        self._client.start()

    def follow(self, job: str) -> None:
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
                self.note(job, data.decode())
                return

        return told

    def close(self) -> None:
        self._client.stop()
        self._client.close()
