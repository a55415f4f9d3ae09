"""Whatever happens, in whatever order, a machine keeps its promises; and a job that can run runs."""

import random
from collections import Counter
from typing import Any

import pytest

from ha.config.restart_strategy import FixedDelay
from ha.sidecar.machine import commands as do
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.machine import Machine
from ha.sidecar.machine.sidecar_state import Ending, Leading, Standby
from leader.job.request_folder import Request, State
from leader.job.status import Status
from leader.layout.names import LeaderDirectory
from tests.unit.ha.led import session
from tests.unit.ha.sidecar.machine.driven import rules

VERBS = ("stop", "cancel", "restart", "savepoint", "stop-with-savepoint", "restart-from", "restart-query", "unheard-of")
SAVEPOINTS = (do.TakeSavepoint, do.StageSavepoint)
SLOW = (do.Terminate, do.Kill, *SAVEPOINTS, do.AskProgram, do.KillHung, do.Probe)
"""Commands whose outcome no queue orders."""


class World:
    """A contender, a store and a command that do whatever they can do, as the dice say."""

    def __init__(self, seed: int, *, warm: bool) -> None:
        self.dice = random.Random(seed)  # noqa: S311
        strategy = lambda: FixedDelay(self.dice.randint(0, 2), self.dice.choice((0.0, 3.0)))  # noqa: E731
        self.machine = Machine(rules(strategy, warm=warm, restores=self.dice.random() < 0.2))
        self.at, self.epoch, self.leads, self.contends = 100.0, 0, False, False
        self.queue: list[do.SidecarCommand] = []
        self.beside: list[do.SidecarCommand] = []
        self.notices: list[events.SidecarEvent] = []
        self.run = 0
        """The run that is there."""
        self.granted = False
        self.asked: list[Request] = []
        self.accepted: list[Request] = []
        self.starts = 0
        self.before: dict[str, int] = {}
        """The starts before each request was found, by its id."""
        self.answers: Counter[str] = Counter()
        self.failures: Counter[int] = Counter()
        self.releases: Counter[int] = Counter()
        self.ends: Counter[int] = Counter()
        self.over = False
        """Whether the job has ended for good, as its leader hears."""
        self.refused_rest = False
        self.fails_to_start = 0.2
        self._carry_out(self.machine.begin(self.at))

    def take(self, event: events.SidecarEvent) -> None:
        run = self.machine.state.run
        due = run is not None and run.terminate_at <= self.at
        commands = self.machine.handle(event, self.at, leads=self.leads)
        if isinstance(event, events.RequestsFound) and not due:
            assert do.Terminate() not in commands, "a command outlives its leader's death until the state says why"
        self._carry_out(commands)

    def _carry_out(self, commands: list[do.SidecarCommand]) -> None:  # noqa: C901  # one line each
        for command in commands:
            match command:
                case do.Contend():
                    assert not self.leads
                    self.contends = True
                case do.StartCommand(_, leader) | do.Grant(_, leader) if leader is not None:
                    assert self.leads, "nothing is started under a leadership that is over"
                    self.queue.append(command)
                case do.CountFailure():
                    self.failures[self.machine.state.runs] += 1
                    self.queue.append(command)
                case do.StepDown():
                    if self.leads:
                        self.leads = False
                        self.notices.append(events.LeadershipRevoked(session(self.epoch)))
                case do.SettleQueries(run, seconds):
                    self.notices.append(events.Settling(run, seconds, able=self.dice.random() < 0.5))
                case do.RecordEnd(leader):
                    self.ends[leader.epoch] += 1
                case do.Say() | do.CountRestart() | do.KeepException():
                    pass
                case do.AbandonSavepoint():
                    self.beside = [
                        each for each in self.beside if not isinstance(each, do.TakeSavepoint | do.StageSavepoint)
                    ]
                case _ if isinstance(command, SLOW):
                    self.beside.append(command)
                case _:
                    self.queue.append(command)

    def happen(self) -> None:
        can = [self._time, self._ask]
        if self.contends:
            can += [self._grant] * 3
        if self.leads:
            can += [self._lose, self._lease_ends, self._hand_over]
        if self.queue:
            can += [self._store] * 6
        if self.beside:
            can += [self._slow] * 3
        if self.notices:
            can += [self._notice] * 4
        if self.run:
            can += [self._end_run]
        self.dice.choice(can)()

    def _time(self) -> None:
        self.at += self.dice.choice((0.1, 1.0, 5.0, 20.0))
        self.take(events.ClockTicked())

    def _ask(self) -> None:
        verb = self.dice.choice(VERBS)
        self.asked.append(Request(f"{len(self.asked) + len(self.accepted)}-{verb}", verb, 1, arguments={"from": "x"}))
        if self.leads:
            self.take(events.Marked())

    def _grant(self) -> None:
        self.epoch, self.leads, self.contends = self.epoch + 1, True, False
        self.take(events.LeadershipGranted(LeaderDirectory(self.epoch, session(self.epoch))))

    def _lose(self) -> None:
        self.leads = False
        self.take(events.LeadershipRevoked(session(self.epoch), self.at + self.dice.choice((0.5, 5.0))))

    def _lease_ends(self) -> None:
        """The process was paused; the notice comes later."""
        self.leads = False
        self.notices.append(events.LeadershipRevoked(session(self.epoch)))

    def _hand_over(self) -> None:
        self.take(events.AskedToHandOver())

    def _notice(self) -> None:
        self.take(self.notices.pop(0))

    def _end_run(self, code: int | None = None) -> None:
        run, self.run, granted, self.granted = self.run, 0, self.granted, False
        code = self.dice.choice((0, 3)) if code is None else code
        self.take(events.CommandEnded(run, code, done=code == 0 and granted))

    def _slow(self) -> None:
        command = self.beside.pop(self.dice.randrange(len(self.beside)))
        match command:
            case do.Terminate() if self.run and self.dice.random() < 0.7:
                self._end_run(143)
            case do.Kill() if self.run:
                self._end_run(137)
            case do.TakeSavepoint(work) | do.StageSavepoint(work):
                self.take(events.SavepointEnded(work, "It is there.", {}, self.dice.choice(("", "The disk is full."))))
            case do.AskProgram(request):
                self.take(events.ProgramAnswered(request.id, State.DONE, "Done."))
            case _:
                pass

    def _store(self) -> None:
        command = self.queue.pop(0)
        if (event := self._stored(command)) is not None:
            self.take(event)

    def _stored(self, command: do.SidecarCommand) -> events.SidecarEvent | None:  # noqa: C901, PLR0911, PLR0912
        dice = self.dice
        match command:
            case do.Begin(leader):
                pause = dice.choice((0.0, 0.0, 4.0))
                ended = Status.FINISHED if dice.random() < 0.05 else None
                gave_up = ended is None and dice.random() < 0.05
                self._over(leader, ended is not None or gave_up)
                return events.Begun(leader, ended, gave_up, pause, failed=pause > 0)
            case do.NoteRestarting(leader):
                ended_by_program = dice.random() < 0.1
                self._over(leader, ended_by_program)
                return events.RestartingNoted(leader, ended=ended_by_program)
            case do.RecordCancelling(leader):
                return events.CancellingNoted(leader)
            case do.CountFailure(leader):
                gave_up = dice.random() < 0.1
                self._over(leader, gave_up)
                return events.FailureCounted(leader, gave_up=gave_up)
            case do.ForgetFailures(leader):
                return events.Forgotten(leader)
            case do.Finish(leader):
                assert not (self.run and self.granted), "nothing runs of a job that ends"
                recorded = dice.random() < 0.8
                self.over = self.over or recorded
                return events.Finished(leader, recorded=recorded)
            case do.RefuseRest():
                self.asked, self.refused_rest = [], True
            case do.Release(leader):
                assert not (self.run and self.granted), "nothing runs when the lease is given back"
                assert leader.epoch == self.epoch
                self.leads = False
                self.releases[self.epoch] += 1
                return events.Released()
            case do.LookForRequests(leader):
                taken, self.asked = self.asked, []
                self.accepted += taken
                self.before |= {each.id: self.starts for each in taken}
                self.notices.append(events.RequestsFound(leader, tuple(taken), unknown=dice.random() < 0.1))
            case do.PrepareRestart(_, request):
                return events.RestartPrepared(request.id, dice.choice(("", "", "No such file.")))
            case do.AnswerRequest(request, state, said):
                again = state is State.DONE and said.startswith("The command has been started again.")
                assert not again or self.starts > self.before[request.id], "it is started for those who ask"
                self.answers[request.id] += state.final
            case do.StartCommand(run, leader):
                assert not self.run, "two runs never overlap"
                if dice.random() < self.fails_to_start:
                    lack = dice.random() < 0.3
                    return events.NotStarted(run, "No such file.", granted=leader is not None, lack=lack)
                self.run, self.granted = run, leader is not None
                self.starts += 1
                return events.Started(run, granted=leader is not None)
            case do.Grant(run):
                if self.run != run:
                    return None
                if dice.random() < 0.2:
                    return events.Outdated(run)
                self.granted = True
                self.starts += 1
                return events.Started(run)
        return None

    def _over(self, leader: LeaderDirectory, ended: bool) -> None:
        phase = self.machine.state.phase
        self.over = self.over or (ended and isinstance(phase, Leading) and phase.leader == leader)

    def settle(self) -> None:
        self.fails_to_start = 0.0
        for _ in range(400):
            if self.queue:
                self._store()
            elif self.notices:
                self._notice()
            elif self.beside:
                self._slow()
            else:
                self.at += 5.0
                self.take(events.ClockTicked())
                if self.contends and self.machine.state.exit_code is None and not self.queue:
                    self._grant()


@pytest.mark.parametrize("first", [0, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_two_runs_overlap_and_each_promise_is_kept(first: int) -> None:
    for seed in range(first, 5 * first + 300):
        try:
            check(World(seed, warm=bool(seed % 2)), 20 + seed % 150)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def check(world: World, steps: int) -> None:
    for _ in range(steps):
        if world.machine.state.over:
            break
        world.happen()
        _judge(world)
    world.settle()
    _judge(world)
    state = world.machine.state
    phase: Any = state.phase
    assert not isinstance(phase, Ending), "a leadership that ends is given back"
    if state.exit_code is not None:
        assert state.over, "a sidecar that is to end ends"
        assert world.refused_rest or not world.over, "whoever asks a job that has ended is told so"
    else:
        assert not isinstance(phase, Standby), "all is well, and it leads"
        assert (world.run and world.granted) or state.start_at < world.at + 60.0, "a job that can run runs"
        assert state.requests.present is None, "a request is answered"
        assert not world.asked, "what was asked is found"


def _judge(world: World) -> None:
    assert max(world.releases.values(), default=0) <= 1, "a lease is given back once"
    assert max(world.ends.values(), default=0) <= 1, "a leadership ends for one cause"
    assert world.releases.keys() <= world.ends.keys(), "and none without one"
    assert max(world.failures.values(), default=0) <= 1, "a failure that ends a leadership counts once"
    assert max(world.answers.values(), default=0) <= 1, "a request is answered once"
    if world.run and world.granted:
        assert world.machine.state.run is not None, "what runs is known"
