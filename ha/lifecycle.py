"""What a sidecar says of its job's state: begun, about to be started again, ended; and what it finds there."""

import logging
import threading
from collections.abc import Callable

from ha.node import Node
from ha.settings import CLEANUP_ON
from ha.spark.moved import bring_home
from leader.cleanup import Cleanup
from leader.errors import NotLeader
from leader.names import SPARK, LeaderDirectory
from leader.own import OwnDirectory
from leader.status import JobStatus, Status
from store.clock import now
from store.errors import Conflict, Invalid, StoreError

ENDS = {Status.CANCELLING: Status.CANCELED, Status.FAILING: Status.FAILED}
"""How a job has ended whose command ended well, where its program had said what it was about to do."""

_log = logging.getLogger("ha")


class Lifecycle:
    """The state of one job, as the sidecar that leads it changes it."""

    def __init__(self, node: Node, job: str, *, again: bool = False) -> None:
        """Prepare.

        Args:
            node: the process's stores and contender.
            job: the job's name.
            again: begin the job even if it has finished before; that is asked for once.
        """
        self._node = node
        self._job = job
        self._again = again

    def begin(self, leader: LeaderDirectory) -> bool:
        """Say that the job runs; returns False if it has ended for good, and is not to be run.

        If that is not known it is to be run: a command that runs once more is better than one that never does.
        """
        status = JobStatus(self._own(leader))
        try:
            found = self._say_running(status)
        except (StoreError, NotLeader) as error:
            self._unknown(error)
            found = Status.RUNNING
        if found.globally_terminal and self._again:
            self._insist(leader, "begin the job again", _begin_again)
        elif found.globally_terminal:
            self._clean_up(leader)
            return False
        self._again = False
        self._bring_home(leader)
        return True

    def fail(self, leader: LeaderDirectory) -> bool:
        """Say that the job is restarting; returns False if its program has said that it has ended for good."""
        status = JobStatus(self._own(leader))
        try:
            found = status.read()
            if found in (Status.RUNNING, Status.FAILING):
                status.change(found, Status.RESTARTING)
        except (StoreError, NotLeader) as error:
            self._unknown(error)
            return True
        if found.globally_terminal:
            self._clean_up(leader)
        return not found.globally_terminal

    def restart(self, leader: LeaderDirectory) -> None:
        """Say that it runs again; it does, whether that can be said or not."""
        try:
            self._say_running(JobStatus(self._own(leader)))
        except (StoreError, NotLeader) as error:
            self._unknown(error)

    def finish(self, leader: LeaderDirectory) -> bool:
        """Say that it has ended, for as long as the lease lasts; returns whether that was done. Then clean up."""
        finished = self._insist(leader, "record that the job has ended", _finish)
        if finished:
            self._clean_up(leader)
        return finished

    def _bring_home(self, leader: LeaderDirectory) -> None:
        """Have what Spark has noted about its checkpoints' place follow: the program need not know of us."""
        own, home = self._own(leader), f"{self._node.settings.files.rstrip('/')}/{self._job}/{leader.name}"
        try:
            for query in own.list(SPARK):
                bring_home(own, f"{SPARK}/{query.name}", f"{home}/{SPARK}/{query.name}")
        except (StoreError, NotLeader) as error:
            _log.warning("%s: a query with transformWithState may not find its schema: %s", self._job, error)

    def _clean_up(self, leader: LeaderDirectory) -> None:
        """Move what the job leaves into its trash, if that is wanted, or if somebody has begun it and is gone."""
        wanted = self._node.settings.cleanup == CLEANUP_ON

        def clean(own: OwnDirectory) -> None:
            entry = JobStatus(own).entry()
            if entry.cleaning == "cleaning" or (wanted and not entry.cleaning):
                try:
                    _log.info("%s: what it left is in the trash: %s.", self._job, Cleanup(own).clean())
                except (Conflict, Invalid) as error:
                    _log.warning("%s: nothing is cleaned up: %s", self._job, error)

        self._insist(leader, "clean up", clean)

    def _say_running(self, status: JobStatus) -> Status:
        """Return what was found."""
        found = status.read()
        if found is not Status.RUNNING and found.allows(Status.RUNNING):
            status.change(found, Status.RUNNING)
        return found

    def _unknown(self, error: Exception) -> None:
        _log.warning("%s: the state of the job is not known: %s", self._job, error)

    def _insist(self, leader: LeaderDirectory, what: str, action: Callable[[OwnDirectory], None]) -> bool:
        """Try again until it is done, or the lease is over; returns whether it was done."""
        while now() < self._holds_until():
            try:
                action(self._own(leader))
            except NotLeader:
                return False
            except StoreError as error:
                _log.warning("%s: it cannot %s: %s", self._job, what, error)
                threading.Event().wait(self._node.stores.timing.retry)
            else:
                return True
        return False

    def _own(self, leader: LeaderDirectory) -> OwnDirectory:
        stores = self._node.stores
        return OwnDirectory(stores.files, self._job, leader, stores.timing.call_timeout)

    def _holds_until(self) -> float:
        candidacy = self._node.contender.candidacies[self._job]
        return self._node.runtime.ask(candidacy.election.holds_until, timeout=5.0)


def _begin_again(own: OwnDirectory) -> None:
    status = JobStatus(own)
    if (found := status.entry()).status.globally_terminal:
        if found.cleaning == "cleaning":  # or what the new run writes would go into the trash
            Cleanup(own).clean()
        status.begin_again(found.status)
    status.change(status.read(), Status.RUNNING)


def _finish(own: OwnDirectory) -> None:
    """Bring the job to its end: a good one, unless its program has said otherwise."""
    status = JobStatus(own)
    found = status.read()
    end = found if found.globally_terminal else ENDS.get(found, Status.FINISHED)
    if not found.allows(end):
        status.change(found, Status.RUNNING)
        found = Status.RUNNING
    status.change(found, end)
