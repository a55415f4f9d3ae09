"""A leadership that this process contends for itself."""

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from ha.inbox import AskedTo, Granted, Inbox, Published, Revoked, Wake
from ha.leadership import Leadership
from ha.settings import Settings
from ha.stores import Stores
from leader.contender import Contender
from leader.errors import NotLeader, Unreachable
from leader.information import check_endpoints
from leader.lease import ANYBODY
from leader.names import LeaderDirectory
from leader.runtime import Runtime
from store.clock import now

CONFIRMED_WITHIN = 30.0
"""Seconds that ``confirm`` waits for HDFS at most; the leadership itself ends sooner if HDFS stays away."""

_log = logging.getLogger("ha")


class Contended:
    """A contender of this process's own, with a thread that acts on what it is told."""

    def __init__(self, job: str, settings: Settings) -> None:
        self._job = job
        self._stores = Stores(settings)
        self._leads_until = float("-inf")
        self._inbox = Inbox(self._believed)
        timing = self._stores.timing
        self.runtime = Runtime(settings.contender, timing, self._stores.files, self._stores.zookeeper)
        self._contender = Contender.make(self.runtime, settings.contender, timing)
        self.runtime.attach(self._contender)
        self._successor = ""
        self._granted = threading.Event()
        self._published: dict[str, str] | None = None
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._leadership: _Own | None = None
        self._endpoints: dict[str, str] = {}
        self._thread = threading.Thread(target=self._run, name=f"ha-{job}", daemon=True)

    def enter(self, endpoints: Mapping[str, str], timeout: float | None) -> Leadership:
        """Contend, and return when granted and published.

        Raises:
            NotLeader: not within ``timeout`` seconds.
        """
        self._endpoints = dict(endpoints)
        self._thread.start()
        leads = self._stores.history.leads(self._inbox)
        self.runtime.ask(lambda: self._contender.join(self._job, leads), timeout=5.0)
        self.runtime.post(lambda: self._contender.contend(self._job))
        if not self._granted.wait(timeout) or self._leadership is None:
            raise NotLeader(f"Job {self._job!r} was not granted to {self._stores.settings.contender} in {timeout:g} s.")
        self._stores.history.ran(self._job, self._leadership.epoch, running=True)
        return self._leadership

    def confirm(self, leadership: Leadership, endpoints: dict[str, str]) -> None:
        """See :meth:`ha.leadership.Leadership.confirm`."""
        deadline = now() + CONFIRMED_WITHIN
        with self._changed:
            self._published = None
            self.runtime.post(lambda: self._contender.confirm(self._job, leadership.session_id, endpoints))
            while self._published != endpoints:
                if not leadership.is_leader():
                    raise NotLeader(f"Epoch {leadership.epoch} of job {self._job!r} is over.")
                if now() >= deadline:
                    raise Unreachable(f"The file system did not take the endpoints of job {self._job!r} in time.")
                self._changed.wait(0.1)

    def give_back(self, reason: str, successor: str = "") -> None:
        """End the leadership and wait, within bounds, until the lease is free."""
        self._successor = successor
        if threading.current_thread() is self._thread:
            return  # a callback of on_revoked: the lease is given back as soon as all of them have returned
        if self._leadership is not None and not self._over.is_set():
            self.runtime.post(lambda: self._contender.step_down(self._job, reason))
            self._over.wait(self._stores.settings.stop_grace + self._stores.timing.long_ttl)
        self.runtime.post(lambda: self._contender.release(self._job, successor))
        end = now() + 4 * self._stores.timing.call_timeout
        with suppress(TimeoutError):  # the block was left meanwhile, by another thread
            while now() < end and self.runtime.ask(self._busy, timeout=5.0):
                threading.Event().wait(0.01)

    def leave(self) -> None:
        """Give everything back and stop."""
        self.give_back("The block of ha.lead was left.")
        self._inbox.put(Wake("stop"))
        self.runtime.close()
        self._stores.close()

    def believes(self) -> bool:
        """Whether this process leads now."""
        return now() < self._leads_until

    def _busy(self) -> bool:
        candidacy = self._contender.candidacies.get(self._job)
        return candidacy is not None and candidacy.busy

    def _believed(self, job: str, leads_until: float, holds_until: float) -> None:
        del job, holds_until
        self._leads_until = leads_until

    def _run(self) -> None:
        while (notice := self._inbox.get()) is not None and not isinstance(notice, Wake):
            match notice:
                case Granted(job, grant):
                    directory = LeaderDirectory(grant.epoch, grant.session_id)
                    self._leadership = _Own(job, directory, self._stores, self)
                    self.runtime.post(
                        partial(self._contender.confirm, job, grant.session_id, self._endpoints),
                    )
                case Published(_, information):
                    with self._changed:
                        self._published = dict(information.endpoints)
                        self._changed.notify_all()
                    self._granted.set()
                case AskedTo(_, successor):
                    threading.Thread(
                        target=self.give_back, args=("An operator asked to hand over.", successor), daemon=True
                    ).start()
                case Revoked(_, revoke):
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


class _Own(Leadership):
    """A leadership that this process has contended for."""

    def __init__(self, job: str, directory: LeaderDirectory, stores: Stores, held: "Contended") -> None:
        super().__init__(job, directory, stores, held.runtime, held.believes)
        self._held = held

    def confirm(self, endpoints: Mapping[str, str]) -> None:
        self._held.confirm(self, check_endpoints(endpoints))

    def resign(self) -> None:
        self._held.give_back("It was resigned by its own program.", ANYBODY)
