"""Scene: a sidecar on a test clock, with a command, an operator and a savepoint store that do what a test says."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from prometheus_client import CollectorRegistry

from ha.config.sources import load
from ha.leadership.notices import AskedTo, Granted, Requested, Revoked, Wake
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.phase import Standby
from ha.sidecar.savepoint_work import Outcome, Restore, SavepointWork, _Work
from ha.sidecar.sidecar import CHILD_ENDED, SAVEPOINT_ENDED, Sidecar
from ha.spark.savepoints.manifest import Manifest
from leader.election.events import Grant, Revoke
from leader.job.failed_attempts import LONGEST_PAUSE_S, Attempts
from leader.job.requests import Request, State
from leader.layout.names import LeaderDirectory
from leader.timing import Timing
from store.errors import NotWritable
from tests.unit.ha.led import session

MANIFEST = Manifest("orders", 1, "7", "now", "", stopped=False, spark="", queries=[])

DELAY = 4.0
"""Seconds before each restart."""


class Command:
    """Replaces a guarded command; ends when the test says so."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.excluded = environment["HA_EXCLUDED_HOSTS"]
        self.epoch = int(environment["HA_EPOCH"] or 0)
        self.grant = environment["HA_GRANT"]
        self.pid = 1
        self.code: int | None = None
        self.asked = False
        self._ended = threading.Event()

    def wait(self) -> int:
        self._ended.wait()
        assert self.code is not None
        return self.code

    def end(self, code: int) -> None:
        self.code = code
        self._ended.set()

    def terminate(self) -> None:
        self.asked = True

    def kill(self) -> None:
        self.end(137)


@dataclass
class Scene:
    """The sidecar's surroundings: a process, a clock, and a command."""

    sidecar: Any = None
    clock: float = 100.0
    started: list[Command] = field(default_factory=list)
    epoch: int = 0
    leads: bool = False
    """True until the deadline passes, a revocation comes, or the sidecar steps down."""
    releases: int = 0
    exceptions: list[tuple[int, str]] = field(default_factory=list)
    ends: list[tuple[int, str]] = field(default_factory=list)
    """Epochs and causes, as the history has them."""
    away: bool = False
    """Whether the store does not answer who looks for requests."""
    looks: list[float] = field(default_factory=list)
    """When requests were looked for."""
    asked: list[Request] = field(default_factory=list)
    """Requests that no leader has accepted yet."""
    accepted: list[Request] = field(default_factory=list)
    answers: list[tuple[str, State]] = field(default_factory=list)
    """Ids of requests, and how they ended."""
    answered: list[str] = field(default_factory=list)
    work: _Work | None = None
    """A savepoint that is taken, or copied into the job."""
    restores: list[str] = field(default_factory=list)
    attempts: Attempts = field(default_factory=Attempts)
    """As the leader directory has them."""
    waits: list[float] = field(default_factory=list)
    """Pauses that leaders have told others of."""
    forgets: int = 0
    """Tries to forget them that fail."""
    given_up: str = ""
    excluded: list[str] = field(default_factory=list)
    """Hosts that are recorded, in the place of leader.job.excluded.ExcludedHosts."""
    forgetful: bool = False
    """Whether the store does not record them."""

    def now(self) -> float:
        return self.clock

    def give_up(self, leader: LeaderDirectory, said: str) -> bool:
        assert leader.epoch == self.epoch
        self.given_up = said
        return True

    def start(self, command: object, environment: Mapping[str, str], *others: object) -> Command:
        del command, others
        assert not self.running, "one at a time"
        if environment["HA_GRANT"]:
            assert not environment["HA_EPOCH"]
        else:
            assert self.leads, "nothing is started once the leadership has ended"
            assert int(environment["HA_EPOCH"]) == self.epoch
        self.started.append(Command(environment))
        return self.started[-1]

    def hand_over(self, path: Path, directory: LeaderDirectory) -> None:
        assert self.leads, "nothing is granted once the leadership has ended"
        assert self.running
        assert (self.running.grant, self.running.epoch) == (str(path), 0), "nothing was granted to it before"
        self.running.epoch = directory.epoch

    def said(self, leader: LeaderDirectory) -> bool:
        """The job's status was changed and allows the command to run."""
        assert leader.epoch == self.epoch
        return True

    def add_exception(self, leader: LeaderDirectory, kind: str, *_: str) -> object:
        self.exceptions.append((leader.epoch, kind))
        return SimpleNamespace(join=lambda _: None)

    @property
    def running(self) -> Command | None:
        last = self.started[-1] if self.started else None
        return last if last is not None and last.code is None else None

    @property
    def runs(self) -> bool:
        return self.running is not None

    @property
    def asked_to_end(self) -> bool:
        return self.running is not None and self.running.asked

    def step_down(self, job: str, reason: str) -> None:
        del job, reason
        self.leads = False

    def record_end(self, job: str, leader: LeaderDirectory, cause: str) -> None:
        del job
        self.ends.append((leader.epoch, cause))

    def release(self, job: str, successor: str = "") -> None:
        del job, successor
        self.leads = False
        self.releases += 1

    # --- in the place of leader.job.requests.Requests

    def accept(self) -> Iterator[Request]:
        self.looks.append(self.clock)
        if self.away:
            raise NotWritable("standby")
        while self.asked:
            self.accepted.append(self.asked.pop(0))
            yield self.accepted[-1]

    def answer(self, request: Request, state: State, said: str, result: object = None) -> None:
        del result
        assert said
        self.answers.append((request.id, state))
        self.answered.append(said)

    # --- in the place of leader.job.failed_attempts.FailedAttempts, of a job without batches

    def load(self) -> Attempts:
        return self.attempts

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    def add(self, cause: str, host: str, seconds: float, remedy: str = "") -> Attempts:
        assert not remedy
        if seconds >= LONGEST_PAUSE_S:
            self.forget()
        else:
            self.attempts = Attempts(self.attempts.failures + 1, cause, host)
        return self.attempts

    def forget(self) -> None:
        if self.forgets:
            self.forgets -= 1
            raise NotWritable("standby")
        self.attempts = Attempts()

    def keep_off(self, hosts: Iterable[str]) -> None:
        if self.forgetful:
            raise NotWritable("standby")
        self.excluded = list(hosts)

    # --- in the place of the work of savepoints

    def begin_work(self, works: SavepointWork, work: _Work) -> None:
        assert works._present is None, "one at a time"
        works._present = self.work = work

    def end_work(self, error: str = "", manifest: Manifest | None = MANIFEST) -> None:
        """The work is done, if there is some; or it has failed."""
        if self.work is not None:
            work, self.work = self.work, None
            work.outcome = Outcome(None if error else manifest, error)
            self.sidecar._act(Wake(SAVEPOINT_ENDED))

    def fail_work(self) -> None:
        self.end_work("The disk is full.")

    def restored(self, leader: LeaderDirectory, where: str) -> bool:
        assert leader.epoch == self.epoch
        assert not self.running, "nothing is put back under a command that runs"
        self.restores.append(where)
        return True

    # --- what may happen

    def savepoint(self) -> None:
        self.request("savepoint")

    def stop_with_savepoint(self) -> None:
        self.request("stop-with-savepoint")

    def restart_from(self) -> None:
        self.request("restart-from")

    def stop(self) -> None:
        self.request("stop")

    def cancel(self) -> None:
        self.request("cancel")

    def restart(self) -> None:
        self.request("restart")

    def restart_query(self) -> None:
        self.request("restart-query")

    def request(self, verb: str, **more: str) -> None:
        identity = f"{len(self.accepted) + len(self.asked)}-{verb}"
        arguments = {"restart-from": {"from": "before"}, "restart-query": {"query": "clean"}}.get(verb, {})
        arguments = {**arguments, **more}
        self.asked.append(Request(identity, verb, self.epoch, "", arguments))
        self.sidecar._act(Requested("orders"))

    def grant(self) -> None:
        if isinstance(self.sidecar._leadership.phase, Standby) and self.sidecar._leadership.exit_code is None:
            self.epoch += 1
            self.leads = True
            self.sidecar._believed("orders", float("inf"), float("inf"))
            self.sidecar._act(Granted("orders", Grant(self.epoch, session(self.epoch), "released")))

    def fail(self) -> None:
        if (command := self.running) is not None:
            command.end(3)
            heard = self.sidecar._notices.get(10)
            while heard != Wake(CHILD_ENDED):
                self.sidecar._act(heard)
                heard = self.sidecar._notices.get(10)
            self.sidecar._act(heard)

    def revoke(self) -> None:
        self.leads = False
        self.sidecar._act(Revoked("orders", Revoke(session(self.epoch), "test", None)))

    def believe_no_more(self) -> None:
        """The sidecar was paused for longer than its lease, and the revocation has not come yet."""
        self.leads = False
        self.sidecar._believed("orders", self.clock, self.clock)

    def ask(self) -> None:
        self.sidecar._act(AskedTo("orders", "_any"))

    def signal(self) -> None:
        self.leads = False
        self.sidecar._signalled(15, None)

    def hear(self) -> None:
        """The sidecar handles all notices: signals, and the end of its command."""
        while (notice := self.sidecar._notices.get(0)) is not None:
            self.sidecar._act(notice)

    def until(self, looks: int) -> None:
        """Let the time pass, in small steps, until requests have been looked for so many times."""
        begun = self.clock
        while len(self.looks) < looks:
            self.clock += 0.001
            assert self.clock < begun + 60, "nobody looks"
            self.sidecar._act(None)

    def tick(self) -> None:
        self.clock += DELAY / 2
        self.sidecar._act(None)


@contextmanager
def scene(restore: Restore | None = None, /, **settings: Any) -> Iterator[Scene]:
    made = Scene()
    process: Any = SimpleNamespace(
        step_down=made.step_down,
        release=made.release,
        record_end=made.record_end,
        contend=lambda *_: None,
        confirm=lambda *_: None,
        settings=load({"files": "file:///nowhere", **settings}, {}),
        metrics=SimpleNamespace(registry=CollectorRegistry()),
        liveness_socket=None,
        commands={},
        stores=SimpleNamespace(
            directory_uri=lambda job, leader: f"file:///jobs/{job}/{leader.name}",
            history=SimpleNamespace(ran=lambda *_, **__: None),
            files=SimpleNamespace(call=lambda *_: {}),
            timing=Timing(),
        ),
    )
    with (
        mock.patch("ha.sidecar.sidecar.now", made.now),
        mock.patch("ha.sidecar.job_work.now", made.now),
        mock.patch("ha.sidecar.job_leadership.now", made.now),
        mock.patch("ha.sidecar.command_starts.now", made.now),
        mock.patch("ha.sidecar.operator_work.now", made.now),
        mock.patch("ha.sidecar.operator_requests.now", made.now),
        mock.patch("ha.sidecar.failures.now", made.now),
        mock.patch("ha.sidecar.command.now", made.now),
        mock.patch("ha.sidecar.command.GuardedCommand", made.start),
        mock.patch("ha.leadership.grant_file.grant", made.hand_over),
        mock.patch("ha.sidecar.operator_requests.Requests", return_value=made),
        mock.patch("ha.sidecar.escalation.FailedAttempts", return_value=made),
        mock.patch(
            "ha.sidecar.executor_hosts.ExcludedHosts",
            return_value=SimpleNamespace(load=lambda: made.excluded, keep=made.keep_off),
        ),
        mock.patch(
            "ha.sidecar.savepoint_work.SavepointWork._begin", lambda works, work, _: made.begin_work(works, work)
        ),
        mock.patch.multiple(
            JobStatusUpdater,
            restore=made.restored,
            begin=made.said,
            fail=made.said,
            give_up=made.give_up,
            restart=made.said,
            cancel=made.said,
            finish=made.said,
            add_exception=made.add_exception,
            keep_trying=lambda _, leader, what, action: action(leader) or bool(what),
        ),
        mock.patch.object(JobStatusUpdater, "directory", return_value=SimpleNamespace(job="orders")),
    ):
        made.sidecar = Sidecar(process, "orders", ["true"], {}, restore=restore)
        made.sidecar._work.starts.warm_up()
        try:
            yield made
        finally:
            if made.running:
                made.running.kill()
            made.sidecar._command.close()


FIXED = {"restart_strategy_type": "fixed-delay", "restart_strategy_fixed_delay_delay": DELAY}
ASKS: list[Callable[[Scene], None]] = [
    Scene.stop,
    Scene.cancel,
    Scene.restart,
    Scene.savepoint,
    Scene.stop_with_savepoint,
    Scene.restart_from,
    Scene.restart_query,
]
ENDS: list[Callable[[Scene], None]] = [Scene.revoke, Scene.believe_no_more, Scene.ask, Scene.signal]
EVENTS: list[Callable[[Scene], None]] = [
    Scene.grant,
    Scene.fail,
    Scene.fail,
    Scene.tick,
    Scene.tick,
    Scene.hear,
    Scene.end_work,
    Scene.end_work,
    Scene.fail_work,
    *ENDS,
    *ASKS,
]
