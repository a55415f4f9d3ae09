"""A process that contends: its stores, its contender, whether it could lead, and the status of each of its jobs."""

import logging
import math
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from ha.agent.shared_session import borrower_of
from ha.agent.standalone import reader_of
from ha.config.settings import Settings
from ha.config.stores import Stores
from ha.daemon.liveness_socket import LivenessSocket, new_liveness_socket
from ha.hosts.installation import replaced
from ha.leadership.eligibility import DrainedHost, Trial
from ha.leadership.notices import NoticeQueue
from ha.leadership.standalone import await_release
from ha.metrics.contending import ContendingMetrics, LeadershipStatus
from ha.metrics.process_metrics import Metrics
from leader.contender.contender import Contender
from leader.contender.participant import Participant
from leader.contender.runtime import Runtime
from leader.contender.twins import TwinWatch, twin_sentence
from leader.election.state import ElectionState
from leader.job.grants import record_end
from leader.layout.information import decode
from leader.layout.names import LeaderDirectory
from leader.layout.tree import check_writable
from leader.observer import fan_out
from leader.timing import Timing
from store.bounded import BoundedFiles
from store.clock import now
from store.errors import NotSent, NotWritable, PermissionDenied, Refused
from store.files import Files
from store.outcome import Outcome

ANSWER_WITHIN_S = 2.0  # the contender's thread never blocks: it answers within this time if it is healthy
JOIN_WITHIN_S = 5.0  # it may take longer to begin with a job
AGAIN_S = 30.0  # an obstacle is looked at again after this time: it may have been mended
RARELY_S = 600.0  # without an obstacle it is looked for one after this time: four calls of the store

Look = Callable[[Files], None]

_log = logging.getLogger("ha")


class Eligibility:
    """The reasons why this process cannot lead, by job; found out at the start, and not at the takeover.

    A standby that may not write in a job's directory stands by for ever and takes nothing over. The check renames the
    leader directory and the lease to their own names: whatever the store answers, nothing has changed.
    What bars every takeover, as a snapshot of the leader directory does, may come later. So it is looked for all the
    time, but rarely, also by the leader, so the problem is logged before it hits. So is an installation that was
    replaced.
    """

    def __init__(self, runtime: Runtime, files: BoundedFiles, timing: Timing) -> None:
        self._runtime, self._files, self._timing = runtime, files, timing
        self._lock = threading.Lock()
        self._obstacles: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._told = False  # whether it is known that the installation was replaced

    def obstacle(self, job: str) -> str | None:
        """Return why this process cannot lead the job, as one sentence; None if nothing is known against it."""
        with self._lock:
            if (lack := replaced()) and not self._told:
                _log.warning("%s: %s", job, lack)
            self._told = bool(lack)
            return self._refused.get(job) or self._obstacles.get(job) or lack or None

    def refuse(self, job: str, sentence: str) -> None:
        """Note an obstacle that lasts as long as this process."""
        with self._lock:
            self._refused[job] = sentence

    def check(self, job: str, also: Look | None = None) -> None:
        """Ask the store in the background whether this process may write in the job; again sooner if it may not."""
        # ``also`` is called each time after that, and raises nothing.

        def answered(outcome: Outcome[None]) -> None:
            self._note(job, outcome)
            pause = RARELY_S if self.obstacle(job) is None else AGAIN_S
            self._runtime.post(lambda: self._runtime.call_at(now() + pause, lambda: self.check(job, also)))

        def look(driver: Files) -> None:
            check_writable(driver, job)
            if also is not None:
                also(driver)

        self._files.submit("probe", look, self._timing.call_timeout, answered)

    def _note(self, job: str, outcome: Outcome[None]) -> None:
        """Take an answer. A store that does not answer, or is in safe mode, says nothing about this process."""
        with self._lock:
            error, known = outcome.error, self._obstacles.get(job)
        if isinstance(error, Refused) and not isinstance(error, NotWritable | NotSent) and known is None:
            sentence = f"The job cannot be taken over: {error}."
            if isinstance(error, PermissionDenied):
                sentence = (
                    f"This process cannot take the job over, because its user may not write in {self._files.uri}/{job} "
                    f"or below it ({error}): give that right to the user."
                )
            _log.error("%s: not eligible. %s", job, sentence)
            with self._lock:
                self._obstacles[job] = sentence
        elif known is not None and outcome.done:
            _log.info("%s: eligible again: this process may change the job's directory now.", job)
            with self._lock:
                self._obstacles.pop(job, None)


class ContendingProcess:
    """A process that contends: the common part of a sidecar and a daemon.

    The contender runs on a thread of its own. The methods that change something return at once; the contender's answers
    come to the listener that was given to :meth:`join`.
    """

    def __init__(
        self, settings: Settings, liveness_socket: Callable[[Stores], LivenessSocket | None] | None = None
    ) -> None:
        """Start the contender's thread; connect to ZooKeeper in the background."""
        # `liveness_socket`: opens the process's liveness socket; None for a new one, as the settings say.
        # InvalidSettings: an address is not one, or is in use, or two durations clash.
        self.settings = settings
        self.commands: dict[str, Callable[[], dict[str, Any]]] = {}
        """For each job, a function that returns the status of its command; empty for a daemon."""
        self._listeners: dict[str, NoticeQueue] = {}
        self.metrics = Metrics()
        self.stores = Stores(settings)
        self.metrics.stores.show(self.stores.files, self.stores.zookeeper)
        self.liveness_socket = (liveness_socket or new_liveness_socket)(self.stores)
        contender = settings.leadership.contender
        self.runtime = Runtime(contender, self.stores.timing, self.stores.files, self.stores.zookeeper)
        contending = ContendingMetrics(self.metrics.registry, self.metrics.changes, contender)
        twins = TwinWatch(contender, lambda job: self._refuse(job, twin_sentence(contender)))
        self._contender = Contender.make(
            self.runtime,
            contender,
            self.stores.timing,
            self.liveness_socket.contact if self.liveness_socket else None,
            fan_out(self.stores.history.observer, contending.observe, twins.observe),
            self.liveness_socket.tell if self.liveness_socket else None,
            borrows=settings.leadership.borrows_session,
        )
        self.runtime.attach(self._contender)
        self._borrower = borrower_of(self.stores, self.runtime, self._contender)
        self._eligibility = Eligibility(self.runtime, self.stores.files, self.stores.timing)
        self._drained = DrainedHost(self.runtime, self.stores.files, self.stores.timing, contender)
        self._trial = Trial(self.runtime, self.stores.files, self.stores.timing)
        self.reader = reader_of(self.stores, self.metrics)
        self.metrics.registry.register(LeadershipStatus(self.statuses))

    # --- what the contender is to do

    def join(self, job: str, listener: NoticeQueue, also: Look | None = None) -> None:
        """Take part in a job; ``listener`` is told of its leadership, and ``also`` looks for what else may be wrong."""
        self._listeners[job] = listener
        self.runtime.ask(lambda: self._contender.join(job, listener), JOIN_WITHIN_S)
        self._eligibility.check(job, also)
        self._drained.look(job)

    def contend(self, job: str, endpoints: Mapping[str, str]) -> None:
        """Try to become the leader of the job, with endpoints that are published as soon as it is granted."""

        # Not before the roots have been tried. If one breaks the contract of renames, the listener hears of a refusal.
        # And not before it is known whether this host is drained.
        def begin() -> None:
            self._drained.then(job, lambda: self._contender.contend(job, dict(endpoints)))

        self._trial.then(job, begin, lambda sentence: self._refuse(job, sentence))

    def adopt(self, job: str, leader: LeaderDirectory, endpoints: Mapping[str, str]) -> None:
        """Take up a leadership whose process has died on this host; the listener is told of a grant or a revocation."""
        # That process had tried the roots, and this leadership runs out soon.
        self.runtime.post(lambda: self._contender.adopt(job, leader, dict(endpoints)))

    def step_down(self, job: str, reason: str) -> None:
        """End the leadership of the job, if this process leads it; the listener is told of the revocation."""
        self.runtime.post(lambda: self._contender.step_down(job, reason))

    def release(self, job: str, successor: str = "") -> None:
        """Give the lease back, if this process holds it: nothing runs under it now."""
        # `successor`: the contender that is to lead next; empty for anybody.
        self._trial.forget(job)
        self.runtime.post(lambda: self._drained.forget(job))
        self.runtime.post(lambda: self._contender.release(job, successor))

    def release_and_wait(self, jobs: Collection[str]) -> None:
        """Give all these leases back, and wait until they are free, or some calls of the file system timed out."""
        # TimeoutError: the contender's thread does not answer.
        for job in jobs:
            self.release(job)
        await_release(lambda: any(self.holds(job) for job in jobs), self.stores.timing)

    def record_end(self, job: str, leader: LeaderDirectory, cause: str) -> None:
        """Write into the job's history how a leadership of this process ends; waits for nothing."""
        stores = self.stores
        record_end(stores.files, job, leader, cause, self.settings.leadership.contender, stores.timing.call_timeout)

    # --- what it knows

    def holds_until(self, job: str) -> float:
        """Return until when no other can lead the job, in seconds of the clock."""
        # TimeoutError: the contender's thread does not answer.
        return self.runtime.ask(self._contender.participants[job].election.state.holds_until, JOIN_WITHIN_S)

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Return the status of every job, by its name."""
        # TimeoutError: the contender's thread does not answer; the process should be killed.
        found = self.runtime.ask(
            lambda: {
                job: {**_status(each), "attested_by": self._contender.attested_by}
                for job, each in self._contender.participants.items()
            },
            ANSWER_WITHIN_S,
        )
        commands = {job: self.commands[job]() if job in self.commands else None for job in found}
        return {
            job: {
                **each,
                "not_eligible": self._eligibility.obstacle(job)
                or self._drained.unknown(job)
                or (commands[job] or {}).pop("obstacle", "")
                or each["not_eligible"],
                "command": commands[job],
            }
            for job, each in found.items()
        }

    def close(self) -> None:
        """Stop the contender and close the stores; close the liveness socket last, when nothing is led any more."""
        if self._borrower is not None:
            self._borrower.close()
        self.runtime.close()
        self.stores.close()
        if self.liveness_socket is not None:
            self.liveness_socket.close()

    def leads(self, job: str) -> LeaderDirectory | None:
        """Return the directory that this process leads the job in; None if it does not lead."""
        state = self._contender.participants[job].election.state
        return self.runtime.ask(lambda: state.directory if state.is_leader(now()) else None, ANSWER_WITHIN_S)

    def holds(self, job: str) -> bool:
        """Whether this process holds the job's lease, or is about to give it back."""
        return self.runtime.ask(lambda: self._contender.participants[job].busy, ANSWER_WITHIN_S)

    def _refuse(self, job: str, sentence: str) -> None:
        self._eligibility.refuse(job, sentence)
        self.release(job)  # later, because this is called while the contender takes an event
        self._listeners[job].refused(job, sentence)


def _barred(election: ElectionState, at: float) -> str | None:
    if at >= election.barred_until or election.is_leader(at):
        return None
    seconds = election.barred_until - at
    return f"An operator has drained this host: it takes nothing over for {seconds:.0f} s, or until it is undrained."


def _status(participant: Participant) -> dict[str, Any]:
    election, at = participant.election.state, now()
    until, lease, information = election.leads_until(), election.lease, election.information
    seen = participant.leader_mirror.mirror.seen
    copied = decode(seen, election.job) if seen is not None else None
    return {
        "job": election.job,
        "contender": election.contender,
        "phase": election.phase.value,
        "is_leader": election.is_leader(at),
        "belief_seconds": round(max(0.0, until - at), 3) if math.isfinite(until) else 0.0,
        "epoch": election.directory.epoch if election.directory else None,
        "session_id": election.directory.session_id if election.directory else None,
        "endpoints": dict(information.endpoints) if information else {},
        "lease": {"mode": lease.mode.value, "sequence": lease.sequence, "holder": lease.contender} if lease else None,
        "not_eligible": _barred(election, at),
        "paused": f"{election.paused}" if election.paused is not None else None,
        "zookeeper": election.attestation.usable,
        "copy_epoch": copied.epoch if copied is not None else None,
        "copy_repairs": participant.leader_mirror.mirror.repairs,
    }
