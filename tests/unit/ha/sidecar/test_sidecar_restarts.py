"""A sidecar whose command fails at random moments of a test clock: the command runs only in a leadership."""

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from ha.config.sources import load
from ha.leadership.notices import AskedTo, Granted, Requested, Revoked, Wake
from ha.sidecar.command import NEVER
from ha.sidecar.job_status import JobStatusUpdater
from ha.sidecar.phase import Standby
from ha.sidecar.savepoint_work import Outcome, Restore, SavepointWork, _Work
from ha.sidecar.sidecar import CHILD_ENDED, SAVEPOINT_ENDED, Sidecar
from ha.spark.savepoints.manifest import Manifest
from leader.election.events import Grant, Revoke
from leader.job.failed_attempts import LONGEST_PAUSE_S, Attempts
from leader.job.requests import Request, State
from leader.layout.names import LeaderDirectory
from tests.unit.ha.led import session

MANIFEST = Manifest("orders", 1, "7", "now", "", stopped=False, spark="", queries=[])

DELAY = 4.0
"""Seconds before each restart."""


class Command:
    """Replaces a guarded command; ends when the test says so."""

    def __init__(self, environment: Mapping[str, str]) -> None:
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
    asked: list[Request] = field(default_factory=list)
    """What operators ask for, and no leader has accepted yet."""
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
    given_up: str = ""

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

    def add_exception(self, leader: LeaderDirectory, kind: str, *_: str) -> None:
        self.exceptions.append((leader.epoch, kind))

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

    def wait(self, attempts: Attempts, seconds: float) -> None:
        assert attempts == self.attempts
        self.waits.append(seconds)

    def add(self, cause: str, host: str, seconds: float, remedy: str = "") -> Attempts:
        assert not remedy
        if seconds >= LONGEST_PAUSE_S:
            self.forget()
        else:
            self.attempts = Attempts(self.attempts.failures + 1, cause, host)
        return self.attempts

    def forget(self) -> None:
        self.attempts = Attempts()

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

    def request(self, verb: str) -> None:
        identity = f"{len(self.accepted) + len(self.asked)}-{verb}"
        arguments = {"from": "before"} if verb == "restart-from" else {}
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
        ),
    )
    with (
        mock.patch("ha.sidecar.sidecar.now", made.now),
        mock.patch("ha.sidecar.job_leadership.now", made.now),
        mock.patch("ha.sidecar.command_starts.now", made.now),
        mock.patch("ha.sidecar.operator_work.now", made.now),
        mock.patch("ha.sidecar.failures.now", made.now),
        mock.patch("ha.sidecar.command.now", made.now),
        mock.patch("ha.sidecar.command.GuardedCommand", made.start),
        mock.patch("ha.leadership.grant_file.grant", made.hand_over),
        mock.patch("ha.sidecar.operator_requests.Requests", return_value=made),
        mock.patch("ha.sidecar.escalation.FailedAttempts", return_value=made),
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
        ),
        mock.patch.object(JobStatusUpdater, "directory", return_value=SimpleNamespace(job="orders")),
    ):
        made.sidecar = Sidecar(process, "orders", ["true"], {}, restore=restore)
        made.sidecar._starts.warm_up()
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


@given(st.lists(st.sampled_from(EVENTS), max_size=40), st.sampled_from(["cold", "warm"]))
def test_whatever_happens_the_command_is_granted_only_a_leadership_that_lasts(
    events: list[Callable[[Scene], None]], standby: str
) -> None:
    with scene(**FIXED, restart_strategy_fixed_delay_attempts=3, standby=standby) as made:
        for event in events:
            event(made)
            waits = made.sidecar._start_at < NEVER
            assert not (waits and made.running) or made.attempts.pause, "only a warm one waits for the pause"
            works = made.sidecar._savepoints._work.busy
            assert not made.leads or waits or made.running or works, "no leader is idle"
            if (
                standby == "warm"
                and isinstance(made.sidecar._leadership.phase, Standby)
                and made.sidecar._leadership.exit_code is None
            ):
                assert waits or made.running, "no standby is idle either"
        ended = [epoch for epoch, _ in made.ends]
        assert ended == sorted(set(ended)), "each leadership ends for one cause"
        assert set(range(1, made.epoch + (made.sidecar._leadership.phase == Standby()))) <= set(ended), (
            "and none without one"
        )
        answered = [each for each, _ in made.answers]
        assert len(answered) == len(set(answered)), "no request is answered twice"
        restarts = sum(each.verb.startswith(("restart", "stop-")) for each in made.accepted)
        epochs = [command.epoch for command in made.started if command.epoch]
        assert all(len(list(group)) <= 4 + restarts for _, group in itertools.groupby(epochs)), (
            "three restarts a leadership"
        )


@given(st.integers(0, 5), st.sampled_from(["none", "fixed-delay"]))
def test_the_lease_is_given_back_after_the_last_attempt_and_not_before(attempts: int, kind: str) -> None:
    expected = attempts if kind != "none" else 0
    with scene(**{**FIXED, "restart_strategy_type": kind}, restart_strategy_fixed_delay_attempts=attempts) as made:
        made.grant()
        for number in range(expected):
            made.fail()
            assert (made.leads, made.running, made.releases) == (True, None, 0)
            made.tick()
            assert len(made.started) == number + 1, "the delay is not over"
            made.tick()
            assert len(made.started) == number + 2
        made.fail()
        made.tick()
        made.tick()
        assert (made.leads, len(made.started), made.releases) == (False, expected + 1, 1)
        assert made.ends == [(1, "exit-3")]
        assert made.exceptions == [(1, "exit-3")] * (expected + 1)
        assert made.sidecar._counters._restarts._value.get() == expected


def test_every_end_of_a_leadership_ends_the_wait_and_gives_the_lease_back() -> None:
    for end in ENDS:
        with scene(**FIXED) as made:
            made.grant()
            made.fail()
            end(made)
            made.tick()
            made.tick()
            made.hear()
            if end is Scene.ask:  # this has asked the contender, which revokes
                assert made.releases == 0
                made.revoke()
            assert (len(made.started), made.releases) == (1, 1), end


def test_a_request_to_end_the_job_ends_it_once_the_command_has_ended() -> None:
    for ask, cause in ((Scene.stop, "stopped-by-operator"), (Scene.cancel, "cancelled")):
        with scene(**FIXED) as made:
            made.grant()
            ask(made)
            assert (made.leads, made.answers, made.sidecar._leadership.exit_code) == (True, [], None)
            made.fail()
            assert (made.leads, made.releases, made.sidecar._leadership.exit_code) == (False, 1, 0)
            assert [state for _, state in made.answers] == [State.DONE]
            assert made.ends == [(1, cause)]


def test_a_restart_that_was_asked_for_is_no_failure_and_comes_at_once() -> None:
    with scene(**{**FIXED, "restart_strategy_type": "none"}) as made:
        made.grant()
        made.restart()
        assert len(made.started) == 1
        made.fail()
        assert (made.leads, len(made.started), [state for _, state in made.answers]) == (True, 2, [State.DONE])
        made.fail()
        assert not made.leads


def test_one_request_is_carried_out_at_a_time() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.restart()
        made.stop()
        made.request("dance")
        assert [state for _, state in made.answers] == [State.REFUSED, State.REFUSED]
        made.fail()
        assert [state for _, state in made.answers] == [State.REFUSED, State.REFUSED, State.DONE]
        assert made.running


def test_a_leader_that_is_about_to_end_refuses() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.revoke()
        made.stop()
        assert [state for _, state in made.answers] == [State.REFUSED]


def test_a_request_that_came_before_the_grant_is_found_after_it() -> None:
    with scene(**FIXED) as made:
        made.restart()
        assert made.accepted == []
        made.grant()
        assert [each.verb for each in made.accepted] == ["restart"]


def test_a_savepoint_holds_up_nothing() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.savepoint()
        assert (made.leads, made.answers) == (True, [])
        assert made.runs
        made.savepoint()
        assert [state for _, state in made.answers] == [State.REFUSED], "one at a time"
        made.restart()
        made.fail()
        assert made.runs, "a restart does not wait for it"
        made.end_work()
        assert [state for _, state in made.answers] == [State.REFUSED, State.DONE, State.DONE]
        made.savepoint()
        made.fail_work()
        assert made.answers[-1] == ("3-savepoint", State.FAILED)
        assert made.answered[-1] == "There is no savepoint. The disk is full. The job goes on."
        assert made.runs


def test_a_savepoint_that_is_not_complete_when_the_job_ends_has_failed() -> None:
    for end in (Scene.stop, Scene.cancel):
        with scene(**FIXED) as made:
            made.grant()
            made.savepoint()
            end(made)
            made.fail()
            assert [state for _, state in made.answers] == [State.FAILED, State.DONE]
            made.end_work()
            assert len(made.answers) == 2, "what comes later changes nothing"


def test_a_job_is_stopped_with_a_savepoint() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.stop_with_savepoint()
        assert made.runs
        assert made.asked_to_end
        assert made.work is None, "the savepoint is that of the stopped job"
        made.fail()
        assert (made.work is not None, made.leads, made.answers, made.ends) == (True, True, [], [])
        made.tick()
        made.tick()
        assert len(made.started) == 1
        made.end_work()
        assert (made.leads, made.sidecar._leadership.exit_code, made.ends) == (False, 0, [(1, "stopped-by-operator")])
        assert made.answers == [("0-stop-with-savepoint", State.DONE)]
        assert made.answered[-1].startswith("The job has ended. Savepoint 0-stop-with-savepoint: ")


def test_a_stop_whose_savepoint_fails_fails_and_the_job_goes_on() -> None:
    with scene(**{**FIXED, "restart_strategy_type": "none"}) as made:
        made.grant()
        made.stop_with_savepoint()
        made.fail()
        made.fail_work()
        made.tick()
        assert (made.leads, made.ends, made.sidecar._leadership.exit_code) == (True, [], None)
        assert made.runs
        assert made.answers == [("0-stop-with-savepoint", State.FAILED)]
        assert made.answered == ["There is no savepoint. The disk is full. The job goes on."]


def test_a_job_that_waits_for_its_restart_can_be_stopped_with_a_savepoint() -> None:
    with scene(**FIXED) as made:
        made.grant()
        made.fail()
        made.stop_with_savepoint()
        made.tick()
        made.tick()
        made.tick()
        assert len(made.started) == 1
        made.end_work()
        assert (made.leads, [state for _, state in made.answers]) == (False, [State.DONE])


def test_what_waits_for_a_savepoint_can_be_cancelled() -> None:
    for ask in (Scene.stop_with_savepoint, Scene.restart_from):
        for ended in (False, True):
            with scene(**FIXED) as made:
                made.grant()
                ask(made)
                if ended and ask is Scene.stop_with_savepoint:
                    made.fail()
                made.cancel()
                if made.runs:
                    made.fail()
                assert [state for _, state in made.answers] == [State.FAILED, State.DONE]
                assert (made.leads, made.ends) == (False, [(1, "cancelled")])
                made.end_work()
                assert (len(made.started), made.restores) == (1, [])


def test_a_job_goes_on_while_the_savepoint_is_copied_from_which_it_starts_again() -> None:
    with scene(**{**FIXED, "restart_strategy_type": "none"}) as made:
        made.grant()
        made.restart_from()
        assert made.runs
        assert not made.asked_to_end
        made.restart()
        assert made.answers.pop() == ("1-restart", State.REFUSED)
        made.end_work()
        assert (made.asked_to_end, made.restores) == (True, [])
        made.fail()
        assert (made.restores, made.leads, len(made.started)) == (["before"], True, 2)
        assert made.answers == [("0-restart-from", State.DONE)]
        made.restart_from()
        made.fail_work()
        assert made.answers[-1] == ("2-restart-from", State.FAILED)
        assert made.runs
        assert not made.asked_to_end, "a savepoint that cannot be copied stops nothing"


def test_a_command_that_ends_by_itself_meanwhile_is_started_again_as_ever() -> None:
    with scene(**FIXED, restart_strategy_fixed_delay_attempts=3) as made:
        made.grant()
        made.restart_from()
        made.fail()
        made.tick()
        made.tick()
        assert (len(made.started), made.answers, made.restores) == (2, [], [])
        made.fail()
        made.end_work()
        made.tick()
        assert (made.restores, len(made.started)) == (["before"], 3)
        assert made.answers == [("0-restart-from", State.DONE)]


def test_a_job_begins_from_its_savepoint() -> None:
    with scene(Restore("before", once=True), **FIXED) as made:
        made.grant()
        assert (made.runs, made.leads) == (False, True)
        for ask in (made.restart, made.savepoint, made.restart_from, made.stop_with_savepoint):
            ask()
            assert made.answers[-1][1] is State.REFUSED, "there is nothing yet that could be saved or started again"
        made.end_work()
        assert made.restores == ["before"]
        assert made.runs
        made.revoke()
        made.fail()
        made.grant()
        made.end_work(manifest=None)  # the job has been started from there before
        assert made.restores == ["before"]
        assert made.runs


def test_a_job_that_cannot_begin_from_its_savepoint_does_not_begin() -> None:
    with scene(Restore("before", once=True), **FIXED) as made:
        made.grant()
        made.fail_work()
        assert (made.started, made.leads, made.sidecar._leadership.exit_code) == ([], False, 1)
        assert made.ends == [(1, "not-started")]


def test_a_job_that_waits_for_its_savepoint_can_end() -> None:
    for end in (Scene.stop, Scene.cancel, Scene.revoke, Scene.signal):
        with scene(Restore("before", once=True), **FIXED) as made:
            made.grant()
            end(made)
            made.hear()
            made.end_work()
            assert (made.started, made.leads, made.restores) == ([], False, [])


def until_started(made: Scene) -> float:
    """Let the time pass until the command runs; returns how long that took."""
    begun, starts = made.clock, len(made.started)
    made.grant()
    while len(made.started) == starts:
        assert made.leads
        made.clock = made.sidecar._start_at
        made.sidecar._act(None)
    return made.clock - begun


def test_a_job_that_fails_at_its_start_is_tried_less_and_less_often() -> None:
    with scene() as made:
        pauses = []
        for _ in range(13):
            pauses.append(until_started(made))
            made.fail()
            assert not made.leads
        assert pauses == [0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
        assert made.attempts.cause == "exit-3"


def test_the_command_does_not_start_before_the_pause_is_over() -> None:
    with scene() as made:
        made.attempts = Attempts(failures=4, cause="exit-3", host="another")
        made.grant()
        made.clock += 3.999
        made.sidecar._act(None)
        assert (made.leads, made.started) == (True, [])
        assert made.sidecar._command.status()["state"] == "restarting"
        assert made.sidecar._command.status()["next_start_seconds"] == 0.0
        assert made.waits == [4.0], "everybody is told"
        made.clock += 0.001
        made.sidecar._act(None)
        assert made.running
        assert made.waits == [4.0, 0.0]
        made.restart()
        made.sidecar._act(None)
        assert made.waits == [4.0, 0.0], "only a wait ends"


def test_a_warm_command_waits_too() -> None:
    with scene(standby="warm") as made:
        made.attempts = Attempts(failures=3, cause="exit-3", host="another")
        assert made.running
        made.grant()
        assert made.running.epoch == 0, "it is not told"
        made.clock += 2.0
        made.sidecar._act(None)
        assert made.running.epoch == 1


def test_the_last_attempt_ends_the_job_with_its_cause() -> None:
    with scene(failover_max_attempts=3) as made:
        for number in (1, 2, 3):
            until_started(made)
            assert not made.given_up
            made.fail()
            assert (made.sidecar._leadership.exit_code is not None) == (number == 3)
        assert made.given_up == "The command has failed 3 times in a row without a completed batch; at last: exit-3."
        assert (made.sidecar._leadership.exit_code, made.attempts) == (1, Attempts())


def test_a_command_that_ran_for_long_begins_anew() -> None:
    with scene() as made:
        made.attempts = Attempts(failures=9)
        until_started(made)
        made.clock += LONGEST_PAUSE_S
        made.fail()
        assert made.attempts == Attempts()
        assert until_started(made) == 0.0


def test_an_operator_who_asks_for_a_restart_ends_the_pause_and_the_count() -> None:
    with scene() as made:
        made.attempts = Attempts(failures=9)
        made.grant()
        assert not made.running
        made.restart()
        made.sidecar._act(None)
        assert made.running
        assert made.attempts == Attempts()


def test_a_leadership_that_ends_otherwise_is_no_failure() -> None:
    for end in ENDS:
        with scene() as made:
            made.grant()
            end(made)
            made.fail()
            assert made.attempts == Attempts(), end
