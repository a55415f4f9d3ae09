"""The sidecar: contends for a job, runs a command while it leads, stops the command when the leadership ends."""

import logging
import os
import random
import signal
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from ha import grant as granting
from ha.belief import BeliefWriter
from ha.inbox import AskedTo, Granted, Inbox, Notice, Revoked, Wake
from ha.metrics.supervising import Restarts
from ha.node import Node
from ha.restart import INFINITE, ExponentialDelay, NoRestart, RestartStrategy
from ha.settings import WARM
from ha.spark_conf import check_command, spark_environment
from ha.supervised import Supervised
from leader.cleanup import Cleanup
from leader.errors import NotLeader
from leader.events import Grant
from leader.information import check_endpoints
from leader.names import LeaderDirectory, check_job
from leader.own import OwnDirectory
from leader.status import JobStatus, Status
from store.clock import now
from store.errors import StoreError

KILL_BEFORE = 0.2
"""Seconds before the belief ends at which a command is killed that did not end when it was asked to."""

WARM_UP_AGAIN = (1.0, 60.0, 1.5, 0.1, 3600.0, INFINITE)
"""Flink's defaults of its exponential delay: after which a command that ends before it was granted is started again."""

ENDS = {Status.CANCELLING: Status.CANCELED, Status.FAILING: Status.FAILED}
"""How a job has ended whose command ended well, where its program had said what it was about to do."""

CHILD_ENDED = "child ended"
NEVER = float("inf")

_log = logging.getLogger("ha")


class Sidecar:
    """Runs one command for one job, whenever this process leads it; a warm one before that, without an epoch."""

    def __init__(
        self,
        node: Node,
        job: str,
        command: Sequence[str],
        endpoints: Mapping[str, str],
        *,
        again: bool = False,
        spark: bool = False,
    ) -> None:
        """Prepare; it does not contend before :meth:`run`.

        Args:
            node: the process's stores and contender; closed by whoever made it.
            job: the job's name.
            command: program and arguments.
            endpoints: published while leading.
            again: run the command even if the job has finished before.
            spark: tell the command where its checkpoints lie by Spark's own configuration; not for a warm standby.

        Raises:
            InvalidName: the job or an endpoint cannot be called that.
            InvalidSettings: that cannot be told to such a command.
        """
        if spark:
            check_command(command, warm=node.settings.standby == WARM)
        self._node = node
        self._settings = node.settings
        self._job = check_job(job)
        self._command = list(command)
        self._endpoints = check_endpoints(endpoints)
        self._again = again
        self._spark = spark
        self._directory = tempfile.TemporaryDirectory(prefix="ha-", ignore_cleanup_errors=True)
        self._belief = BeliefWriter(Path(self._directory.name, "belief"))
        self._leads_until = float("-inf")
        self._inbox = Inbox(self._believed)
        self._leader: LeaderDirectory | None = None
        self._child: Supervised | None = None
        self._child_code = 0
        self._child_epoch = 0
        """The epoch that the command was granted; 0 if none yet."""
        self._grant: Path | None = None
        """Where the command looks for its grant; None if it was started with one."""
        self._runs = 0
        self._warm_up_again = ExponentialDelay(*WARM_UP_AGAIN, random.random)
        self._kill_at = NEVER
        self._strategy: RestartStrategy | None = None
        """What to do about failures; None while the command is not to run again: there is no leadership, or it ends."""
        self._restart_at = NEVER
        self._restarts = Restarts(node.metrics.registry, job)
        self._successor = ""
        self._exit_code: int | None = None

    def run(self) -> int:
        """Contend until the job has finished or a signal ends this; returns what to exit with."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signalled)
        leads = self._node.leads(self._inbox)
        self._node.runtime.ask(lambda: self._node.contender.join(self._job, leads), timeout=5.0)
        self._post_contend()
        _log.info("%s: contending as %s.", self._job, self._settings.contender)
        self._warm_up()
        try:
            while self._exit_code is None or self._child is not None or self._leader is not None:
                next_at = min(self._kill_at, self._restart_at)
                self._act(self._inbox.get(min(0.5, max(0.0, next_at - now()))))
            self._await_release()
        finally:
            self._close()
        return self._exit_code

    # --- what happens

    def _act(self, notice: Notice | None) -> None:
        match notice:
            case Granted(_, grant):
                self._granted(grant)
            case Revoked(_, revoke) if self._leader is not None and revoke.session_id == self._leader.session_id:
                self._stop_child(revoke.until)
            case AskedTo(_, successor) if self._leader is not None:
                self._successor = successor
                self._step_down("An operator asked to hand over.")
            case Wake(what) if what == CHILD_ENDED:
                self._child_ended()
            case Wake(what):
                self._step_down(f"The sidecar was told to stop ({what}).")
                if self._leader is None and self._child is not None:  # nobody will revoke what was not granted
                    self._stop_child(None)
            case _:
                pass
        if self._child is not None and now() >= self._kill_at:
            _log.warning("%s: the command did not end in time and is killed.", self._job)
            self._child.kill()
            self._kill_at = NEVER
        if now() >= self._restart_at:
            self._start_again()

    def _believed(self, _: str, leads_until: float, holds_until: float) -> None:
        self._leads_until = leads_until
        self._belief.write(leads_until, holds_until)

    def _signalled(self, number: int, _: FrameType | None) -> None:
        if self._exit_code is None:
            self._exit_code = 128 + number
        self._inbox.put(Wake(signal.Signals(number).name))

    def _granted(self, grant: Grant) -> None:
        self._leader = LeaderDirectory(grant.epoch, grant.session_id)
        self._node.runtime.post(lambda: self._node.contender.confirm(self._job, grant.session_id, self._endpoints))
        if self._exit_code is not None:
            self._step_down("The sidecar is stopping.")
        elif self._finished_before():
            _log.info("%s: the job has finished; --again runs it once more.", self._job)
            self._exit_code = 0
            self._step_down("The job has finished.")
        else:
            self._strategy = self._settings.restart_strategy(random.random)
            self._restart_at = NEVER
            if self._child is not None and self._grant is not None:
                self._runs_in(self._leader)
                granting.grant(self._grant, self._leader)
                _log.info("%s: the command, which is warm, is granted epoch %d.", self._job, grant.epoch)
            else:
                self._start(self._leader)

    def _warm_up(self) -> None:
        if self._settings.standby == WARM and self._exit_code is None:
            self._start(None)

    def _start(self, leader: LeaderDirectory | None) -> None:
        self._runs += 1
        self._grant = None if leader else Path(self._directory.name, f"grant-{self._runs}")
        self._child_epoch = 0
        # What is empty here hides what another sidecar has told this one, if it is a command itself.
        environment = {
            "HA_JOB": self._job,
            "HA_EPOCH": str(leader.epoch) if leader else "",
            "HA_SESSION_ID": leader.session_id if leader else "",
            "HA_LEADER_DIRECTORY": f"{self._settings.files.rstrip('/')}/{self._job}/{leader.name}" if leader else "",
            "HA_GRANT": str(self._grant or ""),
            "HA_BELIEF": str(self._belief.path),
            "HA_FILES": self._settings.files,
            "HA_ZOOKEEPER": self._settings.zookeeper,
            "HA_SNAPSHOTS": self._settings.snapshots,
            "HA_SPARK_JVM": "",
        }
        if self._spark:
            overlay = Path(self._directory.name, f"spark-{self._runs}")
            environment |= spark_environment(overlay, {**os.environ, **environment})
        if leader is not None:
            self._runs_in(leader)
        listener = self._node.listener
        held = [listener.fileno()] if listener is not None else []
        child = Supervised(self._command, environment, self._belief.path, held, self._grant)
        self._child, self._kill_at = child, NEVER
        threading.Thread(target=self._wait, args=(child,), name="ha-wait", daemon=True).start()
        _log.info("%s: the command %s, guarded by process %d.", self._job, "runs" if leader else "warms up", child.pid)

    def _runs_in(self, leader: LeaderDirectory) -> None:
        self._again = False  # that was asked for once
        self._child_epoch = leader.epoch
        self._node.stores.history.ran(self._job, leader.epoch, running=True)

    def _wait(self, child: Supervised) -> None:
        self._child_code = child.wait()
        if self._child_epoch:
            self._node.stores.history.ran(self._job, self._child_epoch, running=False)
        self._inbox.put(Wake(CHILD_ENDED))

    def _start_again(self) -> None:
        self._restart_at = NEVER
        if self._leader is None:
            self._warm_up()
        elif self._may_run():
            self._restarts.count()
            self._start(self._leader)
        else:  # this process was paused meanwhile, and is about to hear of the end
            self._end_of_work("The leadership was over before the command could be started again.")

    def _may_run(self) -> bool:
        """Whether the command may run, as far as this process knows; should it be wrong, the guard knows better."""
        return self._strategy is not None and self._exit_code is None and now() < self._leads_until

    def _stop_child(self, until: float | None) -> None:
        self._strategy, self._restart_at = None, NEVER
        if self._child is None:
            self._give_back()
            return
        self._child.terminate()
        latest = now() + self._settings.stop_grace if until is None else until - KILL_BEFORE
        self._kill_at = min(self._kill_at, latest)

    def _child_ended(self) -> None:
        self._child, self._kill_at = None, NEVER
        code = self._child_code
        _log.log(logging.WARNING if code else logging.INFO, "%s: the command has ended with %d.", self._job, code)
        if self._leader is None:
            self._ended_early()
            return
        if code == 0 and (self._grant is None or granting.taken(self._grant)) and self._record_finished():
            self._exit_code = 0
        delay = self._delay_of_restart() if code else None
        if delay is None:
            self._end_of_work(f"The command has ended with {code}.")
        else:
            _log.info("%s: the command is started again in %.1f s; the leadership stays.", self._job, delay)
            self._restart_at = now() + delay

    def _ended_early(self) -> None:
        if self._exit_code is None:
            delay = self._warm_up_again.failed(now()) or self._settings.long_ttl
            _log.warning("%s: nothing was granted to it yet; it is started again in %.1f s.", self._job, delay)
            self._restart_at = now() + delay

    def _delay_of_restart(self) -> float | None:
        """Seconds until the command that has failed is started again; None if the leadership ends with it."""
        if self._strategy is None or not self._may_run():
            return None
        delay = self._strategy.failed(now())
        if delay is None and not isinstance(self._strategy, NoRestart):
            _log.warning("%s: the restart strategy gives up here: another contender may try.", self._job)
        return delay

    def _end_of_work(self, reason: str) -> None:
        self._step_down(reason)
        self._give_back()

    def _step_down(self, reason: str) -> None:
        self._strategy, self._restart_at = None, NEVER
        self._node.runtime.post(lambda: self._node.contender.step_down(self._job, reason))

    def _give_back(self) -> None:
        successor, self._successor, self._leader = self._successor, "", None
        self._node.runtime.post(lambda: self._node.contender.release(self._job, successor))
        if self._exit_code is None:
            self._post_contend()
            self._warm_up()

    def _post_contend(self) -> None:
        self._node.runtime.post(lambda: self._node.contender.contend(self._job))

    # --- the job's state

    def _finished_before(self) -> bool:
        assert self._leader is not None, "only a leader asks"
        status = JobStatus(self._own(self._leader))
        try:
            found = status.read()
            if found is not Status.RUNNING and found.allows(Status.RUNNING):
                status.change(found, Status.RUNNING)
        except (StoreError, NotLeader) as error:
            _log.warning("%s: the state of the job is not known: %s", self._job, error)
            return False
        if found.globally_terminal and self._again:
            self._insist("begin the job again", self._begin_again)
            return False
        return found.globally_terminal

    def _begin_again(self, own: OwnDirectory) -> None:
        status = JobStatus(own)
        if (found := status.entry()).status.globally_terminal:
            if found.cleaning == "cleaning":  # or what the new run writes would go into the trash
                Cleanup(own).clean()
            status.begin_again(found.status)
        status.change(status.read(), Status.RUNNING)

    def _record_finished(self) -> bool:
        return self._insist("record that the job has ended", _finish)

    def _insist(self, what: str, action: Callable[[OwnDirectory], None]) -> bool:
        """Try again until it is done, or the lease is over; returns whether it was done."""
        while self._leader is not None and now() < self._holds_until():
            try:
                action(self._own(self._leader))
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

    def _await_release(self) -> None:
        # A grant may have come that the loop did not get to see; nothing runs under it.
        self._node.runtime.post(lambda: self._node.contender.release(self._job))
        end = now() + 4 * self._node.stores.timing.call_timeout
        while now() < end and self._node.holds(self._job):
            threading.Event().wait(0.01)

    def _close(self) -> None:
        if self._child is not None:
            self._child.kill()
        self._belief.close()
        self._directory.cleanup()


def _finish(own: OwnDirectory) -> None:
    """Bring the job to its end: a good one, unless its program has said otherwise."""
    status = JobStatus(own)
    found = status.read()
    end = found if found.globally_terminal else ENDS.get(found, Status.FINISHED)
    if not found.allows(end):
        status.change(found, Status.RUNNING)
        found = Status.RUNNING
    status.change(found, end)
