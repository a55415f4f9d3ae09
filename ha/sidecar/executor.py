"""Executor: carries out what the machine commands, and answers with events. It decides nothing.

Commands to the store are carried out one after the other on a thread of their own, so that the deciding thread waits
for nothing. What may take long, or is late by nature, has a thread for itself.
"""

import logging
import queue
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from heapq import heappop, heappush
from itertools import count
from pathlib import Path

from ha.daemon.process import ContendingProcess
from ha.hosts.lacks import lacks, patiently
from ha.metrics.contending import CommandCounters
from ha.program import request_file
from ha.program.heartbeat import Beat
from ha.program.request_file import Wanted
from ha.sidecar.command.command import Command
from ha.sidecar.command.newest_program import NewestProgram
from ha.sidecar.executor_hosts import ExecutorHosts
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.sidecar_state import SidecarState
from ha.sidecar.probes import Probe, ProbeOf, try_once
from ha.sidecar.store_work import StoreWork
from ha.verbs.table import QUERY
from leader.errors import LeaderError
from leader.job.request_folder import Request
from leader.job.request_folder import State as Told
from leader.timing import NEVER
from store.clock import now
from store.errors import StoreError

UNABLE = (
    "Its program does not use ha.spark.Job, or has not begun to start its queries: a restart without a query starts "
    "the whole command again."
)

LACK_PAUSE_S = 0.5  # between two tries of what the host lacks something for
SHOW_S = 2.0  # time between two looks at what a program has told of its queries
Post = Callable[[events.SidecarEvent], object]

_log = logging.getLogger("ha")


Task = Callable[[], None]


class InOrder:
    """Calls functions one after the other, on a thread of its own."""

    def __init__(self, failed: Callable[[Exception], object]) -> None:
        """Start the thread; ``failed`` gets an unforeseen error, after which nothing is called."""
        self._failed = failed
        self._waiting: queue.SimpleQueue[tuple[float, Task]] = queue.SimpleQueue()
        self._closed = False
        self._due: list[tuple[float, int, Task]] = []  # a heap: when each is to be called, and its number
        threading.Thread(target=self._work, name="ha-executor", daemon=True).start()

    def __call__(self, task: Task) -> None:
        """Have a function called after those before it."""
        self._waiting.put((NEVER, task))

    def later(self, seconds: float, task: Task) -> None:
        """Have a function called after so many seconds, and after those that are under way then."""
        self._waiting.put((now() + seconds, task))

    def close(self) -> None:
        """Call what was handed over before, but nothing that is for later; returns at once."""
        self._waiting.put((NEVER, self._leave))

    def _leave(self) -> None:
        self._closed = True

    def _work(self) -> None:
        try:
            for number in count():
                if self._closed:
                    return
                self._take(number)
        except Exception as error:  # noqa: BLE001  # a sidecar that goes on without this thread would stand still unseen
            self._failed(error)

    def _take(self, number: int) -> None:
        wait = max(0.0, self._due[0][0] - now()) if self._due else None
        if wait == 0.0:
            _do(heappop(self._due)[2])
            return
        with suppress(queue.Empty):
            at, task = self._waiting.get(timeout=wait)
            if at == NEVER:
                _do(task)
            else:
                heappush(self._due, (at, number, task))


class Executor:
    """Carries out the commands of one sidecar's machine."""

    def __init__(
        self,
        process: ContendingProcess,  # its contender and metrics are used
        job: str,
        endpoints: Mapping[str, str],  # published while leading
        command: Command,  # is started and ended
        programs: NewestProgram,  # which program each start takes
        hosts: ExecutorHosts,  # those that executors keep off
        store: StoreWork,  # what is done to the store
        probe: ProbeOf | None,  # asks whether the command does its work; None for no liveness probe
        post: Post,  # takes an event, from any thread
        in_order: Callable[[Task], object],  # has functions called one after the other, elsewhere
        beside: Callable[[Task], object],  # has a function called while others go on
    ) -> None:
        self._process, self._job, self._endpoints = process, job, dict(endpoints)
        self._command, self._programs, self._hosts, self._store = command, programs, hosts, store
        self._probe_of, self._post, self._in_order, self._beside = probe, post, in_order, beside
        self._counters = CommandCounters(process.metrics.registry, job)
        self._probe: tuple[int, Probe] | None = None
        self._starting, self._show_at = False, 0.0

    def carry_out(self, command: do.SidecarCommand) -> None:  # noqa: C901, PLR0912  # one line each
        """Carry out a command, or have it carried out elsewhere; returns at once."""
        match command:
            case do.Say(level, said):
                _log.log(level, "%s: %s", self._job, said)
            case do.CountRestart():
                self._counters.restarted()
            case do.Contend():
                self._process.contend(self._job, self._endpoints)
            case do.StepDown(reason):
                self._process.step_down(self._job, reason)
            case do.RecordEnd(leader, cause):
                self._process.record_end(self._job, leader, cause)
            case do.Terminate():
                self._command.terminate()
            case do.Kill():
                self._command.kill()
            case do.SettleQueries(run, seconds, drain):
                self._post(events.Settling(run, seconds, self._command.settle(seconds, drain=drain)))
            case do.AskProgram(request):
                self._ask_program(request)
            case do.KillHung(run, beat):
                self._beside(lambda: self._kill_hung(run, beat))
            case do.Probe():
                self._beside(lambda: self._try_probe(command))
            case do.StartCommand() | do.Grant():
                self._starting = True
                self._in_order(lambda: self._start(command))
            case do.Release(_, successor):
                self._in_order(lambda: self._release(successor))
            case do.KeepException():
                self._counters.failed()
                self._store.keep(command)
            case do.AbandonSavepoint():
                self._store.savepoints.abandon()
            case _:
                self._in_order(lambda: self._answer(command))

    def look(self, state: SidecarState) -> list[events.SidecarEvent]:
        """Look at the present run, and at what its program says; returns what is to be handled now."""
        if not self._starting:
            self._command.keep()
        if state.runs_granted and now() >= self._show_at:
            self._show_at = NEVER  # one at a time: while the store hangs, nothing else may wait behind many
            self._in_order(self._show)
        asked = state.requests.of_program
        found = request_file.answered(self._command.files.restart, asked.id) if asked is not None else None
        said = [events.ProgramAnswered(found.id, found.state, found.said)] if found is not None else []
        return [*said, events.ClockTicked(self._command.beat, self._command.engine)]

    def ended(self, run: int) -> events.CommandEnded:
        """Return how a run has ended, and forget it."""
        command = self._command
        jvm_ended, end, gave_up = command.jvm_ended, command.told_end, command.engine.gave_up
        drained = command.drained
        code, done = command.end()
        return events.CommandEnded(run, code, done, end, jvm_ended, gave_up, drained)

    # --- elsewhere

    def _answer(self, command: do.SidecarCommand) -> None:
        if (event := self._store.carry_out(command)) is not None:
            self._post(event)

    def _show(self) -> None:
        self._store.show_told()
        self._show_at = now() + SHOW_S

    def _release(self, successor: str) -> None:
        self._store.end()
        self._command.given_up()
        self._process.release(self._job, successor)
        self._post(events.Released())

    def _start(self, command: do.StartCommand | do.Grant) -> None:
        run, leader = command.run, command.leader
        granted = leader is not None
        try:
            if leader is not None and command.again:
                self._store.running(leader)
            if isinstance(command, do.StartCommand):
                self._command.program = self._programs.newest(self._command.program)
                self._command.start(run, leader, self._hosts.excluded(leader))
            elif self._command.runs != run:
                return  # it has ended, and that is on its way
            elif not self._command.whole or self._programs.newest(self._command.program) != self._command.program:
                self._post(events.Outdated(run))
                return
            else:
                self._command.grant(command.leader)
            if leader is not None and command.waited:
                self._store.failures.show_wait(leader, 0.0)
        except Exception as error:  # noqa: BLE001  # whatever a file of the host or of the user has in it
            runs = self._command.runs == run
            self._post(events.NotStarted(run, _said(error), granted=granted, runs=runs, lack=lacks(error)))
        else:
            self._post(events.Started(run, granted=granted))
            if leader is not None and command.again:
                self._store.keep_rest(leader)
            if leader is not None:
                self._in_order(lambda: self._store.started(leader))
        finally:
            self._starting = False

    def _ask_program(self, request: Request) -> None:
        path, said = self._command.files.restart, ""
        try:
            if not request_file.able(path):
                self._post(events.ProgramAnswered(request.id, Told.REFUSED, UNABLE))
                return
            request_file.ask(path, Wanted(request.id, request.arguments.get(QUERY, "")))
        except OSError as error:
            said = f"Its program could not be asked: {error.strerror}."
            self._post(events.ProgramAnswered(request.id, Told.FAILED, said))

    def _kill_hung(self, run: int, beat: Beat | None) -> None:
        dump = ""
        try:
            dump = self._command.thread_dumps(beat)  # within seconds; the dead have no stacks
        except Exception:  # noqa: BLE001  # it is killed all the same
            _log.exception("%s: the stacks of its command are not known.", self._job)
        self._post(events.Dumped(run, dump))
        if self._command.runs == run:
            self._command.terminate()
            self._command.kill()  # at once: the store may be slow, and what hangs may write when it wakes up

    def _try_probe(self, command: do.Probe) -> None:
        assert self._probe_of is not None, "nothing else is tried"
        if self._probe is None or self._probe[0] != command.run:
            variables = self._command.variables(command.leader)
            self._probe = command.run, self._probe_of(self._store.directory(command.leader), variables)
        wrong = try_once(self._probe[1], command.timeout, self._job)
        self._post(events.Probed(command.began, now(), wrong))


def _do(task: Task) -> None:
    """Call a function; again, if it fails because this host lacks something."""
    patiently(
        task, LACK_PAUSE_S, lambda error: _log.warning("This host lacks something: %s.", _said(error).rstrip("."))
    )


def _said(error: Exception) -> str:
    """Return one sentence; of an unforeseen mistake, with its place."""
    if isinstance(error, LeaderError | StoreError):
        return f"{error}"
    if isinstance(error, OSError):
        return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}."
    *_, place = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} in {Path(place.filename).name}, line {place.lineno}: {error}"
