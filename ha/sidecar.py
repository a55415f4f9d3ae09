"""The sidecar: contends for a job, runs a command while it leads, stops the command when the leadership ends."""

import logging
import random
import signal
import threading
from collections.abc import Mapping, Sequence
from types import FrameType

from ha.command import NEVER, Command
from ha.inbox import AskedTo, Granted, Inbox, Notice, Revoked, Wake
from ha.lifecycle import Lifecycle
from ha.metrics.supervising import Restarts
from ha.node import Node
from ha.restart import INFINITE, ExponentialDelay, NoRestart, RestartStrategy
from ha.settings import WARM
from ha.spark.following import Following
from ha.spark_conf import check_command
from leader.events import Grant
from leader.information import check_endpoints
from leader.names import LeaderDirectory, check_job
from store.clock import now

KILL_BEFORE = 0.2
"""Seconds before the belief ends at which a command is killed that did not end when it was asked to."""

WARM_UP_AGAIN = (1.0, 60.0, 1.5, 0.1, 3600.0, INFINITE)
"""Flink's defaults of its exponential delay: after which a command that ends before it was granted is started again."""

CHILD_ENDED = "child ended"

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
        self._endpoints = check_endpoints(endpoints)
        self._lifecycle = Lifecycle(node, job, again=again)
        self._leads_until = float("-inf")
        self._inbox = Inbox(self._believed)
        self._command = Command(node, job, command, lambda: self._inbox.put(Wake(CHILD_ENDED)), spark=spark)
        node.commands[job] = self._command.shown
        self._following = Following(node, job, self._leads) if spark else None
        self._leader: LeaderDirectory | None = None
        self._warm_up_again = ExponentialDelay(*WARM_UP_AGAIN, random.random)
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
            while self._exit_code is None or self._command.runs or self._leader is not None:
                next_at = min(self._command.kill_at, self._restart_at)
                self._act(self._inbox.get(min(0.5, max(0.0, next_at - now()))))
            self._await_release()
        finally:
            self._command.close()
        return self._exit_code

    # --- what happens

    def _act(self, notice: Notice | None) -> None:
        match notice:
            case Granted(_, grant):
                self._granted(grant)
            case Revoked(_, revoke) if self._leader is not None and revoke.session_id == self._leader.session_id:
                self._stop_command(revoke.until)
            case AskedTo(_, successor) if self._leader is not None:
                self._successor = successor
                self._step_down("An operator asked to hand over.")
            case Wake(what) if what == CHILD_ENDED:
                self._command_ended()
            case Wake(what):
                self._step_down(f"The sidecar was told to stop ({what}).")
                if self._leader is None and self._command.runs:  # nobody will revoke what was not granted
                    self._stop_command(None)
            case _:
                pass
        self._command.kill_late()
        if now() >= self._restart_at:
            self._start_again()

    def _believed(self, _: str, leads_until: float, holds_until: float) -> None:
        self._leads_until = leads_until
        self._command.belief.write(leads_until, holds_until)

    def _signalled(self, number: int, _: FrameType | None) -> None:
        if self._exit_code is None:
            self._exit_code = 128 + number
        self._inbox.put(Wake(signal.Signals(number).name))

    def _granted(self, grant: Grant) -> None:
        self._leader = LeaderDirectory(grant.epoch, grant.session_id)
        self._node.runtime.post(lambda: self._node.contender.confirm(self._job, grant.session_id, self._endpoints))
        if self._exit_code is not None:
            self._step_down("The sidecar is stopping.")
        elif self._lifecycle.begin(self._leader):
            self._strategy = self._settings.restart_strategy(random.random)
            self._restart_at = NEVER
            if self._following is not None:
                self._following.begin(self._leader)
            self._hand_on(self._leader)
        else:
            _log.info("%s: the job has finished; --again runs it once more.", self._job)
            self._exit_code = 0
            self._step_down("The job has finished.")

    def _hand_on(self, leader: LeaderDirectory) -> None:
        """Let the command have what was granted."""
        try:
            if self._command.runs:
                self._command.grant(leader)
            else:
                self._command.start(leader)
        except OSError as error:  # a host on which no line can be written is no place for a driver
            self._step_down(f"The command could not be told that it leads: {error.strerror}.")

    def _warm_up(self) -> None:
        if self._settings.standby == WARM and self._exit_code is None:
            self._command.start(None)

    def _start_again(self) -> None:
        self._restart_at = NEVER
        if self._leader is None:
            self._warm_up()
        elif self._may_run():
            self._restarts.count()
            self._lifecycle.restart(self._leader)
            self._hand_on(self._leader)
        else:  # this process was paused meanwhile, and is about to hear of the end
            self._end_of_work("The leadership was over before the command could be started again.")

    def _may_run(self) -> bool:
        """Whether the command may run, as far as this process knows; should it be wrong, the guard knows better."""
        return self._strategy is not None and self._exit_code is None and self._leads()

    def _leads(self) -> bool:
        return now() < self._leads_until

    def _stop_command(self, until: float | None) -> None:
        self._strategy, self._restart_at = None, NEVER
        if not self._command.runs:
            self._give_back()
            return
        self._command.terminate(now() + self._settings.stop_grace if until is None else until - KILL_BEFORE)

    def _command_ended(self) -> None:
        code, finished = self._command.end()
        _log.log(logging.WARNING if code else logging.INFO, "%s: the command has ended with %d.", self._job, code)
        if self._leader is None:
            self._ended_early()
            return
        if finished:
            if self._following is not None:
                self._following.finish()
            if self._lifecycle.finish(self._leader):
                self._exit_code = 0
        delay = self._delay_of_restart(self._leader) if code else None
        if delay is None:
            self._end_of_work(f"The command has ended with {code}.")
        else:
            _log.info("%s: the command is started again in %.1f s; the leadership stays.", self._job, delay)
            self._command.restarting()
            self._restart_at = now() + delay

    def _ended_early(self) -> None:
        if self._exit_code is None:
            delay = self._warm_up_again.failed(now()) or self._settings.long_ttl
            _log.warning("%s: nothing was granted to it yet; it is started again in %.1f s.", self._job, delay)
            self._restart_at = now() + delay

    def _delay_of_restart(self, leader: LeaderDirectory) -> float | None:
        """Seconds until the command that has failed is started again; None if the leadership ends with it."""
        if self._strategy is None or not self._may_run():
            return None
        delay = self._strategy.failed(now())
        if delay is None:
            if not isinstance(self._strategy, NoRestart):
                _log.warning("%s: the restart strategy gives up here: another contender may try.", self._job)
        elif not self._lifecycle.fail(leader):
            _log.info("%s: its program has said that the job has ended: it is not started again.", self._job)
            self._exit_code = 0
            delay = None
        return delay

    def _end_of_work(self, reason: str) -> None:
        self._step_down(reason)
        self._give_back()

    def _step_down(self, reason: str) -> None:
        self._strategy, self._restart_at = None, NEVER
        self._node.runtime.post(lambda: self._node.contender.step_down(self._job, reason))

    def _give_back(self) -> None:
        successor, self._successor, self._leader = self._successor, "", None
        if self._following is not None:
            self._following.end()
        self._command.given_up()
        self._node.runtime.post(lambda: self._node.contender.release(self._job, successor))
        if self._exit_code is None:
            self._post_contend()
            self._warm_up()

    def _post_contend(self) -> None:
        self._node.runtime.post(lambda: self._node.contender.contend(self._job))

    def _await_release(self) -> None:
        # A grant may have come that the loop did not get to see; nothing runs under it.
        self._node.runtime.post(lambda: self._node.contender.release(self._job))
        end = now() + 4 * self._node.stores.timing.call_timeout
        while now() < end and self._node.holds(self._job):
            threading.Event().wait(0.01)
