"""Machine: decides everything that a sidecar does. Pure: events and the time go in, commands come out."""

import logging
from dataclasses import replace

from ha.sidecar.machine import answers, ends, hangs, operators, starts
from ha.sidecar.machine import sidecar_events as events
from ha.sidecar.machine.commands import (
    Begin,
    Contend,
    ForgetFailures,
    Kill,
    RecordTakeUp,
    Say,
    SidecarCommand,
    StageSavepoint,
)
from ha.sidecar.machine.leadership import (
    end_phase,
    end_work,
    finish,
    record_end,
    release,
    step_down,
    stop_command,
    wait,
)
from ha.sidecar.machine.sidecar_state import (
    Ending,
    Leading,
    OpenRequests,
    PresentRun,
    Reconciling,
    Rules,
    SidecarState,
    Standby,
    Step,
)
from leader.job.failed_attempts import LONGEST_PAUSE_S
from leader.layout.lease import ANYBODY
from leader.layout.names import LeaderDirectory
from leader.timing import NEVER

WRONG_USAGE = 2  # the exit code of a sidecar whose name another one has


class Machine:
    """One sidecar in one job. It begins as a standby that contends."""

    def __init__(self, rules: Rules) -> None:
        self.state = SidecarState(rules)

    def begin(self, at: float) -> list[SidecarCommand]:
        """Contend, and warm up."""
        self.state.at = at
        self.state.do(Contend())
        starts.warm_up(self.state)
        return self._taken()

    def take_up(self, at: float, leader: LeaderDirectory, run: int) -> None:
        """Begin with the leadership, and the run, of a sidecar that has died on this host."""
        state = self.state
        state.at, state.runs, state.phase = at, run, Reconciling(leader)
        state.run = PresentRun(run, granted=True, since=at, starting=False, engine=None)

    def stop(self, number: int) -> None:
        """Start nothing from now on, because of a signal; its event follows. Safe in a signal handler."""
        if self.state.exit_code is None:
            self.state.exit_code = 128 + number

    def handle(self, event: events.SidecarEvent, at: float, *, leads: bool) -> list[SidecarCommand]:
        """Take an event, now by the clock, with the contender's belief; returns what is to be done, in order."""
        state = self.state
        state.at, state.leads = at, leads
        self._take(event)
        self._act_by_the_clock()
        state.validate()
        return self._taken()

    def _taken(self) -> list[SidecarCommand]:
        commands, self.state.commands = self.state.commands, []
        return commands

    def _take(self, event: events.SidecarEvent) -> None:  # noqa: C901, PLR0912, PLR0915  # one line each
        state = self.state
        match event:
            case events.ClockTicked(beat, engine):
                hangs.look(state, beat)
                ends.look_at_engine(state, engine)
            case events.LeadershipGranted():
                self._granted(event)
            case events.Begun():
                self._begun(event)
            case events.LeadershipRevoked():
                self._revoked(event)
            case events.AskedToHandOver(successor):
                self._asked_to_hand_over(successor)
            case events.Marked():
                operators.look(state)
            case events.NameRefused():
                self._name_refused()
            case events.Signalled():
                self._signalled(event)
            case events.Released():
                self._released()
            case events.Started():
                starts.started(state, event)
                answers.started(state)
            case events.NotStarted():
                if not starts.tries_again(state, event):
                    answers.not_started(state, event.said)
                    starts.not_started(state, event)
                    self._after_no_start()
            case events.Outdated():
                starts.outdated(state, event)
            case events.CommandEnded():
                ends.command_ended(state, event)
            case events.RestartingNoted():
                ends.restarting_noted(state, event)
            case events.CancellingNoted():
                operators.cancelling_noted(state, event)
            case events.FailureCounted():
                ends.counted(state, event)
            case events.Forgotten():
                state.failed = False
            case events.Finished():
                ends.finished(state, event)
            case events.Dumped():
                hangs.dumped(state, event)
            case events.Probed():
                hangs.probed(state, event)
            case events.RequestsFound():
                operators.found(state, event)
            case events.RestartPrepared():
                operators.restart_prepared(state, event)
            case events.SavepointEnded():
                operators.savepoint_ended(state, event)
            case events.ProgramAnswered():
                answers.program_answered(state, event)
            case events.Settling():
                operators.settling(state, event)

    # --- the leadership

    def _granted(self, event: events.LeadershipGranted) -> None:
        state, leader = self.state, event.leader
        taken_up = isinstance(state.phase, Reconciling)
        state.requests, state.waited, state.lacks_since = OpenRequests(pause=state.rules.retry), False, NEVER
        if state.exit_code is not None:
            state.phase = Ending(leader)
            step_down(state, "stopped", "The sidecar is stopping.")
        elif taken_up:
            assert state.run is not None, "it is taken up"
            state.phase = Leading(leader, state.rules.strategy(), Step.RUNNING)
            state.run.since, state.failed, state.forget_at = state.at, True, LONGEST_PAUSE_S
            state.do(RecordTakeUp(leader))
            hangs.begin(state)
            operators.look(state)  # the dead one may have accepted some that it has not answered
        else:
            state.phase = Leading(leader, state.rules.strategy())
            state.do(Begin(leader))
        self._take_early_end()

    def _begun(self, event: events.Begun) -> None:
        state, phase = self.state, self.state.phase
        if not isinstance(phase, Leading) or phase.step is not Step.BEGINNING or phase.leader != event.leader:
            return
        state.failed = event.failed
        if event.ended is not None:
            ends.not_run(state, event.ended)
        elif event.gave_up:
            state.exit_code = ends.JOB_FAILED
            operators.job_ended(state, ends.HAS_FAILED)
            end_work(state, "gave-up", "The job has FAILED.")
        elif event.pause:
            state.waited = True
            wait(state, phase, event.pause)
        elif state.rules.restores:
            state.phase = replace(phase, step=Step.RESTORING)
            state.works += 1
            state.work = state.works
            state.do(StageSavepoint(state.work, phase.leader))
        else:
            starts.start_or_end(state, phase)
        operators.look(state)  # those for former epochs are answered, and others were kept for this one

    def _revoked(self, event: events.LeadershipRevoked) -> None:
        state, phase = self.state, self.state.phase
        if isinstance(phase, Standby) or event.session_id != phase.leader.session_id:
            return
        record_end(state, "not-taken-up" if isinstance(phase, Reconciling) else "revoked")
        end_phase(state)
        if state.run is not None and state.run.granted:
            stop_command(state, event.until)
            self._take_early_end()
        else:
            release(state)

    def _take_early_end(self) -> None:
        """The run had ended before it was known whether it is taken up: now its end can be handled."""
        early, self.state.early_end = self.state.early_end, None
        if early is not None:
            ends.command_ended(self.state, early)

    def _after_no_start(self) -> None:
        """Nothing runs under a leadership that ends."""
        state = self.state
        if isinstance(state.phase, Ending) and state.run is None and not state.phase.finishing:
            if answers.ends_the_job(state):
                finish(state)
            else:
                release(state)

    def _asked_to_hand_over(self, successor: str) -> None:
        state, phase = self.state, self.state.phase
        if isinstance(phase, Standby) or (isinstance(phase, Ending) and phase.releasing):
            return
        cause = "resigned" if successor in ("", ANYBODY) else f"switchover-to-{successor}"[:64]
        finishing = isinstance(phase, Ending) and phase.finishing
        step_down(state, cause, "An operator asked to hand over.")
        state.phase = Ending(phase.leader, successor, finishing)

    def _name_refused(self) -> None:
        """Another process has this one's name: only a person can mend that."""
        state = self.state
        if state.stands_by and state.exit_code is None:
            state.exit_code = WRONG_USAGE
            stop_command(state)

    def _signalled(self, event: events.Signalled) -> None:
        state = self.state
        self.stop(event.number)
        step_down(state, "stopped", f"The sidecar was told to stop ({event.name}).")
        if state.stands_by:  # no revocation will come, because nothing is granted
            stop_command(state)

    def _released(self) -> None:
        state = self.state
        state.phase, state.requests = Standby(), OpenRequests(pause=state.rules.retry)
        if state.exit_code is not None:
            stop_command(state)
            return
        state.do(Contend())
        starts.warm_up(state)

    # --- by the clock

    def _act_by_the_clock(self) -> None:
        """Do what is due: kill a command that is late, forget old failures, look for requests, start the command."""
        state, run = self.state, self.state.run
        operators.act_by_the_clock(state)
        if run is not None and run is state.run and not run.starting and state.at >= run.kill_at:
            state.do(Say(logging.WARNING, "the command did not end in time and is killed."), Kill())
            run.kill_at = NEVER
        phase = state.phase
        if isinstance(phase, Leading) and state.runs_granted and state.failed:
            assert state.run is not None, "it runs"
            if (seconds := state.at - state.run.since) >= state.forget_at:
                state.forget_at = seconds + LONGEST_PAUSE_S  # if the store does not answer
                state.do(ForgetFailures(phase.leader))
        if state.at >= state.start_at:
            starts.start_due(state)
