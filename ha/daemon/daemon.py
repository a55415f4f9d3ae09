"""The daemon: contends for jobs without running a command; while it leads, it publishes the endpoints it was given."""

import signal
from collections.abc import Mapping, Sequence
from types import FrameType

from ha.daemon.process import ContendingProcess
from ha.hosts.crew import Crew
from ha.leadership.notices import AskedTo, GrantNotice, Notice, NoticeQueue, Requested, RevocationNotice, Wake
from ha.leadership.signals import end_in_order
from ha.leadership.standalone import CREW, refuse_requests
from leader.layout.information import check_endpoints
from leader.layout.names import check_job

LONGEST_PAUSE_S = 1.0  # the daemon looks at least this often whether a signal has come


class Daemon:
    """Contends for some jobs until a signal ends it."""

    def __init__(self, process: ContendingProcess, jobs: Sequence[str], endpoints: Mapping[str, str]) -> None:
        """Prepare."""
        # `process`: its stores and contender are used; the caller closes it. `endpoints`: published for each of them
        # while leading.
        # InvalidName: a job or an endpoint has a name that is not allowed.
        self._process = process
        self._jobs = [check_job(job) for job in jobs]
        self._endpoints = check_endpoints(endpoints)
        self._notices = NoticeQueue()
        self._crew = Crew("ha-work", CREW)
        self._stopping = False

    def run(self) -> int:
        """Contend until SIGTERM or SIGINT; returns the exit code."""
        end_in_order(self._signalled)
        for job in self._jobs:
            self._process.join(job, self._notices)
            self._process.contend(job, self._endpoints)
        while not self._stopping:
            self._act(self._notices.get(LONGEST_PAUSE_S))
        self._process.release_and_wait(self._jobs)
        return 0

    def _signalled(self, number: int, _: FrameType | None) -> None:
        self._stopping = True
        self._notices.put(Wake(signal.Signals(number).name))

    def _act(self, notice: Notice | None) -> None:
        match notice:
            case RevocationNotice(job, _):
                self._process.release(job)
                self._process.contend(job, self._endpoints)
            case Requested(job) | GrantNotice(job, _) if (leader := self._process.leads(job)) is not None:
                refuse_requests(self._process.stores, job, leader, self._crew)
            case AskedTo(job, successor):
                self._process.release(job, successor)
            case _:
                pass
