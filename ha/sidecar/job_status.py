"""The job's status as the sidecar reads and writes it: begun, restarting, ended; and the cleanup after the end."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from ha.daemon.process import ContendingProcess
from ha.hosts.crew import Crew
from ha.leadership.fenced_rename import LeaderFiles
from ha.program import failure_notes
from ha.sidecar.machine.commands import NOTE_S
from ha.sidecar.standby import promoted_away
from ha.spark.replication.report import begin_line
from ha.spark.rewind.completing import complete as complete_rewinds
from ha.spark.savepoints.restoring import complete, decide
from ha.spark.stored.locations import relocate
from leader.errors import Fenced, LeaderError, NoLeader, NotLeader
from leader.job.admin import JobAdmin
from leader.job.cleanup import Cleanup
from leader.job.exceptions import Exceptions
from leader.job.failed_attempts import FailedAttempts
from leader.job.fenced_directory import FencedDirectory
from leader.job.request_folder import Requests
from leader.job.status import JobStatus, Status, StatusEntry
from leader.layout.names import SPARK, LeaderDirectory
from store.clock import BOOT_CLOCK, Clock
from store.errors import Conflict, Invalid, StoreError

# The final status after a command that exited with 0, if its program had announced such an end.
ENDS = {Status.CANCELLING: Status.CANCELED, Status.FAILING: Status.FAILED}

MOST_UNKEPT = 20  # failures that wait for a store that takes them
_log = logging.getLogger("ha")


class JobStatusUpdater:
    """Reads and changes the status of one job, for the sidecar that leads it."""

    def __init__(
        self, process: ContendingProcess, job: str, crew: Crew, *, again: bool = False, clock: Clock = BOOT_CLOCK
    ) -> None:
        """Prepare; ``crew`` keeps failures in the background.

        With ``again`` the job runs once more, however it had ended before this process contended.
        """
        # Without it the setting `rerun` decides, for jobs that have finished.
        self._clock = clock
        self._process = process
        self._unkept: deque[dict[str, str]] = deque(maxlen=MOST_UNKEPT)
        self._keeping = threading.Lock()
        self._crew = crew
        self._trying: threading.Event | None = None
        self.notes: Callable[[], Path] = Path  # returns the directory in which runs leave notes of their failures
        self._job = job
        rerun = {Status.FINISHED} if process.settings.command.rerun else set()
        self._again, self._run_again = again, {each for each in Status if each.globally_terminal} if again else rerun
        self._end_before: int | None = None
        self.ended = Status.FINISHED  # how the job has ended, or had before it was to run

    @property
    def contender(self) -> str:
        """The name of this process."""
        return self._process.settings.leadership.contender

    def look(self) -> None:
        """Note the job's present end. Only this one may be followed by another run: later ones are of this run."""
        if not self._run_again:
            return
        try:
            entry = self._present()
            self._end_before = entry.sequence if entry.status.globally_terminal else 0
        except NoLeader:
            self._end_before = 0  # there is no such job yet
        except (StoreError, NotLeader) as error:
            self._unknown(error)  # it is better to run a command once more than never

    def runs_again(self) -> bool:
        """Whether the job is known not to be over any more, by another process's doing."""
        try:
            return not self._present().status.globally_terminal
        except (StoreError, LeaderError):
            return False

    def begin(self, leader: LeaderDirectory) -> bool:
        """Set the status to running; returns False if the job has ended for good and must not run: ``ended`` is how."""
        # If the status cannot be read the job runs: it is better to run a command once more than never.
        status = JobStatus(self.directory(leader))
        try:
            found = self._set_running(status)
        except (StoreError, NotLeader) as error:
            self._unknown(error)
            found = StatusEntry(Status.RUNNING)
        self.ended = found.status if found.status.globally_terminal else Status.CANCELED
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
            to = self._process.settings.standby.replicate_to
            _log.error("%s: it was promoted at %s, and runs here only with --again.", self._job, to)
            self.cancel(leader)
            self.finish(leader)
            return False
        self._again, self._run_again = False, set()
        self._restore(leader)
        self._relocate_checkpoints(leader)
        return True

    def reconcile(self, leader: LeaderDirectory) -> None:
        """Say RECONCILING, because the running command is taken up, then RUNNING again."""
        # Any other state is the program's, or that of a request which is carried out again, and stays. A failure is
        # only logged: the command runs anyway.
        status = JobStatus(self.directory(leader))
        self._again, self._run_again = False, set()
        try:
            if status.read() is Status.RUNNING:
                status.change(Status.RUNNING, Status.RECONCILING)
            if status.read() is Status.RECONCILING:
                status.change(Status.RECONCILING, Status.RUNNING)
        except (StoreError, NotLeader) as error:
            self._unknown(error)

    def restore(self, leader: LeaderDirectory, where: str) -> bool:
        """Put the job, whose command must not run, back to the staged savepoint; retries until the lease ends."""
        return self.keep_trying(leader, "start from the savepoint", lambda d: decide(d, where)) and self._restore(
            leader
        )

    def cancel(self, leader: LeaderDirectory) -> None:
        """Set the status to cancelling: if this leader ends before it has cancelled the job, the next one does it."""

        def cancelling(directory: FencedDirectory) -> None:
            _allowed(JobStatus(directory), Status.CANCELLING)

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
            self.ended = found
            self._clean_up(leader)
        return not found.globally_terminal

    def give_up(self, leader: LeaderDirectory, said: str) -> bool:
        """Set the status to failed, and keep why as an exception; returns whether that was done."""
        _log.error("%s: %s The job has FAILED; started with --again it runs once more.", self._job, said)
        self.add_exception(leader, "gave-up", said).wait(NOTE_S)
        return self.keep_trying(leader, "record that the job has failed", _fail)

    def restart(self, leader: LeaderDirectory) -> None:
        """Set the status to running again. A failure is only logged: the command runs anyway."""
        try:
            self._set_running(JobStatus(self.directory(leader)))
        except (StoreError, NotLeader) as error:
            self._unknown(error)

    def add_exception(
        self, leader: LeaderDirectory, kind: str, message: str, trace: str = "", dump: str = ""
    ) -> threading.Event:
        """Keep a failure for `ha job exceptions`, in the background, as :meth:`keep_failures` does."""
        self._unkept.append({"kind": kind, "message": message, "trace": trace, "dump": dump})
        return self.keep_failures(leader)

    def keep_failures(self, leader: LeaderDirectory) -> threading.Event:
        """Keep all failures that are not kept yet, in the background; first those that the program has left."""
        # One try. What the store does not take is kept with the next failure, or in this process's next leadership.

        def keep() -> None:
            with self._keeping:
                try:
                    try:
                        self._keep(self.directory(leader))
                    except Fenced:  # the next leader has the job's exceptions now
                        self._keep(self._newest())
                except (StoreError, LeaderError) as error:
                    _log.info("%s: a failure is not kept yet for `ha job exceptions`: %s", self._job, error)

        self._trying = self._crew(keep)
        return self._trying

    def _keep(self, directory: FencedDirectory) -> None:
        exceptions = Exceptions(directory)
        for file, note in failure_notes.left(self.notes()).items():
            exceptions.add(note.kind, note.message, query=note.query, trace=note.trace)
            failure_notes.drop(file)
        while self._unkept:
            exceptions.add(**self._unkept[0])
            self._unkept.popleft()

    def settle(self) -> None:
        """Wait until the newest failure is kept: nothing keeps it once this process has closed its stores."""
        if self._trying is not None:
            self._trying.wait(NOTE_S)

    def finish(self, leader: LeaderDirectory) -> bool:
        """Set the final status, then clean up; retries until the lease ends. Returns whether the status was set."""

        def finish(directory: FencedDirectory) -> None:
            self.ended = _finish(directory)

        finished = self.keep_trying(leader, "record that the job has ended", finish)
        if finished:
            self._clean_up(leader)
        return finished

    def _present(self) -> StatusEntry:
        return JobStatus(self._newest()).entry()

    def _newest(self) -> FencedDirectory:
        """Return the job's directory of whoever leads, or led last."""
        stores = self._process.stores
        return JobAdmin(stores.files, None, stores.timing.call_timeout).directory(self._job)

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
        wanted = self._process.settings.command.cleanup

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
        """Try until it is done or the lease ends; returns whether it was done."""
        # `what` is for the log: it cannot ... `action` is one try.
        said = ""
        while self._clock.now() < self._process.holds_until(self._job):
            try:
                action(self.directory(leader))
            except NotLeader:
                return False
            except StoreError as error:
                if said != (said := f"{error}"):  # HDFS in safe mode gives the same answer four times a second
                    _log.warning("%s: it cannot %s: %s", self._job, what, said)
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
        Requests(directory).refuse("The run of the job that it was meant for has ended: ask again.")  # nor do these
        if found.cleaning == "cleaning":  # or the new run's files would go into the trash
            Cleanup(directory).clean()
        status.begin_again(found.status)
    status.change(status.read(), Status.RUNNING)


def _fail(directory: FencedDirectory) -> None:
    for new in (Status.FAILING, Status.FAILED):
        _allowed(JobStatus(directory), new)


def _allowed(status: JobStatus, new: Status) -> None:
    """Change the status if that is allowed."""
    if (found := status.read()).allows(new):
        status.change(found, new)


def _finish(directory: FencedDirectory) -> Status:
    """Set the final status, and return it: FINISHED, unless the program has announced another end."""
    status = JobStatus(directory)
    found = status.read()
    end = found if found.globally_terminal else ENDS.get(found, Status.FINISHED)
    if not found.allows(end):
        status.change(found, Status.RUNNING)
        found = Status.RUNNING
    status.change(found, end)
    return end
