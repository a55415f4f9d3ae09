"""The job's status as the sidecar reads and writes it: begun, restarting, ended; and the cleanup after the end."""

import logging
import threading
from collections.abc import Callable

from ha.config.command_settings import CLEANUP_ON, RERUN_ON
from ha.daemon.process import ContendingProcess
from ha.leadership.fenced_rename import LeaderFiles
from ha.rewind.completing import complete as complete_rewinds
from ha.sidecar.replication import promoted_away
from ha.spark.relocate import relocate
from ha.spark.replication.marks import begin_line
from ha.spark.savepoints.restoring import complete, decide
from leader.errors import NoLeader, NotLeader
from leader.job.admin import JobAdmin
from leader.job.cleanup import Cleanup
from leader.job.exceptions import Exceptions
from leader.job.failed_attempts import FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.job.status import JobStatus, Status, StatusEntry
from leader.layout.names import SPARK, LeaderDirectory
from store.clock import BOOT_CLOCK, Clock
from store.errors import Conflict, Invalid, StoreError

ENDS = {Status.CANCELLING: Status.CANCELED, Status.FAILING: Status.FAILED}
"""The final status after a command that exited with 0, if its program had announced such an end."""

NOTE_S = 2.0
"""Longest wait until a failure is written down, if the leadership is given back next."""

SHORT_NOTE_S = 0.1
"""Likewise of a failure without a dump: it is written as fast as it is counted, unless the store is slow."""

_log = logging.getLogger("ha")


class JobStatusUpdater:
    """Reads and changes the status of one job, for the sidecar that leads it."""

    def __init__(self, process: ContendingProcess, job: str, *, again: bool = False, clock: Clock = BOOT_CLOCK) -> None:
        """Prepare.

        Args:
            process: its stores and contender are used.
            job: the job's name.
            again: run the job once more if it had ended before this process contended, whatever its end was. Without
                it the setting ``rerun`` decides, for jobs that have finished.
            clock: of the process, or a simulation's.
        """
        self._clock = clock
        self._process = process
        self._job = job
        rerun = {Status.FINISHED} if process.settings.rerun == RERUN_ON else set()
        self._again, self._run_again = again, {each for each in Status if each.globally_terminal} if again else rerun
        self._end_before: int | None = None

    def look(self) -> None:
        """Note the job's present end. Only this one may be followed by another run: later ones are of this run."""
        if not self._run_again:
            return
        stores = self._process.stores
        try:
            entry = JobStatus(JobAdmin(stores.files, None, stores.timing.call_timeout).directory(self._job)).entry()
            self._end_before = entry.sequence if entry.status.globally_terminal else 0
        except NoLeader:
            self._end_before = 0  # there is no such job yet
        except (StoreError, NotLeader) as error:
            self._unknown(error)  # it is better to run a command once more than never

    def begin(self, leader: LeaderDirectory) -> bool:
        """Set the status to running; returns False if the job has ended for good and must not run.

        If the status cannot be read the job runs: it is better to run a command once more than never.
        """
        status = JobStatus(self.directory(leader))
        try:
            found = self._set_running(status)
        except (StoreError, NotLeader) as error:
            self._unknown(error)
            found = StatusEntry(Status.RUNNING)
        if found.status is Status.CANCELLING:  # its leader ended before it could complete that
            self.finish(leader)
            return False
        away = promoted_away(self._process, self.directory(leader))
        if away and self._again:
            away = not self.keep_trying(leader, "go on with the job in spite of its promotion", begin_line)
        if found.status in self._run_again and self._end_before in {None, found.sequence} and not away:
            self.keep_trying(leader, "begin the job again", _begin_again)
        elif found.status.globally_terminal:
            self._clean_up(leader)
            return False
        elif away:
            to = self._process.settings.replicate_to
            _log.error("%s: it was promoted at %s, and must not run here; `ha run --again` runs it.", self._job, to)
            self.cancel(leader)
            self.finish(leader)
            return False
        self._again, self._run_again = False, set()
        self._restore(leader)
        self._relocate_checkpoints(leader)
        return True

    def reconcile(self, leader: LeaderDirectory, taken_up: Callable[[], None]) -> None:
        """Say RECONCILING while the running command is taken up, then RUNNING again.

        Any other state is the program's, or that of a request which is carried out again, and stays. A failure is only
        logged: the command runs anyway.
        """
        status = JobStatus(self.directory(leader))
        self._again, self._run_again = False, set()
        try:
            if status.read() is Status.RUNNING:
                status.change(Status.RUNNING, Status.RECONCILING)
        except (StoreError, NotLeader) as error:
            self._unknown(error)
        taken_up()
        try:
            if status.read() is Status.RECONCILING:
                status.change(Status.RECONCILING, Status.RUNNING)
        except (StoreError, NotLeader) as error:
            self._unknown(error)

    def restore(self, leader: LeaderDirectory, where: str) -> bool:
        """Put the job back to the savepoint that was staged; tries until the lease ends. Returns whether it was done.

        Its command must not run.
        """
        return self.keep_trying(leader, "start from the savepoint", lambda d: decide(d, where)) and self._restore(
            leader
        )

    def cancel(self, leader: LeaderDirectory) -> None:
        """Set the status to cancelling: if this leader ends before it has cancelled the job, the next one does it."""

        def cancelling(directory: FencedDirectory) -> None:
            status = JobStatus(directory)
            if (found := status.read()).allows(Status.CANCELLING):
                status.change(found, Status.CANCELLING)

        self.keep_trying(leader, "record that the job is being cancelled", cancelling)

    def fail(self, leader: LeaderDirectory) -> bool:
        """Set the status to restarting; returns False if the program has ended the job for good."""
        status = JobStatus(self.directory(leader))
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

    def give_up(self, leader: LeaderDirectory, said: str) -> bool:
        """Set the status to failed: the job runs no more. Returns whether that was done.

        Args:
            leader: the leadership.
            said: why, kept as an exception of the job.
        """
        _log.error("%s: %s The job has FAILED; `ha run --again` runs it once more.", self._job, said)
        self.add_exception(leader, "gave-up", said).join(NOTE_S)
        return self.keep_trying(leader, "record that the job has failed", _fail)

    def restart(self, leader: LeaderDirectory) -> None:
        """Set the status to running again. A failure is only logged: the command runs anyway."""
        try:
            self._set_running(JobStatus(self.directory(leader)))
        except (StoreError, NotLeader) as error:
            self._unknown(error)

    def add_exception(self, leader: LeaderDirectory, kind: str, message: str, dump: str = "") -> threading.Thread:
        """Keep a failure for `ha exceptions`: one try, in the background, which is returned.

        If the leadership is given back at once, the next leader's claim may be sooner; the history has its end anyway.
        """
        exceptions = Exceptions(self.directory(leader), self._process.settings.exceptions_retained)

        def add() -> None:
            try:
                exceptions.add(kind, message, dump=dump)
            except (StoreError, NotLeader) as error:
                _log.info("%s: a failure is not kept for `ha exceptions`: %s", self._job, error)

        trying = threading.Thread(target=add, name="ha-exception", daemon=True)
        trying.start()
        return trying

    def finish(self, leader: LeaderDirectory) -> bool:
        """Set the final status, then clean up; tries until the lease ends. Returns whether the status was set."""
        finished = self.keep_trying(leader, "record that the job has ended", _finish)
        if finished:
            self._clean_up(leader)
        return finished

    def _restore(self, leader: LeaderDirectory) -> bool:
        """Complete what was decided, perhaps by a leader that has ended: the job must not start from anything else."""
        home = self._process.stores.directory_uri(self._job, leader)

        def completed(directory: FencedDirectory) -> None:
            put_back = LeaderFiles(self._job, leader.epoch, leader.session_id, home, self._process.stores.open)
            for plan in complete_rewinds(put_back, directory):
                _log.info("%s: query %s is put back to batch %d.", self._job, plan.query, plan.batch)
            manifest = complete(directory, lambda query: f"{home}/{SPARK}/{query}")
            if manifest is not None:
                _log.info("%s: it starts from savepoint %s: %s.", self._job, manifest.id, manifest.said)
                for said in manifest.bound(home):
                    _log.warning("%s: %s.", self._job, said)

        return self.keep_trying(leader, "start from what was decided for", completed)

    def _relocate_checkpoints(self, leader: LeaderDirectory) -> None:
        """Correct the paths of its checkpoints that Spark has stored, so that the program need not do it."""
        directory, home = self.directory(leader), self._process.stores.directory_uri(self._job, leader)
        try:
            for query in directory.list(SPARK):
                relocate(directory, f"{SPARK}/{query.name}", f"{home}/{SPARK}/{query.name}")
        except (StoreError, NotLeader) as error:
            _log.warning("%s: a query with transformWithState may not find its schema: %s", self._job, error)

    def _clean_up(self, leader: LeaderDirectory) -> None:
        """Move the job's leftovers into its trash, if the settings say so or an interrupted cleanup has begun it."""
        wanted = self._process.settings.cleanup == CLEANUP_ON

        def clean(directory: FencedDirectory) -> None:
            entry = JobStatus(directory).entry()
            if entry.cleaning == "cleaning" or (wanted and not entry.cleaning):
                try:
                    _log.info("%s: its leftovers are in the trash: %s.", self._job, Cleanup(directory).clean())
                except (Conflict, Invalid) as error:
                    _log.warning("%s: the leftovers are not cleaned up: %s", self._job, error)

        self.keep_trying(leader, "clean up", clean)

    def _set_running(self, status: JobStatus) -> StatusEntry:
        """Set the status to running if that is allowed; returns the entry before."""
        found = status.entry()
        present = found.status
        if present is Status.FAILING:  # its leader ended while it stopped what still ran
            status.change(present, Status.RESTARTING)
            present = Status.RESTARTING
        if present is not Status.RUNNING and present.allows(Status.RUNNING):
            status.change(present, Status.RUNNING)
        return found

    def _unknown(self, error: Exception) -> None:
        _log.warning("%s: the status of the job is not known: %s", self._job, error)

    def keep_trying(self, leader: LeaderDirectory, what: str, action: Callable[[FencedDirectory], None]) -> bool:
        """Try until it is done or the lease ends; returns whether it was done.

        Args:
            leader: the leadership.
            what: that is tried, for the log: it cannot ...
            action: one try; raises what the store says, or that another contender leads.
        """
        while self._clock.now() < self._process.holds_until(self._job):
            try:
                action(self.directory(leader))
            except NotLeader:
                return False
            except StoreError as error:
                _log.warning("%s: it cannot %s: %s", self._job, what, error)
                self._clock.sleep(self._process.stores.timing.retry)
            else:
                return True
        return False

    def directory(self, leader: LeaderDirectory) -> FencedDirectory:
        """Return the leader directory as a store."""
        stores = self._process.stores
        return FencedDirectory(stores.files, self._job, leader, stores.timing.call_timeout)


def _begin_again(directory: FencedDirectory) -> None:
    status = JobStatus(directory)
    if (found := status.entry()).status.globally_terminal:
        FailedAttempts(directory).forget()  # before the job begins: those of its last run do not end this one
        if found.cleaning == "cleaning":  # or the new run's files would go into the trash
            Cleanup(directory).clean()
        status.begin_again(found.status)
    status.change(status.read(), Status.RUNNING)


def _fail(directory: FencedDirectory) -> None:
    status = JobStatus(directory)
    for new in (Status.FAILING, Status.FAILED):
        found = status.read()
        if found.allows(new):
            status.change(found, new)


def _finish(directory: FencedDirectory) -> None:
    """Set the final status: FINISHED, unless the program has announced another end."""
    status = JobStatus(directory)
    found = status.read()
    end = found if found.globally_terminal else ENDS.get(found, Status.FINISHED)
    if not found.allows(end):
        status.change(found, Status.RUNNING)
        found = Status.RUNNING
    status.change(found, end)
