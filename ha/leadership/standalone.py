"""StandaloneLeadership: this process contends for a job itself, without a sidecar."""

import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from ha.agent.shared_session import borrower_of
from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.hosts.crew import Crew
from ha.leadership.eligibility import DrainedHost, Trial
from ha.leadership.leadership import Leadership
from ha.leadership.notices import (
    AskedTo,
    GrantNotice,
    NoticeQueue,
    PublicationNotice,
    Requested,
    RevocationNotice,
    Wake,
)
from leader.contender.contender import Contender
from leader.contender.runtime import Runtime
from leader.contender.twins import TwinWatch, twin_sentence
from leader.errors import InvalidSettings, NotLeader, Unreachable
from leader.job.fenced_directory import FencedDirectory
from leader.job.grants import record_end
from leader.job.request_folder import Requests
from leader.layout.lease import ANYBODY
from leader.layout.names import LeaderDirectory
from leader.observer import fan_out
from leader.timing import Timing
from store.clock import BOOT_CLOCK, now
from store.errors import StoreError

CONFIRM_TIMEOUT_S = 30.0  # longest wait of ``confirm`` for HDFS; the leadership itself ends sooner if HDFS stays away
CREW = 2  # threads for what an operator asks for
RELEASE_POLL_S = 0.01  # pause between two looks whether a lease is free

_log = logging.getLogger("ha")


class StandaloneLeadership:
    """A contender in this process, and a thread that acts on its notices."""

    def __init__(self, job: str, settings: Settings) -> None:
        self._job = job
        self._stores = Stores(settings)
        self._leads_until = float("-inf")
        self._notices = NoticeQueue(self._believed)
        timing = self._stores.timing
        self.runtime = Runtime(settings.leadership.contender, timing, self._stores.files, self._stores.zookeeper)
        self._contender = Contender.make(
            self.runtime,
            settings.leadership.contender,
            timing,
            observer=fan_out(
                self._stores.history.observer, TwinWatch(settings.leadership.contender, self._refuse_twin).observe
            ),
            borrows=settings.leadership.borrows_session,
        )
        self.runtime.attach(self._contender)
        self._borrower = borrower_of(self._stores, self.runtime, self._contender)
        self._trial = Trial(self.runtime, self._stores.files, timing)
        self._drained = DrainedHost(self.runtime, self._stores.files, timing, settings.leadership.contender)
        self._broken = ""
        """What a root breaks of the contract of renames, so that this process does not contend; empty if nothing."""
        self._successor = ""
        self._recorded = False
        self._twin = ""
        """Why this process has stopped contending; empty if it contends."""
        self._granted = threading.Event()
        self._published: dict[str, str] | None = None
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._leadership: Leadership | None = None
        self._endpoints: dict[str, str] = {}
        self._crew = Crew("ha-work", CREW)
        self._thread = threading.Thread(target=self._run, name=f"ha-{job}", daemon=True)

    def enter(self, endpoints: Mapping[str, str], timeout: float | None) -> Leadership:
        """Contend, and return once the job is granted and the endpoints are published."""
        # NotLeader: that took longer than ``timeout`` seconds. InvalidSettings: two processes could lead at this root.
        self._endpoints = dict(endpoints)
        self._thread.start()
        self.runtime.ask(lambda: self._contender.join(self._job, self._notices), timeout=5.0)
        self._drained.look(self._job)
        self._trial.then(self._job, self._begin, self._refuse_root)
        granted = self._granted.wait(timeout)
        if self._broken:
            raise InvalidSettings(f"files: {self._broken}.")
        if self._twin:
            raise NotLeader(f"Job {self._job!r}: {self._twin}")
        if not granted or self._leadership is None:
            who = self._stores.settings.leadership.contender
            why = self._notices.last_said or self._trial.said or self._drained.unknown(self._job)
            raise NotLeader(f"Job {self._job!r} was not granted to {who} in {timeout:g} s. {why}".rstrip())
        self._stores.history.ran(self._job, self._leadership.epoch, running=True)
        return self._leadership

    def _begin(self) -> None:
        self._drained.then(self._job, lambda: self._contender.contend(self._job))

    def is_leader(self) -> bool:
        """Whether this process leads now."""
        return now() < self._leads_until

    def confirm(self, endpoints: dict[str, str]) -> None:
        """See :meth:`ha.leadership.leadership.Leadership.confirm`."""
        leadership = self._leadership
        assert leadership is not None, "a leadership calls its holder"
        deadline = now() + CONFIRM_TIMEOUT_S
        with self._changed:
            self._published = None
            self.runtime.post(lambda: self._contender.confirm(self._job, leadership.session_id, endpoints))
            while self._published != endpoints:
                if not leadership.is_leader():
                    raise NotLeader(f"Epoch {leadership.epoch} of job {self._job!r} is over.")
                if now() >= deadline:
                    raise Unreachable(f"The file system did not take the endpoints of job {self._job!r} in time.")
                self._changed.wait(0.1)

    def record_end(self, cause: str) -> None:
        """Write into the job's history why this leadership ends, unless another cause has been written before."""
        leadership = self._leadership
        if leadership is None or self._over.is_set() or self._recorded:
            return
        self._recorded = True
        stores = self._stores
        leader = LeaderDirectory(leadership.epoch, leadership.session_id)
        record_end(
            stores.files, self._job, leader, cause, stores.settings.leadership.contender, stores.timing.call_timeout
        )

    def resign(self) -> None:
        """See :meth:`ha.leadership.leadership.Leadership.resign`."""
        self.record_end("resigned")
        self.give_back("Its own program has resigned.", ANYBODY)

    def give_back(self, reason: str, successor: str = "") -> None:
        """End the leadership, and wait for a limited time until the lease is free."""
        self._successor = successor
        if threading.current_thread() is self._thread:
            return  # in a callback of on_revoked; the lease is given back once all of them have returned
        if self._leadership is not None and not self._over.is_set():
            self.runtime.post(lambda: self._contender.step_down(self._job, reason))
            self._over.wait(self._stores.settings.command.stop_grace + self._stores.timing.long_ttl)
        self._trial.forget(self._job)
        self.runtime.post(lambda: self._drained.forget(self._job))
        self.runtime.post(lambda: self._contender.release(self._job, successor))
        with suppress(TimeoutError):  # another thread has left the block meanwhile
            await_release(lambda: self.runtime.ask(self._busy, timeout=5.0), self._stores.timing)

    def leave(self) -> None:
        """Give the lease back, and close everything."""
        self.record_end("left")
        self.give_back("The program left the block of ha.lead.")
        self._notices.put(Wake("stop"))
        if self._borrower is not None:
            self._borrower.close()
        self.runtime.close()
        self._crew.close()
        self._stores.close()

    def _refuse_twin(self, job: str) -> None:
        if self._leadership is None:  # a program that has led already hears of its end another way
            self._twin = twin_sentence(self._stores.settings.leadership.contender)
            self.runtime.post(lambda: self._contender.release(job))
            self._granted.set()

    def _refuse_root(self, sentence: str) -> None:
        self._broken = sentence
        self._granted.set()

    def _busy(self) -> bool:
        participant = self._contender.participants.get(self._job)
        return participant is not None and participant.busy

    def _believed(self, job: str, leads_until: float, holds_until: float) -> None:
        del job, holds_until
        self._leads_until = leads_until

    def _run(self) -> None:
        while (notice := self._notices.get()) is not None and not isinstance(notice, Wake):
            match notice:
                case GrantNotice(job, grant):
                    directory = LeaderDirectory(grant.epoch, grant.session_id)
                    self._leadership = Leadership(job, directory, self._stores, self.runtime, self)
                    self.runtime.post(partial(self._contender.confirm, job, grant.session_id, self._endpoints))
                case PublicationNotice(_, information):
                    with self._changed:
                        self._published = dict(information.endpoints)
                        self._changed.notify_all()
                    self._granted.set()
                case AskedTo(_, successor):
                    self.record_end("resigned" if successor == ANYBODY else f"switchover-to-{successor}"[:64])
                    self._crew(partial(self.give_back, "An operator asked to hand over.", successor))
                case Requested(job) if self._leadership is not None:
                    leader = LeaderDirectory(self._leadership.epoch, self._leadership.session_id)
                    refuse_requests(self._stores, job, leader, self._crew)
                case RevocationNotice(_, revoke):
                    self._end(revoke.until)

    def _end(self, until: float | None) -> None:
        if self._leadership is None or self._over.is_set():
            return
        self._leadership.end()
        self._stores.history.ran(self._job, self._leadership.epoch, running=False)
        if until is not None and now() > until:
            _log.warning("%s: the callbacks of on_revoked took %.1f s too long.", self._job, now() - until)
        self._over.set()
        successor = self._successor
        self.runtime.post(lambda: self._contender.release(self._job, successor))


def refuse_requests(stores: Stores, job: str, leader: LeaderDirectory, crew: Crew) -> None:
    """Refuse what operators ask of a leader that has no command of its own; waits for nothing.

    While the store does not answer it is tried again, for as long as a lease can last: nothing else tells of a request.
    """
    timing = stores.timing
    requests = Requests(FencedDirectory(stores.files, job, leader, timing.call_timeout))

    def refuse() -> None:
        pause, end = timing.retry, now() + timing.long_ttl
        while True:
            try:
                requests.refuse("This leader has no command that it could stop: it was not started by `ha run`.")
            except (StoreError, NotLeader) as error:
                if isinstance(error, NotLeader) or now() >= end:
                    _log.warning("%s: an operator's request is not answered: %s", job, error)
                    return
            else:
                return
            BOOT_CLOCK.sleep(pause)
            pause = min(2 * pause, timing.renewal)

    crew(refuse)


def await_release(holds: Callable[[], bool], timing: Timing) -> None:
    """Wait until a process no longer holds a job's lease; gives up after four call time-outs."""
    # `holds`: whether the process holds the lease, or is about to give it back. `timing`: has the call time-out.
    end = now() + 4 * timing.call_timeout
    while now() < end and holds():
        BOOT_CLOCK.sleep(RELEASE_POLL_S)
