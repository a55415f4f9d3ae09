"""The daemon: contends for jobs without running anything; the endpoints it is given are the leader's."""

import logging
import signal
import threading
from collections.abc import Mapping, Sequence
from types import FrameType

from ha.inbox import AskedTo, Granted, Inbox, Notice, Revoked, Wake
from ha.node import Node
from leader.information import check_endpoints
from leader.names import check_job
from store.clock import now

_log = logging.getLogger("ha")


class Daemon:
    """Contends for some jobs until a signal ends it."""

    def __init__(self, node: Node, jobs: Sequence[str], endpoints: Mapping[str, str]) -> None:
        """Prepare.

        Args:
            node: the process's stores and contender.
            jobs: the jobs' names.
            endpoints: published for each of them while leading.

        Raises:
            InvalidName: a job or an endpoint cannot be called that.
        """
        self._node = node
        self._jobs = [check_job(job) for job in jobs]
        self._endpoints = check_endpoints(endpoints)
        self._inbox = Inbox()
        self._stopping = False

    def run(self) -> int:
        """Contend until SIGTERM or SIGINT; returns what to exit with."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)
        contender, post = self._node.contender, self._node.runtime.post
        leads = self._node.leads(self._inbox)
        for job in self._jobs:
            self._node.runtime.ask(lambda job=job: contender.join(job, leads), timeout=5.0)  # type: ignore[misc]
            post(lambda job=job: contender.contend(job))  # type: ignore[misc]
        while not self._stopping:
            self._act(self._inbox.get(1.0))
        self._give_all_back()
        return 0

    def _signalled(self, number: int, _: FrameType | None) -> None:
        self._stopping = True
        self._inbox.put(Wake(signal.Signals(number).name))

    def _act(self, notice: Notice | None) -> None:
        contender, post = self._node.contender, self._node.runtime.post
        match notice:
            case Granted(job, grant):
                post(lambda: contender.confirm(job, grant.session_id, self._endpoints))
            case Revoked(job, _):
                post(lambda: contender.release(job))
                post(lambda: contender.contend(job))
            case AskedTo(job, successor):
                post(lambda: contender.release(job, successor))
            case _:
                pass

    def _give_all_back(self) -> None:
        for job in self._jobs:
            self._node.runtime.post(lambda job=job: self._node.contender.release(job))  # type: ignore[misc]
        end = now() + 4 * self._node.stores.timing.call_timeout
        while now() < end and any(self._node.holds(job) for job in self._jobs):
            threading.Event().wait(0.01)
